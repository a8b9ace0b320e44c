package redis_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/internal/servertest"
	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/directory"
)

// TestMove moves a fleet and sequences from a directory to Redis, and from Redis to a directory,
// while they are in use.
func TestMove(t *testing.T) {
	s := start(t)
	toRedis := func() stores.Store { return open(t, s.url("namespace=moved")) }
	fromRedis := func() stores.Store { return open(t, s.url("namespace=before")) }
	for _, move := range []servertest.Move{{To: toRedis}, {From: fromRedis}} {
		path := t.TempDir()
		inDirectory := func() stores.Store {
			store, err := directory.Open(t.Context(), path)
			require.NoError(t, err)
			return store
		}
		if move.From == nil {
			move.From = inDirectory
		} else {
			move.To = inDirectory
		}
		assert.Empty(t, move.Run(t))
	}
}
