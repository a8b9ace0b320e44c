package snowflake_test

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/snowflake"
)

var layout2025 = time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)

// randomLayout returns a valid layout with widths, tick, order, parts and epoch
// drawn from their whole ranges.
func randomLayout(r *rand.Rand) snowflake.Layout {
	total := 1 + r.IntN(63)
	l := snowflake.Layout{
		Epoch:    time.Unix(0, r.Int64()).UTC(),
		Tick:     time.Duration(1 + r.Int64N(1<<r.IntN(42))),
		TimeBits: 1 + r.IntN(min(total, 62)),
		Order:    snowflake.Order(r.IntN(2)),
	}
	l.Tick = min(l.Tick, time.Hour)
	l.NodeBits = min(r.IntN(total-l.TimeBits+1), 62)
	l.SequenceBits = min(total-l.TimeBits-l.NodeBits, 62)
	if r.IntN(2) == 0 {
		for left := l.NodeBits; left > 0; {
			p := snowflake.Part{Name: fmt.Sprintf("p%d", len(l.Parts)), Bits: 1 + r.IntN(left)}
			l.Parts = append(l.Parts, p)
			left -= p.Bits
		}
	}
	return l
}

// randomInstant returns an instant of the layout's lifetime.
func randomInstant(r *rand.Rand, l snowflake.Layout) time.Time {
	last := l.Capacity().Last
	span := last.Unix() - l.Epoch.Unix()
	t := time.Unix(l.Epoch.Unix()+r.Int64N(span+1), r.Int64N(1e9)).UTC()
	if t.Before(l.Epoch) {
		return l.Epoch
	}
	if t.After(last) {
		return last
	}
	return t
}

func TestLayoutDecodesKnownIDs(t *testing.T) {
	d, err := snowflake.Twitter().Decode(1541815603606036480)
	require.NoError(t, err)
	assert.Equal(t, snowflake.Decoded{
		ID:    1541815603606036480,
		Time:  time.Date(2022, 6, 28, 16, 7, 40, 105e6, time.UTC),
		Node:  378,
		Parts: map[string]int64{"datacenter": 11, "worker": 26},
	}, d)

	d, err = snowflake.Discord().Decode(175928847299117063)
	require.NoError(t, err)
	assert.Equal(t, snowflake.Decoded{
		ID:       175928847299117063,
		Time:     time.Date(2016, 4, 30, 11, 18, 25, 796e6, time.UTC),
		Node:     32,
		Parts:    map[string]int64{"worker": 1, "process": 0},
		Sequence: 7,
	}, d)

	d, err = snowflake.Instagram().Decode(2384288897814875714)
	require.NoError(t, err)
	assert.Equal(t, time.Date(2020, 8, 26, 13, 43, 27, 0, time.UTC), d.Time.Truncate(time.Second))
	assert.Equal(t, map[string]int64{"shard": d.Node}, d.Parts)
}

// The fields' places, written out by hand rather than computed.
func TestLayoutComposePlacesFields(t *testing.T) {
	l := snowflake.Layout{Epoch: layout2025, Tick: time.Second, TimeBits: 8, NodeBits: 6, SequenceBits: 4,
		Parts: []snowflake.Part{{Name: "a", Bits: 2}, {Name: "b", Bits: 4}}}
	at := layout2025.Add(0b10100101 * time.Second)

	id, err := l.Compose(at, 0b10_1100, 0b0110)
	require.NoError(t, err)
	assert.EqualValues(t, 0b10100101_101100_0110, id)

	l.Order = snowflake.TimeSequenceNode
	id, err = l.Compose(at, 0b10_1100, 0b0110)
	require.NoError(t, err)
	assert.EqualValues(t, 0b10100101_0110_101100, id)

	d, err := l.Decode(id)
	require.NoError(t, err)
	assert.Equal(t, map[string]int64{"a": 0b10, "b": 0b1100}, d.Parts)
	assert.EqualValues(t, 0b0110, d.Sequence)
}

func TestLayoutComposeDecodeIdentity(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	check := func(l snowflake.Layout) {
		require.NoError(t, l.Validate(), l)
		at := randomInstant(r, l)
		node := r.Int64N(l.Capacity().Nodes)
		sequence := r.Int64N(l.Capacity().IDsPerTick)
		id, err := l.Compose(at, node, sequence)
		require.NoError(t, err, "%s at %s", l, at)
		require.GreaterOrEqual(t, id, snowflake.ID(0))

		d, err := l.Decode(id)
		require.NoError(t, err, "%s at %s", l, at)
		require.Equal(t, id, d.ID)
		require.Equal(t, node, d.Node, l)
		require.Equal(t, sequence, d.Sequence, l)
		behind := at.Sub(d.Time)
		require.True(t, behind >= 0 && behind < l.Tick, "%s: %s composed as %s", l, at, d.Time)

		if l.Parts == nil {
			require.Nil(t, d.Parts)
		} else {
			parts := make([]int64, len(l.Parts))
			for i, p := range l.Parts {
				parts[i] = d.Parts[p.Name]
			}
			whole, err := l.Node(parts...)
			require.NoError(t, err)
			require.Equal(t, node, whole, l)
		}

		again, err := l.Compose(d.Time, d.Node, d.Sequence)
		require.NoError(t, err)
		require.Equal(t, id, again, "%s at %s", l, at)
	}
	for _, l := range snowflake.Presets() {
		for range 500 {
			check(l)
		}
	}
	for range 20_000 {
		check(randomLayout(r))
	}
}

func TestLayoutIDsSortByTime(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 5000 {
		l := randomLayout(r)
		a, b := randomInstant(r, l), randomInstant(r, l)
		if a.After(b) {
			a, b = b, a
		}
		first, err := l.Max(a)
		require.NoError(t, err)
		second, err := l.Min(b)
		require.NoError(t, err)
		if d, _ := l.Decode(first); b.Sub(d.Time) >= l.Tick {
			require.Less(t, first, second, "%s: %s, %s", l, a, b)
		}
	}
}

func TestLayoutComposeRefuses(t *testing.T) {
	l := snowflake.Twitter()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, c := range []struct {
		node, sequence int64
		message        string
	}{
		{1024, 0, "node 1024 is out of range: it needs 11 bits, but the field has 10 bits; give a number from 0 to 1023"},
		{-1, 0, "node -1 is out of range: it is negative; give a number from 0 to 1023"},
		{0, 5000, "sequence 5000 is out of range: it needs 13 bits, but the field has 12 bits; give a number from 0 to 4095"},
		{0, math.MinInt64, "is negative"},
		{math.MaxInt64, 0, "needs 63 bits"},
	} {
		id, err := l.Compose(now, c.node, c.sequence)
		assert.Zero(t, id)
		assert.ErrorIs(t, err, snowflake.ErrRange)
		assert.ErrorContains(t, err, c.message)
	}

	_, err := snowflake.Layout{}.Compose(now, 0, 0)
	assert.ErrorIs(t, err, snowflake.ErrLayout)
}

func TestLayoutDecodeRefuses(t *testing.T) {
	narrow := snowflake.JavaScript()
	wide := snowflake.Layout{Epoch: layout2025, Tick: time.Second, TimeBits: 60, NodeBits: 1, SequenceBits: 2}
	odd := wide // a tick starts on the very last nanosecond of 9999
	odd.Epoch = layout2025.Add(-1)
	hours := snowflake.Layout{Epoch: layout2025, Tick: time.Hour, TimeBits: 62}
	for _, c := range []struct {
		layout  snowflake.Layout
		id, max snowflake.ID
		message string
	}{
		{snowflake.Twitter(), -1, math.MaxInt64, "ID -1 is out of range: it is negative; IDs of this layout run from 0 to 9223372036854775807"},
		{snowflake.Twitter(), math.MinInt64, math.MaxInt64, "it is negative"},
		{narrow, 1 << 53, 1<<53 - 1, "it takes 54 bits, 1 more than the layout's fields have; IDs of this layout run from 0 to 9007199254740991"},
		{narrow, math.MaxInt64, 1<<53 - 1, "it takes 63 bits, 10 more than the layout's fields have"},
		// 251666611199 s from 2025 to the last second of 9999.
		{wide, 251666611200 << 3, 251666611199<<3 | 7, "its time lies past the year 9999; IDs of this layout run from 0 to 2013332889599"},
		{wide, math.MaxInt64, 251666611199<<3 | 7, "its time lies past the year 9999"},
		{odd, 251666611200 << 3, 251666611199<<3 | 7, "its time lies past the year 9999"},
		// The first tick that starts 2^64 seconds or more from the epoch.
		{hours, 5124095576030432, 69907391, "its time lies past the year 9999"},
	} {
		_, err := c.layout.Decode(c.id)
		require.ErrorIs(t, err, snowflake.ErrRange, c.message)
		assert.ErrorContains(t, err, c.message)
		assert.ErrorContains(t, err, fmt.Sprintf("ID %d is", c.id))
		assert.ErrorContains(t, err, fmt.Sprintf("run from 0 to %d:", c.max))

		_, err = c.layout.Decode(c.max)
		assert.NoError(t, err, "the largest ID of %s", c.layout)
	}

	_, err := snowflake.Layout{}.Decode(1)
	assert.ErrorIs(t, err, snowflake.ErrLayout)
}

func TestLayoutNode(t *testing.T) {
	node, err := snowflake.Twitter().Node(11, 26)
	require.NoError(t, err)
	assert.EqualValues(t, 378, node)
	node, err = snowflake.Default().Node(378)
	require.NoError(t, err)
	assert.EqualValues(t, 378, node)

	single := snowflake.Layout{Epoch: layout2025, Tick: 1, TimeBits: 1}
	node, err = single.Node()
	require.NoError(t, err)
	assert.Zero(t, node)

	for _, c := range []struct {
		layout snowflake.Layout
		parts  []int64
		want   error
		text   string
	}{
		{snowflake.Twitter(), []int64{1}, nil,
			"1 node numbers given, but the layout takes 2: datacenter, worker (high bits first)"},
		{snowflake.Default(), nil, nil, "takes 1: node"},
		{single, []int64{0}, nil, "no node bits; give none"},
		{snowflake.Twitter(), []int64{32, 0}, snowflake.ErrRange, "datacenter 32 is out of range: it needs 6 bits"},
		{snowflake.Twitter(), []int64{0, -1}, snowflake.ErrRange, "worker -1 is out of range: it is negative"},
	} {
		_, err := c.layout.Node(c.parts...)
		if c.want != nil {
			assert.ErrorIs(t, err, c.want)
		}
		assert.ErrorContains(t, err, c.text)
	}
	_, err = snowflake.Layout{}.Node()
	assert.Error(t, err)
}

func TestDecodedJSON(t *testing.T) {
	decode := func(l snowflake.Layout, id snowflake.ID) string {
		d, err := l.Decode(id)
		require.NoError(t, err)
		text, err := json.Marshal(d)
		require.NoError(t, err)
		return string(text)
	}
	assert.Equal(t,
		`{"id":"1541815603606036480","time":"2022-06-28T16:07:40.105Z","node":378,"parts":{"datacenter":11,"worker":26},"sequence":0}`,
		decode(snowflake.Twitter(), 1541815603606036480))
	assert.Equal(t,
		`{"id":"0","time":"2025-01-01T00:00:00.000Z","node":0,"parts":{},"sequence":0}`,
		decode(snowflake.Default(), 0))

	fine := snowflake.Layout{Epoch: layout2025, Tick: 100 * time.Microsecond, TimeBits: 63 - 22, NodeBits: 10, SequenceBits: 12}
	assert.Contains(t, decode(fine, 1<<22), `"time":"2025-01-01T00:00:00.000100Z"`)
	fine.Tick = 1
	assert.Contains(t, decode(fine, 1<<22), `"time":"2025-01-01T00:00:00.000000001Z"`)
}

// No method panics, with any field values.
func TestLayoutNeverPanics(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	widths := []int{math.MinInt, -1, 0, 1, 10, 62, 63, 64, math.MaxInt}
	instants := []time.Time{{}, layout2025, time.Now(), time.Unix(math.MaxInt64, 0), time.Unix(math.MinInt64, 0), time.Unix(1<<55, 0)}
	numbers := []int64{math.MinInt64, -1, 0, 1, 1 << 40, math.MaxInt64}
	pick := func() int { return widths[r.IntN(len(widths))] }
	for range 4000 {
		l := snowflake.Layout{
			Epoch:    instants[r.IntN(len(instants))],
			Tick:     time.Duration(numbers[r.IntN(len(numbers))]),
			TimeBits: pick(), NodeBits: pick(), SequenceBits: pick(),
			Order: snowflake.Order(pick()),
		}
		if r.IntN(2) == 0 {
			l.Parts = []snowflake.Part{{Name: "a", Bits: pick()}, {Name: "\x00", Bits: pick()}}
		}
		at, number := instants[r.IntN(len(instants))], numbers[r.IntN(len(numbers))]
		_ = fmt.Sprint(l, l.Validate(), l.ValidateAt(at), l.Capacity(), l.End())
		for _, err := range []error{
			onlyError(l.Compose(at, number, number)), onlyError(l.Decode(snowflake.ID(number))), onlyError(l.Node(number, number)),
			onlyError(l.Min(at)), onlyError(l.Max(at)), onlyError(l.MarshalText()),
		} {
			_ = fmt.Sprint(err)
		}
		_, _, err := l.Between(at, instants[r.IntN(len(instants))])
		_ = fmt.Sprint(err)
	}
}

func onlyError[T any](_ T, err error) error { return err }
