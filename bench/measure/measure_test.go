package measure

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shirou/gopsutil/v4/cpu"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestStolen(t *testing.T) {
	before := cpu.TimesStat{User: 100, Idle: 100, Steal: 10}
	assert.InDelta(t, 5, Stolen(before, cpu.TimesStat{User: 150, Idle: 145, Steal: 15}), 1e-9)
	assert.Zero(t, Stolen(before, before), "no time passed")
	assert.Zero(t, Stolen(before, cpu.TimesStat{User: 150, Idle: 145, Steal: 5}), "a counter that went back")
}

// Each load has its turn once per round, in different orders, next to its base, whose order is
// swapped. What fails has no further turn, and rounds end before the time is up.
func TestMeasure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var turns []string
		load := func(name string, fails int) *Load {
			n := 0
			return &Load{Row: name, Turn: func(context.Context) (Figures, error) {
				time.Sleep(10 * time.Millisecond) // virtual
				turns = append(turns, name)
				if n++; n == fails {
					return nil, errors.New("broken")
				}
				return Figures{"wall": float64(n)}, nil
			}}
		}
		base, one, two, bad := load("base", 0), load("one", 0), load("two", 0), load("bad", 3)
		one.Base = base
		run := &Run{Until: time.Now().Add(435 * time.Millisecond), Rand: rand.New(rand.NewPCG(1, 2))}
		run.Measure(t.Context(), 1, 0, bad, two, one)
		assert.Len(t, base.Figures["wall"], 12, "after 40 ms, two of 40 ms, and of 30 ms when one has failed")
		assert.Equal(t, []float64{2, 3}, one.Figures["wall"][:2], "the first turn does not count")
		assert.Error(t, bad.Err)
		assert.Len(t, bad.Figures["wall"], 1)
		var orders []string

		for chunk := range slices.Chunk(turns[len(turns)-24:], 3) {
			i, j := slices.Index(chunk, "one"), slices.Index(chunk, "base")
			require.Contains(t, []int{-1, 1}, i-j, "%v are neighbours", chunk)
			if len(orders) > 0 {
				require.NotEqual(t, orders[len(orders)-1] == "base first", j < i, "the order is swapped")
			}
			orders = append(orders, map[bool]string{true: "base first", false: "one first"}[j < i])
		}
		most := load("most", 0)
		run.Measure(t.Context(), 5, 3, most)
		assert.Len(t, most.Figures["wall"], 3)
	})
}

// A batch takes about the target, in whole units, after a lead-in that is not counted.
func TestBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, test := range []struct {
			each time.Duration
			unit int
			want int
		}{
			{40, 0, 125_000}, {40, 1024, 122 * 1024}, {39_000, 256, 256}, {time.Second, 1, 1}, {3 * time.Millisecond, 1, 2}, {0, 1000, 67_108_000},
		} {
			var asked []int
			b := &Batch{Unit: test.unit, Target: 5 * time.Millisecond, Do: []Do{func(_ context.Context, n int) (Figures, error) {
				asked = append(asked, n)
				time.Sleep(time.Duration(n) * test.each) // virtual
				return nil, nil
			}}}
			_, err := b.Turn(t.Context())
			require.NoError(t, err)
			f, err := b.Turn(t.Context())
			require.NoError(t, err)
			assert.Equal(t, test.want, asked[len(asked)-1], "%v, in units of %d", test.each, test.unit)
			assert.InDelta(t, float64(test.each), f["wall"], 1e-6)
		}
	})
}
