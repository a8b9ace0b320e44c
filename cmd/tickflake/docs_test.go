package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestDocs runs the command lines that the documentation shows with what they print.
func TestDocs(t *testing.T) {
	pages, err := filepath.Glob("../../docs/*.md")
	require.NoError(t, err)
	block := regexp.MustCompile("(?ms)^```console\n(.*?)^```")
	ran := 0
	for _, page := range pages {
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		for _, b := range block.FindAllStringSubmatch(string(text), -1) {
			for session := range strings.SplitSeq(strings.TrimPrefix(b[1], "$ "), "\n$ ") {
				line, shown, _ := strings.Cut(session, "\n")
				args, found := strings.CutPrefix(line, "tickflake ")
				require.True(t, found, "%s: $ %s", page, line)
				r := tickflake(strings.Fields(args)...)
				assert.Equal(t, strings.TrimRight(shown, "\n"), strings.TrimRight(r.out+r.err, "\n"), "%s: $ %s", page, line)
				ran++
			}
		}
	}
	assert.NotZero(t, ran)
}

// TestServiceLogLines looks for every line that the service can log on the page on operation,
// and for what it says there at the end.
func TestServiceLogLines(t *testing.T) {
	page, err := os.ReadFile("../../docs/operate.md")
	require.NoError(t, err)
	_, section, found := strings.Cut(string(page), "\n## The service\n")
	require.True(t, found)
	var code strings.Builder
	for _, root := range []string{"../../service", "."} {
		require.NoError(t, filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
			name := filepath.Base(path)
			if err != nil || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") || root == "." && !strings.HasPrefix(name, "serve") && name != "store.go" {
				return err
			}
			text, err := os.ReadFile(path)
			code.Write(text)
			return err
		}))
	}
	logged := regexp.MustCompile(`(?:log|Logger)\.(?:Info|Warn|Error)\("([^"]+)"`).FindAllStringSubmatch(code.String(), -1)
	assert.Greater(t, len(logged), 5)
	for _, line := range logged {
		start, _, _ := strings.Cut(line[1], ": ")
		assert.Contains(t, section, "`"+start, line[1])
	}
	rows := regexp.MustCompile("(?m)^\\| (?:[a-z, ]+ \\| )?`([^`…]+)").FindAllStringSubmatch(section, -1)
	assert.Greater(t, len(rows), len(logged))
	for _, row := range rows {
		assert.Contains(t, code.String(), strings.TrimRight(row[1], " ,:"))
	}
}
