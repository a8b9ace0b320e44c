package databases_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/snowflake"
)

// The page states when IDs begin to have 19 digits, and which text forms sort.
func TestDecimalTextSortsWrongly(t *testing.T) {
	layout := snowflake.Default()
	longer, err := layout.Decode(1_000_000_000_000_000_000)
	require.NoError(t, err)
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	assert.Contains(t, string(readme), "begin on "+longer.Time.Format(time.DateOnly))

	before, err := layout.Max(longer.Time.Add(-time.Minute))
	require.NoError(t, err)
	after, err := layout.Min(longer.Time.Add(time.Minute))
	require.NoError(t, err)
	assert.Greater(t, before.String(), after.String())
	assert.Less(t, before.Base32(), after.Base32())
}

var link = regexp.MustCompile(`\]\(([^):#]+)\)`)

// Every block of code in the README is in the file that the last link before it names, which
// belongs to an example with a test. No example is left out.
func TestReadmeShowsTheCode(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	examples := make(map[string]bool) // whether a block of it is shown
	tests, err := filepath.Glob("*/*_test.go")
	require.NoError(t, err)
	for _, test := range tests {
		examples[filepath.Dir(test)] = false
	}

	parts := strings.Split(string(readme), "\n```")
	require.Equal(t, 1, len(parts)%2, "a block has no end")
	var named string
	for i, part := range parts {
		if i%2 == 0 {
			for _, target := range link.FindAllStringSubmatch(part, -1) {
				named = target[1]
				_, err := os.Stat(named)
				assert.NoError(t, err)
			}
			continue
		}
		language, block, _ := strings.Cut(part, "\n")
		assert.Equal(t, language, strings.TrimPrefix(strings.TrimPrefix(filepath.Ext(named), "."), "m"))
		source, err := os.ReadFile(named)
		require.NoError(t, err)
		assert.True(t, strings.Contains(string(source), block+"\n"), "%s does not have\n%s", named, block)
		example, _, _ := strings.Cut(named, "/")
		_, tested := examples[example]
		assert.True(t, tested, "%s has no test", named)
		examples[example] = true
	}
	for example, shown := range examples {
		assert.True(t, shown, "%s is not in the README", example)
	}
}
