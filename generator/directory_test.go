package generator_test

import (
	"bytes"
	"log/slog"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/snowflake"
)

// Directories that are taken for one store begin at different node numbers, which they keep; the next
// process takes the number after the first.
func TestDirectoriesBeginApart(t *testing.T) {
	for _, layout := range []snowflake.Layout{snowflake.Default(), snowflake.SonyflakeV1()} {
		nodes, seen := layout.MaxNode()+1, map[int64]bool{}
		for range 8 {
			dir := filepath.Join(t.TempDir(), "ids")
			open := func() *generator.Generator {
				g, err := generator.Open(t.Context(), dir, generator.WithLayout(layout), generator.WithLeaseOptions(lease.WithLogger(slog.New(slog.DiscardHandler))))
				require.NoError(t, err)
				return g
			}
			first := open()
			second := open()
			assert.Equal(t, (first.Node()+1)%nodes, second.Node())
			seen[first.Node()] = true
			require.NoError(t, first.Close())
			require.NoError(t, second.Close())
		}
		assert.Greater(t, len(seen), 4, layout)
	}
}

// What a directory warns of goes to the logger that the lease was given.
func TestWarningOfADirectory(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
	var log bytes.Buffer
	g, err := generator.Open(t.Context(), t.TempDir(), generator.WithLeaseOptions(lease.WithLogger(slog.New(slog.NewTextHandler(&log, nil)))))
	require.NoError(t, err)
	require.NoError(t, g.Close())
	assert.Contains(t, log.String(), " is a directory, and ")
}
