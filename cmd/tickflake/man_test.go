package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Every command that the help lists has a page, which shows its whole help.
func TestMan(t *testing.T) {
	dir := t.TempDir()
	got := tickflake("man", dir)
	require.Zero(t, got.code, got.err)
	assert.Empty(t, got.out)
	pages, err := filepath.Glob(filepath.Join(dir, "*.1"))
	require.NoError(t, err)
	assert.Greater(t, len(pages), 20)

	// shown is a page as man shows it, without indentation and empty lines.
	shown := strings.NewReplacer(`\e`, `\`, `\-`, "-", `\(aq`, "'", `\(ga`, "`", `\(ha`, "^", `\(ti`, "~", `\&`, "",
		".EE\n", "", ".EX\n", "", ".SH USAGE", "Usage:", ".SH EXAMPLES", "Examples:", ".SH FLAGS", "Flags:", ".SH AVAILABLE COMMANDS", "Available Commands:")
	for _, page := range pages {
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		name := strings.TrimSuffix(filepath.Base(page), ".1")
		assert.NotContains(t, name, "tickflake-man", "hidden")
		command := strings.Split(name, "-")[1:]
		help := tickflake(append(command, "--help")...)
		require.Zero(t, help.code, "%s: %s", name, help.err)
		assert.Contains(t, shown.Replace(string(text)), help.out, name)
		for line := range strings.Lines(string(text)) {
			if strings.HasPrefix(line, ".") {
				assert.Regexp(t, `^\.(TH|SH|EX|EE)\b`, line, name)
			}
			assert.False(t, strings.HasPrefix(line, "'"), "%s: roff takes %q for a request", name, line)
		}
	}
	for _, wanted := range []string{"tickflake", "tickflake-serve", "tickflake-serve-token", "tickflake-sequence-next", "tickflake-completion-bash"} {
		assert.Contains(t, pages, filepath.Join(dir, wanted+".1"))
	}
	assert.Equal(t, 1, tickflake("man", filepath.Join(dir, "none")).code)
}
