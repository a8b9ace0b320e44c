package main

import (
	"bufio"
	"cmp"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/cmd/internal/command"
)

// TestDocs runs the command lines that the documentation shows with what they print.
func TestDocs(t *testing.T) {
	pages, err := filepath.Glob("../../docs/*.md")
	require.NoError(t, err)
	guides, err := filepath.Glob("../../docs/migrate/*.md")
	require.NoError(t, err)
	block := regexp.MustCompile("(?ms)^```console\n(.*?)^```")
	ran := 0
	for _, page := range append(pages, guides...) {
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

// placeholders are words of the documentation that stand for a value.
var placeholders = map[string]string{"NODE": "5", "NODES": "5", "N": "5", "ID": "5", "NAME": "orders", "DURATION": "1s"}

// TestDocsCommands parses every command line of tickflake in every page, so that no page has
// a command or a flag that does not exist.
func TestDocsCommands(t *testing.T) {
	line := regexp.MustCompile("(?m)(?:^|^    |`|[$] |[$]dir/|[.]/)(?:go run ./cmd/)?tickflake ((?:serve|sequence|lease|layout|decode|generate|help|completion)[^`\n]*)")
	parsed := 0
	require.NoError(t, filepath.WalkDir("../..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() && (entry.Name() == "testdata" || entry.Name() == "node_modules") {
			return cmp.Or(err, fs.SkipDir)
		}
		if !strings.HasSuffix(path, ".md") || entry.Name() == "results.md" { // the report
			return nil
		}
		text, err := os.ReadFile(path)
		for _, found := range line.FindAllStringSubmatch(string(text), -1) {
			var args []string
			for word := range strings.FieldsSeq(regexp.MustCompile(`[#>&|;…].*`).ReplaceAllString(found[1], "")) {
				word = strings.Trim(word, `'"`)
				args = append(args, cmp.Or(placeholders[word], word))
			}
			cmd, rest, err := newRoot(&command.Console{Out: bufio.NewWriter(io.Discard), Err: io.Discard}).Find(args)
			if assert.NoError(t, err, "%s: %s", path, found[1]) {
				err := cmd.ParseFlags(rest)
				assert.True(t, err == nil || errors.Is(err, pflag.ErrHelp), "%s: %s: %v", path, found[1], err)
				if rest = cmd.Flags().Args(); len(rest) > 0 {
					assert.NoError(t, cmd.ValidateArgs(rest), "%s: %s", path, found[1])
				}
			}
			parsed++
		}
		return err
	}))
	assert.Greater(t, parsed, 50)
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
