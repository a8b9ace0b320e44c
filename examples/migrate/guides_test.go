package migrate_test

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"testing"

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
