package sequences_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Every block of Go and SQL in docs/sequences.md is code that the tests of this package run.
func TestPageShowsWhatRuns(t *testing.T) {
	page, err := os.ReadFile("../../docs/sequences.md")
	require.NoError(t, err)
	var code strings.Builder
	for _, pattern := range []string{"*_test.go", "sql/*/*.sql"} {
		paths, err := filepath.Glob(pattern)
		require.NoError(t, err)
		for _, path := range paths {
			text, err := os.ReadFile(path)
			require.NoError(t, err)
			code.WriteString("\n" + string(text))
		}
	}
	fence := regexp.MustCompile("(?ms)^```(go|sql)\n(.*?)^```$")
	blocks := map[string]int{}
	for _, match := range fence.FindAllStringSubmatch(string(page), -1) {
		blocks[match[1]]++
		indented := strings.ReplaceAll("\n"+match[2], "\n", "\n\t")
		indented = regexp.MustCompile(`(?m)^\t+$`).ReplaceAllString(indented, "")[1:]
		if !strings.Contains(code.String(), "\n"+match[2]) && !strings.Contains(code.String(), "\n"+indented) {
			assert.Fail(t, "not among the code", "%s", match[2])
		}
	}
	assert.Equal(t, map[string]int{"go": 3, "sql": 4}, blocks)
}
