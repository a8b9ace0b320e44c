package main

import (
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
