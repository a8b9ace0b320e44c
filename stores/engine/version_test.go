package engine_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/engine"
)

func TestNextVersion(t *testing.T) {
	seen := map[uint64]bool{}
	for range 1000 {
		next, err := engine.NextVersion("k", 7, nil)
		assert.NoError(t, err)
		assert.True(t, next > 7 && next <= 7+1<<32, next)
		seen[next] = true
		next, err = engine.NextVersion("k", 1<<63-1-1<<32, nil)
		assert.NoError(t, err)
		assert.LessOrEqual(t, next, uint64(1<<63-1))
	}
	assert.Greater(t, len(seen), 990)
	_, err := engine.NextVersion("k", 1<<63-1<<32, nil)
	assert.ErrorIs(t, err, stores.ErrConflict)
	_, err = engine.NextVersion("K", 7, nil)
	assert.ErrorContains(t, err, "key \"K\"")
	_, err = engine.NextVersion("k", 7, []byte("\xff"))
	assert.ErrorContains(t, err, "value is not")
}
