package foreigntest

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/service/internal/issuer"
)

// rows returns the rows of the tables in a section of docs/service.md, as their cells.
func rows(t *testing.T, heading string) (all [][]string) {
	t.Helper()
	page, err := os.ReadFile("../../docs/service.md")
	require.NoError(t, err)
	_, section, found := strings.Cut(string(page), "\n## "+heading+"\n")
	require.True(t, found, heading)
	section, _, _ = strings.Cut(section, "\n## ")
	for _, row := range regexp.MustCompile("(?m)^\\| (`.*) \\|$").FindAllStringSubmatch(section, -1) {
		all = append(all, strings.Split(row[1], " | "))
	}
	return all
}

var quoted = regexp.MustCompile("`([^`]+)`")

// The page has every code of a refusal once, and every text of an error is in the code with
// one of those codes.
func TestPageErrors(t *testing.T) {
	codes := make(map[string]bool)
	for code := range issuer.Codes {
		codes[issuer.Code(code).String()] = false
	}
	source := sources(t, "../internal", "../../generator", "../../sequence")
	texts := 0
	for _, row := range rows(t, "Errors") {
		switch len(row) {
		case 5:
			name := strings.Trim(row[0], "`")
			seen, known := codes[name]
			assert.True(t, known && !seen, "%s is no code, or stands there twice", name)
			codes[name] = true
			for _, status := range quoted.FindAllStringSubmatch(row[1], -1) {
				assert.True(t, strings.Contains(source, `"`+status[1]+`"`), "the code has no %s", status[1])
			}
		case 4:
			texts++
			for _, text := range quoted.FindAllStringSubmatch(row[0], -1) {
				assert.True(t, strings.Contains(source, text[1]), "no error has the text %q", text[1])
			}
			assert.Contains(t, codes, strings.Trim(row[1], "`"), row[0])
		default:
			assert.Fail(t, "a row of no table", "%q", row)
		}
	}
	for name, seen := range codes {
		assert.True(t, seen, "%s is not on the page", name)
	}
	assert.NotZero(t, texts)
}

// sources returns the text of the Go files of directories, without their tests.
func sources(t *testing.T, dirs ...string) string {
	t.Helper()
	var all strings.Builder
	for _, dir := range dirs {
		require.NoError(t, filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			all.Write(text)
			return err
		}))
	}
	return all.String()
}
