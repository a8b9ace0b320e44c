package snowflake_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/snowflake"
)

func TestPlan(t *testing.T) {
	epoch := time.Date(2030, 6, 1, 0, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		name   string
		demand snowflake.Demand
		want   string // a layout spec
	}{
		{"Twitter's widths", snowflake.Demand{Nodes: 1024, RatePerNode: 4_096_000, Years: 69}, "41/10/12"},
		{"spare bits go to the sequence, then to time", snowflake.Demand{Nodes: 100, RatePerNode: 50_000, Years: 10}, "44/7/12"},
		{"a single slow node", snowflake.Demand{Nodes: 1, RatePerNode: 0.1, Years: 1}, "51/0/12"},
		{"a sequence beyond 4096", snowflake.Demand{Nodes: 2, RatePerNode: 1e8, Years: 10}, "45/1/17"},
		{"few bits to spare", snowflake.Demand{Nodes: 1 << 14, RatePerNode: 100_000, Years: 60}, "41/14/8"},
		{"an epoch", snowflake.Demand{Nodes: 1024, RatePerNode: 4_096_000, Years: 69, Epoch: epoch}, "41/10/12,epoch=2030-06-01"},
		{"a JavaScript number", snowflake.Demand{Nodes: 128, RatePerNode: 25_600, Years: 80, Bits: 53}, "38/7/8,tick=10ms"},
		{"a finer tick", snowflake.Demand{Nodes: 1024, RatePerNode: 5_000_000, Years: 50}, "44/10/9,tick=100us"},
		{"seconds", snowflake.Demand{Nodes: 1 << 32, RatePerNode: 1, Years: 60}, "31/32/0,tick=1s"},
		{"a small budget", snowflake.Demand{Nodes: 4, RatePerNode: 16, Years: 1, Bits: 32}, "29/2/1,tick=100ms"},
	} {
		want, err := snowflake.ParseLayout(c.want)
		require.NoError(t, err)
		got, err := snowflake.Plan(c.demand)
		require.NoError(t, err, c.name)
		assert.Equal(t, want, got, c.name)
	}
}

func TestPlanMeetsTheDemand(t *testing.T) {
	r := rand.New(rand.NewPCG(13, 14))
	ticks := map[time.Duration]int{}
	fits, fails := 0, 0
	tiny := math.SmallestNonzeroFloat64
	demands := []snowflake.Demand{ // at the bounds
		{Nodes: 1, RatePerNode: tiny, Years: tiny, Epoch: layout2025, Bits: 63},
		{Nodes: 1, RatePerNode: tiny, Years: tiny, Epoch: layout2025, Bits: 1},
		{Nodes: 1 << 62, RatePerNode: tiny, Years: tiny, Epoch: layout2025, Bits: 63},
		{Nodes: 1, RatePerNode: tiny, Years: 7000, Epoch: time.Unix(0, math.MaxInt64), Bits: 63},
		{Nodes: 1 << 62, RatePerNode: 1e15, Years: 7000, Epoch: layout2025, Bits: 1},
	}
	for range 6000 {
		demands = append(demands, snowflake.Demand{
			Nodes:       1 + r.Int64N(1<<r.IntN(40)),
			RatePerNode: math.Exp2(r.Float64()*40 - 10),
			Years:       math.Exp2(r.Float64()*18 - 7),
			Epoch:       time.Unix(r.Int64N(1<<33), 0).UTC(),
			Bits:        20 + r.IntN(44),
		})
	}
	for i, d := range demands {
		l, err := snowflake.Plan(d)
		if err == nil {
			fits++
			ticks[l.Tick]++
			requireMeets(t, d, l)
			continue
		}
		fails++
		var planErr *snowflake.PlanError
		require.ErrorAs(t, err, &planErr)
		require.Greater(t, planErr.Bits, d.Bits)
		require.GreaterOrEqual(t, i, 4, "it fits at the bounds")

		// Each way out that the error names works, and is the largest that does.
		if planErr.MaxNodes > 0 {
			less := d
			less.Nodes = planErr.MaxNodes
			requireTight(t, less, func(d *snowflake.Demand) { d.Nodes++ })
		}
		if planErr.MaxRatePerNode > 0 {
			less := d
			less.RatePerNode = planErr.MaxRatePerNode
			requireTight(t, less, func(d *snowflake.Demand) { d.RatePerNode *= 1.000001 })
		}
		if planErr.MaxYears > 0 {
			less := d
			less.Years = planErr.MaxYears
			requireTight(t, less, func(d *snowflake.Demand) { d.Years *= 1.000001 })
		}
		if planErr.Bits <= 63 {
			more := d
			more.Bits = planErr.Bits
			requireTight(t, more, func(d *snowflake.Demand) { d.Bits-- })
		}
	}
	assert.Greater(t, fits, 1000)
	assert.Greater(t, fails, 1000)
	assert.Len(t, ticks, 5, "every tick has its use: %v", ticks)
}

func requireMeets(t *testing.T, d snowflake.Demand, l snowflake.Layout) {
	t.Helper()
	require.NoError(t, l.Validate())
	c := l.Capacity()
	require.GreaterOrEqual(t, c.Nodes, d.Nodes)
	require.GreaterOrEqual(t, c.IDsPerSecond, d.RatePerNode)
	require.GreaterOrEqual(t, l.TimeBits+l.NodeBits+l.SequenceBits, min(d.Bits, 62))
	require.LessOrEqual(t, l.TimeBits+l.NodeBits+l.SequenceBits, d.Bits)
	lived := float64(l.End().Unix()-d.Epoch.Unix()+1) / (365.25 * 24 * 60 * 60)
	require.GreaterOrEqual(t, lived, d.Years, "%s ends at %s", l, l.End())
}

// requireTight checks that the demand fits, and no longer does when raised.
func requireTight(t *testing.T, d snowflake.Demand, raise func(*snowflake.Demand)) {
	t.Helper()
	l, err := snowflake.Plan(d)
	require.NoError(t, err)
	requireMeets(t, d, l)
	raise(&d)
	_, err = snowflake.Plan(d)
	require.Error(t, err, "%+v", d)
}
