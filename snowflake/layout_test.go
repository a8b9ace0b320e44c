package snowflake_test

import (
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/snowflake"
)

var (
	layout2025 = time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)
	endOf9999  = time.Date(9999, 12, 31, 23, 59, 59, 999_999_999, time.UTC)
)

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
	sec := r.Int64N(span + 1)
	if r.IntN(8) == 0 { // the second in which the count of nanoseconds passes 64 bits
		sec = min(span, 18446744073)
	}
	t := time.Unix(l.Epoch.Unix()+sec, r.Int64N(1e9)).UTC()
	if t.Before(l.Epoch) {
		return l.Epoch
	}
	if t.After(last) {
		return last
	}
	return t
}

// exactNanoseconds is the exact count of nanoseconds from a to b.
func exactNanoseconds(a, b time.Time) *big.Int {
	ns := big.NewInt(b.Unix() - a.Unix())
	ns.Mul(ns, big.NewInt(1e9))
	return ns.Add(ns, big.NewInt(int64(b.Nanosecond()-a.Nanosecond())))
}

// Presets and random layouts keep what their methods promise.
func TestLayouts(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var layouts []snowflake.Layout
	for _, l := range snowflake.Presets() {
		for range 200 {
			layouts = append(layouts, l)
		}
	}
	for range 10_000 {
		layouts = append(layouts, randomLayout(r))
	}
	saturated := 0
	for _, l := range layouts {
		require.NoError(t, l.Validate(), l)
		parsed, err := snowflake.ParseLayout(l.String())
		require.NoError(t, err)
		named := l
		named.Name = ""
		require.Equal(t, named, parsed)

		// The lifetime, and the tick of an instant, against big integers.
		length, limit := new(big.Int).Lsh(big.NewInt(int64(l.Tick)), uint(l.TimeBits)), exactNanoseconds(l.Epoch, endOf9999)
		if length.Cmp(limit) > 0 {
			length = limit
			saturated++
		}
		require.Zero(t, length.Cmp(exactNanoseconds(l.Epoch, l.End())), "%s ends at %s", l, l.End())
		c, at := l.Capacity(), randomInstant(r, l)
		node, sequence := r.Int64N(c.Nodes), r.Int64N(c.IDsPerTick)
		id, err := l.Compose(at, node, sequence)
		require.NoError(t, err, "%s at %s", l, at)
		require.GreaterOrEqual(t, id, snowflake.ID(0))
		tick := new(big.Int).Div(exactNanoseconds(l.Epoch, at), big.NewInt(int64(l.Tick)))
		require.Equal(t, tick.Int64(), int64(id)>>(l.NodeBits+l.SequenceBits), "%s at %s", l, at)

		// An ID is taken apart again.
		d, err := l.Decode(id)
		require.NoError(t, err, "%s at %s", l, at)
		require.Equal(t, []int64{int64(id), node, sequence}, []int64{int64(d.ID), d.Node, d.Sequence}, l)
		require.Zero(t, tick.Mul(tick, big.NewInt(int64(l.Tick))).Cmp(exactNanoseconds(l.Epoch, d.Time)), "%s: tick starts at %s", l, d.Time)
		var parts []int64
		for _, p := range l.Parts {
			parts = append(parts, d.Parts[p.Name])
		}
		require.Len(t, d.Parts, len(parts))
		if whole, err := l.Node(parts...); l.Parts != nil {
			require.NoError(t, err)
			require.Equal(t, node, whole, l)
		}

		// A range has the IDs of exactly the ticks that overlap it, and so IDs sort by time.
		to := at.Add(1 + time.Duration(r.Int64N(int64(4*l.Tick))))
		lo, hi, err := l.Between(at, to)
		require.NoError(t, err)
		for range 4 {
			near := at.Add(time.Duration(r.Int64N(int64(10*l.Tick))) - 3*l.Tick)
			id, err := l.Compose(near, r.Int64N(c.Nodes), r.Int64N(c.IDsPerTick))
			if err != nil {
				continue // outside the lifetime
			}
			d, err := l.Decode(id)
			require.NoError(t, err)
			overlaps := d.Time.Before(to) && d.Time.Add(l.Tick).After(at)
			require.Equal(t, overlaps, lo <= id && id <= hi, "%s: ID of %s in %s to %s", l, d.Time, at, to)
		}
	}
	assert.Greater(t, saturated, 500, "layouts that outlast the year 9999")
}

func TestPresetsAreWhatTheirDocsSay(t *testing.T) {
	for i, c := range []struct{ name, spec, end string }{
		{"tickflake", "41/10/12,epoch=1735689600000", "2094-09-07T15:47:35.552Z"},
		{"twitter", "time=41,datacenter=5,worker=5,sequence=12,epoch=1288834974657", "2080-07-10T17:30:30.209Z"},
		{"discord", "time=41,worker=5,process=5,sequence=12,epoch=1420070400000", "2084-09-06T15:47:35.552Z"},
		{"instagram", "time=40,shard=13,sequence=10,epoch=1314220021721", "2046-06-27T17:00:49.497Z"},
		{"sonyflake", "time=39,sequence=8,machine=16,tick=10ms,epoch=1735689600000", "2199-03-19T03:28:58.88Z"},
		{"sonyflake-v1", "time=39,sequence=8,machine=16,tick=10ms,epoch=1409529600000", "2188-11-16T03:28:58.88Z"},
		{"leaf", "time=41,worker=10,sequence=12,epoch=1288834974657", "2080-07-10T17:30:30.209Z"},
		{"baidu", "time=28,worker=22,sequence=13,tick=1s,epoch=1463673600000", "2024-11-20T13:24:16Z"},
		{"easyswoole", "time=41,datacenter=5,worker=5,sequence=12,epoch=1508945092000", "2087-07-02T07:12:27.552Z"},
		{"javascript", "38/7/8,tick=10ms,epoch=1735689600000", "2112-02-09T13:44:29.44Z"},
	} {
		want, err := snowflake.ParseLayout(c.spec)
		require.NoError(t, err)
		want.Name = c.name
		l, ok := snowflake.Preset(c.name)
		require.True(t, ok, c.name)
		assert.Equal(t, want, l)
		assert.Equal(t, l, snowflake.Presets()[i], "a stable order")
		assert.Equal(t, c.end, l.End().Format(time.RFC3339Nano), c.name)
	}
	assert.Len(t, snowflake.Presets(), 10)
	_, ok := snowflake.Preset("Twitter")
	assert.False(t, ok, "names are lower-case")

	// Discord's and Instagram's 64 bits fit 63 as long as their highest bit is 0.
	for l, most := range map[string]snowflake.ID{"discord": math.MaxInt64, "instagram": math.MaxInt64, "javascript": 1<<53 - 1} {
		l, _ := snowflake.Preset(l)
		last, err := l.Max(l.End().Add(-1))
		require.NoError(t, err)
		assert.Equal(t, most, last, l.Name)
	}
	snowflake.Twitter().Parts[0].Name = "changed"
	snowflake.Presets()[1].Parts[1].Bits = 50
	assert.Equal(t, []snowflake.Part{{Name: "datacenter", Bits: 5}, {Name: "worker", Bits: 5}}, snowflake.Twitter().Parts, "nothing is shared")
}

func TestLayoutDecodesKnownIDs(t *testing.T) {
	hand := snowflake.Layout{Epoch: layout2025, Tick: time.Second, TimeBits: 8, NodeBits: 6, SequenceBits: 4,
		Parts: []snowflake.Part{{Name: "a", Bits: 2}, {Name: "b", Bits: 4}}}
	behind := hand
	behind.Order = snowflake.TimeSequenceNode
	fine, finest := snowflake.Default(), snowflake.Default()
	fine.Tick, finest.Tick = 100*time.Microsecond, 1
	for _, c := range []struct {
		layout snowflake.Layout
		id     snowflake.ID
		json   string // after the ID
	}{
		{snowflake.Twitter(), tweetID, `"time":"2022-06-28T16:07:40.105Z","node":378,"parts":{"datacenter":11,"worker":26},"sequence":0}`},
		{snowflake.Discord(), 175928847299117063, `"time":"2016-04-30T11:18:25.796Z","node":32,"parts":{"process":0,"worker":1},"sequence":7}`},
		{snowflake.Instagram(), 2384288897814875714, `"time":"2020-08-26T13:43:27.313Z","node":2675,"parts":{"shard":2675},"sequence":578}`},
		{snowflake.Default(), 0, `"time":"2025-01-01T00:00:00.000Z","node":0,"parts":{},"sequence":0}`},
		{fine, 1 << 22, `"time":"2025-01-01T00:00:00.000100Z","node":0,"parts":{},"sequence":0}`},
		{finest, 1 << 22, `"time":"2025-01-01T00:00:00.000000001Z","node":0,"parts":{},"sequence":0}`},
		{hand, 0b10100101_101100_0110, `"time":"2025-01-01T00:02:45.000Z","node":44,"parts":{"a":2,"b":12},"sequence":6}`},
		{behind, 0b10100101_0110_101100, `"time":"2025-01-01T00:02:45.000Z","node":44,"parts":{"a":2,"b":12},"sequence":6}`},
	} {
		d, err := c.layout.Decode(c.id)
		require.NoError(t, err)
		text, err := json.Marshal(d)
		require.NoError(t, err)
		assert.Equal(t, fmt.Sprintf(`{"id":"%d",`, c.id)+c.json, string(text))
	}
}

func TestLayoutCapacity(t *testing.T) {
	c := snowflake.Default().Capacity()
	assert.InDelta(t, 69.68, c.Years, 0.01)
	c.Years = 0
	assert.Equal(t, snowflake.Capacity{IDsPerTick: 4096, IDsPerSecond: 4_096_000, Nodes: 1024, Last: time.Date(2094, 9, 7, 15, 47, 35, 551_999_999, time.UTC)}, c)
	wide := snowflake.Layout{Epoch: layout2025, Tick: time.Hour, TimeBits: 62, NodeBits: 1}
	c = wide.Capacity()
	assert.InEpsilon(t, math.Pow(2, 62)/24/365.25, c.Years, 1e-9)
	assert.Equal(t, endOf9999.Add(-1), c.Last)
	assert.Zero(t, snowflake.Layout{}.Capacity())
	assert.Zero(t, snowflake.Layout{Epoch: layout2025}.End())
}

func TestBetweenIsCutToTheLifetime(t *testing.T) {
	lo, hi, err := snowflake.Default().Between(time.Unix(math.MinInt64/2, 0), time.Unix(math.MaxInt64/2, 0))
	require.NoError(t, err)
	assert.Equal(t, []snowflake.ID{0, math.MaxInt64}, []snowflake.ID{lo, hi})
}

// A monotonic reading must not decide: the wall time shown is what counts.
func TestLayoutIgnoresMonotonicReadings(t *testing.T) {
	l := snowflake.Default()
	now := time.Now()
	l.Epoch = now
	id, err := l.Compose(now.Add(time.Millisecond), 0, 0)
	require.NoError(t, err)
	d, err := l.Decode(id)
	require.NoError(t, err)
	assert.True(t, d.Time.Equal(now.Round(0).Add(time.Millisecond)))
	assert.NoError(t, l.ValidateAt(now))
}

// Specs that differ from the canonical ones.
func TestParseLayout(t *testing.T) {
	for spec, want := range map[string]string{
		" javascript ":              "time=38,node=7,sequence=8,tick=10ms,epoch=2025-01-01T00:00:00Z",
		"twitter,epoch=2020-01-01":  "time=41,datacenter=5,worker=5,sequence=12,tick=1ms,epoch=2020-01-01T00:00:00Z",
		"41/10/12":                  "time=41,node=10,sequence=12,tick=1ms,epoch=2025-01-01T00:00:00Z",
		" 41 / 10 / 12 ,tick=100us": "time=41,node=10,sequence=12,tick=100µs,epoch=2025-01-01T00:00:00Z",
		"41/10/12,epoch=2000000000": "time=41,node=10,sequence=12,tick=1ms,epoch=1970-01-24T03:33:20Z",
		"time=41,sequence=12":       "time=41,node=0,sequence=12,tick=1ms,epoch=2025-01-01T00:00:00Z",
		"tick=1ms,time=41,a=5,epoch=1288834974657,b=5,sequence=12":     "time=41,a=5,b=5,sequence=12,tick=1ms,epoch=2010-11-04T01:42:54.657Z",
		"time=41,sequence=12,a=10,epoch=2010-11-04T09:42:54.657+08:00": "time=41,sequence=12,a=10,tick=1ms,epoch=2010-11-04T01:42:54.657Z",
	} {
		got, err := snowflake.ParseLayout(spec)
		if assert.NoError(t, err, spec) {
			assert.Equal(t, want, got.String(), spec)
		}
	}
	preset, err := snowflake.ParseLayout("twitter")
	require.NoError(t, err)
	assert.Equal(t, snowflake.Twitter(), preset)
	changed, err := snowflake.ParseLayout("twitter,tick=1ms")
	require.NoError(t, err)
	assert.Empty(t, changed.Name, "it is no longer the preset")

	type config struct{ Layout snowflake.Layout }
	text, err := json.Marshal(config{snowflake.Leaf()})
	require.NoError(t, err)
	assert.Equal(t, `{"Layout":"time=41,worker=10,sequence=12,tick=1ms,epoch=2010-11-04T01:42:54.657Z"}`, string(text))
	var c config
	require.NoError(t, json.Unmarshal([]byte(`{"Layout":"discord"}`), &c))
	assert.Error(t, json.Unmarshal([]byte(`{"Layout":"37/20/16"}`), &c))
	assert.Equal(t, snowflake.Discord(), c.Layout, "unchanged by an error")
}

func TestLayoutValidateAcceptsTheExtremes(t *testing.T) {
	earliest, latest := time.Unix(0, 0), time.Unix(0, math.MaxInt64)
	for _, l := range []snowflake.Layout{
		{Epoch: earliest, Tick: 1, TimeBits: 1},
		{Epoch: latest, Tick: time.Hour, TimeBits: 62, NodeBits: 1},
		{Epoch: layout2025, Tick: time.Millisecond, TimeBits: 1, NodeBits: 62},
		{Epoch: layout2025, Tick: time.Millisecond, TimeBits: 1, SequenceBits: 62, Order: snowflake.TimeSequenceNode},
		{Epoch: layout2025, Tick: time.Millisecond, TimeBits: 21, NodeBits: 21, SequenceBits: 21,
			Parts: []snowflake.Part{{Name: "a-_9", Bits: 20}, {Name: "z", Bits: 1}}},
	} {
		assert.NoError(t, l.Validate(), l)
	}
	l := snowflake.Default()
	for _, now := range []time.Time{l.Epoch, l.Epoch.In(time.FixedZone("", 3600)), l.End().Add(-1)} {
		assert.NoError(t, l.ValidateAt(now))
	}
	assert.Zero(t, testing.AllocsPerRun(100, func() { _ = l.Validate() }), "each Decode validates")
}

func onlyError[T any](_ T, err error) error { return err }

// Any text either gives a valid layout that its String gives again, or ErrLayout. Under such a layout,
// every number either decodes to values that compose to it again, or gives ErrRange.
func FuzzLayout(f *testing.F) {
	for _, l := range snowflake.Presets() {
		f.Add(l.Name, int64(1541815603606036480))
		f.Add(l.String(), int64(-1))
	}
	for _, spec := range []string{
		"", ",", "=", "/", "//", "37/20/16", "41/10/12,tick=100us", "twitter,epoch=2020-01-01", "1/0/0,epoch=0", "1/31/31,tick=1h", "62/1/0,tick=1h",
		"time=1,sequence=62", "time=41,sequence=12,a=5,b=5", "time=41,node=10,sequence=12,epoch=1735689600000", "time=1,tick=",
	} {
		f.Add(spec, int64(1<<62))
	}
	f.Fuzz(func(t *testing.T, spec string, number int64) {
		l, err := snowflake.ParseLayout(spec)
		if err != nil {
			require.ErrorIs(t, err, snowflake.ErrLayout)
			require.NotContains(t, err.Error(), "\n")
			require.Zero(t, l)
			return
		}
		require.NoError(t, l.Validate())
		again, err := snowflake.ParseLayout(l.String())
		require.NoError(t, err)
		l.Name = ""
		require.Equal(t, l, again)
		d, err := l.Decode(snowflake.ID(number))
		if err != nil {
			require.ErrorIs(t, err, snowflake.ErrRange)
			return
		}
		id, err := l.Compose(d.Time, d.Node, d.Sequence)
		require.NoError(t, err)
		require.EqualValues(t, number, id)
	})
}
