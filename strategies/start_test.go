package strategies_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/strategies"
)

func TestStartDraws(t *testing.T) {
	for range 100 {
		assert.Zero(t, strategies.StartZero().Draw())
		assert.Zero(t, strategies.SequenceStart{}.Draw())
		assert.Zero(t, strategies.StartRandom(1).Draw())
	}
	// Uniform: each of 16 numbers comes about 1000 times in 16000 draws. The
	// standard deviation is 31, so 200 off is beyond chance.
	var counts [16]int
	for range 16_000 {
		counts[strategies.StartRandom(16).Draw()]++
	}
	for n, count := range counts {
		assert.InDelta(t, 1000, count, 200, "%d", n)
	}
}

func TestStartValidate(t *testing.T) {
	for _, tt := range []struct {
		start strategies.SequenceStart
		ok    bool
	}{
		{strategies.SequenceStart{}, true},
		{strategies.StartZero(), true},
		{strategies.StartRandom(1), true},
		{strategies.StartRandom(256), true},
		{strategies.LeafStart(), true},
		{strategies.StartRandom(257), false},
		{strategies.StartRandom(0), false},
		{strategies.StartRandom(-5), false},
	} {
		err := tt.start.Validate(256)
		if tt.ok {
			assert.NoError(t, err, tt.start)
			continue
		}
		require.ErrorIs(t, err, strategies.ErrInvalid, tt.start)
		assert.ErrorContains(t, err, tt.start.String()[len("random:"):])
	}
	assert.Equal(t, "zero", strategies.StartZero().String())
}
