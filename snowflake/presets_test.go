package snowflake_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/snowflake"
)

func TestPresetsAreWhatTheirDocsSay(t *testing.T) {
	type parts = []snowflake.Part
	ms, ms10 := time.Millisecond, 10*time.Millisecond
	for i, c := range []struct {
		name            string
		epochMs         int64
		tick            time.Duration
		time, node, seq int
		order           snowflake.Order
		parts           parts
		end             string
	}{
		{"tickflake", 1735689600000, ms, 41, 10, 12, snowflake.TimeNodeSequence, nil, "2094-09-07T15:47:35.552Z"},
		{"twitter", 1288834974657, ms, 41, 10, 12, snowflake.TimeNodeSequence, parts{{"datacenter", 5}, {"worker", 5}}, "2080-07-10T17:30:30.209Z"},
		{"discord", 1420070400000, ms, 41, 10, 12, snowflake.TimeNodeSequence, parts{{"worker", 5}, {"process", 5}}, "2084-09-06T15:47:35.552Z"},
		{"instagram", 1314220021721, ms, 40, 13, 10, snowflake.TimeNodeSequence, parts{{"shard", 13}}, "2046-06-27T17:00:49.497Z"},
		{"sonyflake", 1735689600000, ms10, 39, 16, 8, snowflake.TimeSequenceNode, parts{{"machine", 16}}, "2199-03-19T03:28:58.88Z"},
		{"sonyflake-v1", 1409529600000, ms10, 39, 16, 8, snowflake.TimeSequenceNode, parts{{"machine", 16}}, "2188-11-16T03:28:58.88Z"},
		{"leaf", 1288834974657, ms, 41, 10, 12, snowflake.TimeNodeSequence, parts{{"worker", 10}}, "2080-07-10T17:30:30.209Z"},
		{"baidu", 1463673600000, time.Second, 28, 22, 13, snowflake.TimeNodeSequence, parts{{"worker", 22}}, "2024-11-20T13:24:16Z"},
		{"easyswoole", 1508945092000, ms, 41, 10, 12, snowflake.TimeNodeSequence, parts{{"datacenter", 5}, {"worker", 5}}, "2087-07-02T07:12:27.552Z"},
		{"javascript", 1735689600000, ms10, 38, 7, 8, snowflake.TimeNodeSequence, nil, "2112-02-09T13:44:29.44Z"},
	} {
		l, ok := snowflake.Preset(c.name)
		require.True(t, ok, c.name)
		require.NoError(t, l.Validate())
		assert.Equal(t, snowflake.Layout{
			Name: c.name, Epoch: time.UnixMilli(c.epochMs).UTC(), Tick: c.tick,
			TimeBits: c.time, NodeBits: c.node, SequenceBits: c.seq, Order: c.order, Parts: c.parts,
		}, l)
		assert.Equal(t, c.end, l.End().Format(time.RFC3339Nano), c.name)
		require.Greater(t, len(snowflake.Presets()), i)
		assert.Equal(t, l, snowflake.Presets()[i], "a stable order")

		// The end follows from the epoch, the tick and the width alone.
		endMs := c.epochMs + c.tick.Milliseconds()<<c.time
		assert.True(t, l.End().Equal(time.UnixMilli(endMs)), c.name)
	}
	assert.Len(t, snowflake.Presets(), 10)

	_, ok := snowflake.Preset("Twitter")
	assert.False(t, ok, "names are lower-case")
	_, ok = snowflake.Preset("")
	assert.False(t, ok)
}

// Discord's and Instagram's 64 bits fit 63 as long as their highest bit is 0.
func TestPresetsWithoutTheirSignBit(t *testing.T) {
	for _, l := range []snowflake.Layout{snowflake.Discord(), snowflake.Instagram()} {
		last, err := l.Max(l.End().Add(-1))
		require.NoError(t, err)
		assert.Equal(t, snowflake.ID(math.MaxInt64), last, l.Name)

		l.TimeBits++
		assert.ErrorContains(t, l.Validate(), "sum to 64 bits", l.Name)
	}
}

func TestPresetJavaScriptSurvivesFloat64(t *testing.T) {
	l := snowflake.JavaScript()
	assert.InDelta(t, 87.1, l.Capacity().Years, 0.05)
	assert.Equal(t, 25_600.0, l.Capacity().IDsPerSecond)
	assert.EqualValues(t, 128, l.Capacity().Nodes)

	last, err := l.Max(l.End().Add(-1))
	require.NoError(t, err)
	assert.Equal(t, snowflake.ID(1<<53-1), last, "Number.MAX_SAFE_INTEGER")
	assert.Equal(t, last, snowflake.ID(float64(last)))
}

func TestPresetsShareNothing(t *testing.T) {
	snowflake.Twitter().Parts[0].Name = "changed"
	snowflake.Presets()[1].Parts[1].Bits = 50
	assert.NoError(t, snowflake.Twitter().Validate())
	assert.Equal(t, "datacenter", snowflake.Twitter().Parts[0].Name)
}
