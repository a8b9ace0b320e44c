package snowflake_test

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/snowflake"
)

var endOf9999 = time.Date(9999, 12, 31, 23, 59, 59, 999_999_999, time.UTC)

// exactNanoseconds is the exact count of nanoseconds from a to b.
func exactNanoseconds(a, b time.Time) *big.Int {
	ns := big.NewInt(b.Unix() - a.Unix())
	ns.Mul(ns, big.NewInt(1e9))
	return ns.Add(ns, big.NewInt(int64(b.Nanosecond()-a.Nanosecond())))
}

func TestLayoutTimeAgainstBigIntegers(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	saturated := 0
	for range 20_000 {
		l := randomLayout(r)
		length := new(big.Int).Lsh(big.NewInt(int64(l.Tick)), uint(l.TimeBits))
		limit := exactNanoseconds(l.Epoch, endOf9999)
		if length.Cmp(limit) > 0 {
			length = limit
			saturated++
		}
		require.Zero(t, length.Cmp(exactNanoseconds(l.Epoch, l.End())), "%s ends at %s", l, l.End())

		at := randomInstant(r, l)
		id, err := l.Compose(at, 0, 0)
		require.NoError(t, err)
		tick := new(big.Int).Div(exactNanoseconds(l.Epoch, at), big.NewInt(int64(l.Tick)))
		require.Equal(t, tick.Int64(), int64(id)>>(l.NodeBits+l.SequenceBits), "%s at %s", l, at)

		d, err := l.Decode(id)
		require.NoError(t, err)
		tick.Mul(tick, big.NewInt(int64(l.Tick)))
		require.Zero(t, tick.Cmp(exactNanoseconds(l.Epoch, d.Time)), "%s: tick starts at %s", l, d.Time)
	}
	assert.Greater(t, saturated, 1000, "layouts that outlast the year 9999")
}

// Where the count of nanoseconds passes 64 bits, 584 years from the epoch.
func TestLayoutTimeBeyond64Bits(t *testing.T) {
	l := snowflake.Layout{Epoch: layout2025, Tick: time.Microsecond, TimeBits: 62}
	at := time.Unix(layout2025.Unix()+18446744073, 709551616).UTC() // 2^64 ns on
	for ns, tick := range map[time.Duration]int64{-1: 18446744073709551, 0: 18446744073709551, 383: 18446744073709551, 384: 18446744073709552} {
		id, err := l.Compose(at.Add(ns), 0, 0)
		require.NoError(t, err)
		assert.EqualValues(t, tick, id, "%d ns from 2^64", ns)
	}
}

func TestLayoutCapacity(t *testing.T) {
	c := snowflake.Default().Capacity()
	assert.EqualValues(t, 4096, c.IDsPerTick)
	assert.Equal(t, 4_096_000.0, c.IDsPerSecond)
	assert.EqualValues(t, 1024, c.Nodes)
	assert.InDelta(t, 69.68, c.Years, 0.01)
	assert.Equal(t, time.Date(2094, 9, 7, 15, 47, 35, 551_999_999, time.UTC), c.Last)

	c = snowflake.Sonyflake().Capacity()
	assert.Equal(t, 25_600.0, c.IDsPerSecond)
	assert.EqualValues(t, 65_536, c.Nodes)
	assert.InDelta(t, 174.2, c.Years, 0.05)

	wide := snowflake.Layout{Epoch: layout2025, Tick: time.Hour, TimeBits: 62, NodeBits: 1}
	c = wide.Capacity()
	assert.EqualValues(t, 1, c.IDsPerTick)
	assert.InEpsilon(t, math.Pow(2, 62)/24/365.25, c.Years, 1e-9)
	assert.Equal(t, endOf9999, wide.End())
	assert.Equal(t, endOf9999.Add(-1), c.Last)

	assert.Zero(t, snowflake.Layout{}.Capacity())
	assert.Zero(t, snowflake.Layout{}.End())
}

func TestLayoutLifetimeBounds(t *testing.T) {
	wide := snowflake.Layout{Epoch: layout2025, Tick: time.Millisecond, TimeBits: 62}
	for _, l := range append(snowflake.Presets(), wide) {
		for at, message := range map[time.Time]string{
			l.Epoch:                       "",
			l.End().Add(-1):               "",
			l.Epoch.Add(-1):               "is 1ns before the epoch; the layout covers ",
			l.End():                       "is 1ns after the time field's last instant; the layout covers ",
			time.Unix(math.MaxInt64/2, 0): "after the time field's last instant",
			time.Unix(math.MinInt64/2, 0): "before the epoch",
			{}:                            "before the epoch",
		} {
			_, err := l.Compose(at, 0, 0)
			if message == "" {
				assert.NoError(t, err)
				continue
			}
			require.ErrorIs(t, err, snowflake.ErrRange, "%s at %s", l, at)
			assert.ErrorContains(t, err, message)
			for _, instant := range []time.Time{at, l.Epoch, l.End()} {
				assert.ErrorContains(t, err, instant.UTC().Format(time.RFC3339Nano))
			}
			for _, bound := range []func(time.Time) (snowflake.ID, error){l.Min, l.Max} {
				_, err := bound(at)
				assert.ErrorIs(t, err, snowflake.ErrRange)
			}
		}
	}
}

func TestLayoutMinMax(t *testing.T) {
	l := snowflake.Twitter()
	at := time.Date(2022, 6, 28, 16, 7, 40, 105_600_000, time.UTC)
	lo, err := l.Min(at)
	require.NoError(t, err)
	hi, err := l.Max(at)
	require.NoError(t, err)
	tick := snowflake.ID(1541815603606036480 >> 22)
	assert.Equal(t, tick<<22, lo)
	assert.Equal(t, tick<<22|(1<<22-1), hi)

	hi, err = l.Max(l.End().Add(-1))
	require.NoError(t, err)
	assert.Equal(t, snowflake.ID(math.MaxInt64), hi)
}

func TestLayoutBetween(t *testing.T) {
	l := snowflake.Default()
	at := func(d time.Duration) time.Time { return l.Epoch.Add(d) }
	const ms = time.Millisecond
	all := l.End().Sub(l.Epoch)
	for _, c := range []struct {
		name        string
		from, to    time.Duration
		first, last int64 // ticks
	}{
		{"one tick", 5 * ms, 6 * ms, 5, 5},
		{"two ticks", 5 * ms, 7 * ms, 5, 6},
		{"inside one tick", 5*ms + 1, 5*ms + 2, 5, 5},
		{"from inside a tick", 6*ms - 1, 8 * ms, 5, 7},
		{"to inside a tick", 5 * ms, 7*ms + 1, 5, 7},
		{"across a boundary by a hair", 6*ms - 1, 6*ms + 1, 5, 6},
		{"from before the epoch", -time.Hour, 1, 0, 0},
		{"from the epoch", 0, ms, 0, 0},
		{"to the end", all - ms, all, 1<<41 - 1, 1<<41 - 1},
		{"to past the end", all - 1, all + time.Hour, 1<<41 - 1, 1<<41 - 1},
		{"wider than the lifetime", -time.Hour, all + time.Hour, 0, 1<<41 - 1},
	} {
		lo, hi, err := l.Between(at(c.from), at(c.to))
		require.NoError(t, err, c.name)
		assert.EqualValues(t, c.first<<22, lo, c.name)
		assert.EqualValues(t, c.last<<22|(1<<22-1), hi, c.name)
	}

	lo, hi, err := l.Between(time.Unix(math.MinInt64/2, 0), time.Unix(math.MaxInt64/2, 0))
	require.NoError(t, err)
	assert.EqualValues(t, 0, lo)
	assert.Equal(t, snowflake.ID(math.MaxInt64), hi)

	for _, c := range []struct {
		from, to, at time.Duration
		message      string
	}{
		{5 * ms, 5 * ms, 5 * ms, "is both start and end of the range, which is empty"},
		{5 * ms, 4 * ms, 4 * ms, "ends the range 1ms before its start, 2025-01-01T00:00:00.005Z"},
		{-2 * ms, -ms, -ms, "ends the range 1ms before the epoch; the layout covers 2025-01-01T00:00:00Z up to, not including, 2094-09-07T15:47:35.552Z"},
		{-ms, 0, 0, "ends the range 0s before the epoch"},
		{all, all + ms, all, "starts the range 0s after the time field's end"},
		{all + ms, all + 2*ms, all + ms, "starts the range 1ms after the time field's end"},
	} {
		_, _, err := l.Between(at(c.from), at(c.to))
		require.ErrorIs(t, err, snowflake.ErrRange, c.message)
		assert.ErrorContains(t, err, "instant "+at(c.at).Format(time.RFC3339Nano))
		assert.ErrorContains(t, err, c.message)
	}
	_, _, err = snowflake.Layout{}.Between(at(0), at(1))
	assert.ErrorIs(t, err, snowflake.ErrLayout)
}

// Every ID is in the range exactly if its tick overlaps [from, to).
func TestLayoutBetweenSelectsTicks(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	for range 20_000 {
		l := randomLayout(r)
		from := randomInstant(r, l)
		to := from.Add(1 + time.Duration(r.Int64N(int64(4*l.Tick))))
		lo, hi, err := l.Between(from, to)
		require.NoError(t, err)
		for range 4 {
			near := from.Add(time.Duration(r.Int64N(int64(10*l.Tick))) - 3*l.Tick)
			id, err := l.Compose(near, r.Int64N(l.Capacity().Nodes), r.Int64N(l.Capacity().IDsPerTick))
			if err != nil {
				continue // outside the lifetime
			}
			d, err := l.Decode(id)
			require.NoError(t, err)
			overlaps := d.Time.Before(to) && d.Time.Add(l.Tick).After(from)
			require.Equal(t, overlaps, lo <= id && id <= hi, "%s: ID of %s in %s to %s", l, d.Time, from, to)
		}
	}
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
