package migrate_test

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// source is this directory; the tests run in an empty one, so that examples can open
// stores by relative paths, as programs do.
var source string

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler)) // or every lease says what becomes of it
	os.Exit(inTemporaryDirectory(m.Run))
}

func inTemporaryDirectory(run func() int) int {
	dir, err := os.MkdirTemp("", "tickflake-migrate-")
	if err == nil {
		defer func() { _ = os.RemoveAll(dir) }()
		if source, err = os.Getwd(); err == nil {
			err = os.Chdir(dir)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.Chdir(source) }()
	return run()
}

func guide(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(source, "../../docs/migrate", name))
	require.NoError(t, err)
	return string(text)
}

var fence = regexp.MustCompile("(?ms)^```(\\w*)\n(.*?)^```$")

// Every block in the guides is code that the tests run.
func TestGuidesShowWhatRuns(t *testing.T) {
	guides, err := filepath.Glob(filepath.Join(source, "../../docs/migrate/*.md"))
	require.NoError(t, err)
	require.Len(t, guides, 6)
	code := map[string]string{"go": files(t, "*.go"), "sql": files(t, "sql/*/*.sql")}
	blocks := map[string]int{}
	for _, path := range guides {
		name := filepath.Base(path)
		for _, match := range fence.FindAllStringSubmatch(guide(t, name), -1) {
			language, block := match[1], match[2]
			blocks[name+" "+language]++
			switch language {
			case "go", "sql":
				indented := strings.ReplaceAll("\n"+block, "\n", "\n\t")
				indented = regexp.MustCompile(`(?m)^\t+$`).ReplaceAllString(indented, "")[1:]
				if !strings.Contains(code[language], "\n"+block) && !strings.Contains(code[language], "\n"+indented) {
					assert.Fail(t, "not among the code", "%s:\n%s", name, block)
				}
			case "console":
				command, shown, _ := strings.Cut(strings.TrimPrefix(block, "$ tickflake "), "\n")
				args := append([]string{"run", "./cmd/tickflake"}, strings.Fields(command)...)
				assert.Equal(t, shown, run(t, filepath.Join(source, "../.."), "go", args...), name)
			case "sh":
				assert.Equal(t, "bwmarrin.md", name, "TestOneLineChange runs the one there: no test runs\n%s", block)
			default:
				assert.Fail(t, "cannot be checked", "%s: a block of %q", name, language)
			}
		}
	}
	assert.Equal(t, 1, blocks["bwmarrin.md sh"])
	for _, want := range []string{"README.md go", "bwmarrin.md go", "sonyflake.md go", "twitter-leaf-baidu.md go", "twitter-leaf-baidu.md console", "auto-increment.md go", "auto-increment.md sql", "counted.md go", "counted.md sql"} {
		assert.NotZero(t, blocks[want], want)
	}
}

func files(t *testing.T, pattern string) string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(source, pattern))
	require.NoError(t, err)
	var all strings.Builder
	for _, path := range paths {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		all.WriteString("\n" + string(text))
	}
	return all.String()
}
