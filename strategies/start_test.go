package strategies_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/strategies"
)

func TestStartBelow(t *testing.T) {
	for start, want := range map[strategies.SequenceStart]int64{{}: 1, strategies.StartZero(): 1, strategies.StartRandom(1): 1, strategies.StartRandom(16): 16} {
		assert.Equal(t, want, start.Below(), start)
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
