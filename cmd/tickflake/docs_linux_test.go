package main

import (
	"bufio"
	"cmp"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/cmd/internal/command"
)

// placeholders are words of the documentation that stand for a value.
var placeholders = map[string]string{"NODE": "5", "NODES": "5", "N": "5", "ID": "5", "NAME": "orders", "DURATION": "1s"}

// TestDocs runs the command lines that a page shows with what they print, and parses all others, so
// that no page has a command or a flag that does not exist.
func TestDocs(t *testing.T) {
	session := regexp.MustCompile("(?ms)^[$] tickflake ([^\n]*)\n(.*?)\n(?:[$] |```)")
	line := regexp.MustCompile("(?m)(?:^|^    |`|[$] |[$]dir/|[.]/)(?:go run ./cmd/)?tickflake ((?:serve|sequence|lease|layout|decode|generate|help|completion)[^`\n]*)")
	ran, parsed := 0, 0
	require.NoError(t, filepath.WalkDir("../..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() && (entry.Name() == "testdata" || entry.Name() == "node_modules") {
			return cmp.Or(err, fs.SkipDir)
		}
		if !strings.HasSuffix(path, ".md") || entry.Name() == "results.md" { // the report
			return nil
		}
		text, err := os.ReadFile(path)
		for _, found := range session.FindAllStringSubmatch(string(text), -1) {
			shown, _ := exec.Command("tickflake", strings.Fields(found[1])...).CombinedOutput() // some show an error
			assert.Equal(t, found[2], strings.TrimRight(string(shown), "\n"), "%s: %s", path, found[1])
			ran++
		}
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
	assert.Positive(t, ran)
	assert.Greater(t, parsed, 50)
}
