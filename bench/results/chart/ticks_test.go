package chart

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
)

// labels are those of the ticks that have one.
func labels(s scale) []string {
	var all []string
	for _, t := range s.ticks {
		if t.Label != "" {
			all = append(all, t.Label)
		}
	}
	return all
}

func TestScalesThatPeopleRead(t *testing.T) {
	assert.Equal(t, []string{"0", "20", "40", "60", "80", "100"}, labels(linear(12, 100.4, 6)))
	assert.Equal(t, []string{"0", "0.5", "1", "1.5"}, labels(linear(0.3, 1.2, 4)))
	assert.Equal(t, []string{"-10", "0", "10", "20", "30", "40"}, labels(linear(-3, 31, 4)))
	assert.Equal(t, []string{"1", "10", "100", "1k", "10k"}, labels(logarithmic(1, 38500)))
	assert.Equal(t, []string{"20", "50", "100", "200", "500", "1k"}, labels(logarithmic(33, 730)))
	assert.Equal(t, []string{"0", "0.2", "0.4", "0.6", "0.8", "1"}, labels(linear(0, 0, 6)), "of nothing at all")
}

func TestScalesHoldWhatIsDrawn(t *testing.T) {
	random := rand.New(rand.NewPCG(9, 10))
	for range 2000 {
		lo := math.Pow(10, random.Float64()*20-10)
		hi := lo * math.Pow(10, random.Float64()*8)
		for _, s := range []scale{linear(lo, hi, 6), linear(-hi, lo, 4), logarithmic(lo, hi)} {
			require.GreaterOrEqual(t, len(labels(s)), 1)
			require.LessOrEqual(t, len(s.ticks), 40)
			require.Less(t, s.min, s.max)
			for i := 1; i < len(s.ticks); i++ {
				require.Less(t, s.ticks[i-1].Value, s.ticks[i].Value)
			}
		}
		s := logarithmic(lo, hi)
		require.LessOrEqual(t, s.min, lo*1.000001)
		require.GreaterOrEqual(t, s.max, hi*0.999999)
		s = linear(lo, hi, 6)
		step := s.ticks[1].Value - s.ticks[0].Value
		require.Zero(t, s.min)
		require.GreaterOrEqual(t, s.max+overshoot*step*1.000001, hi)
	}
}

func TestLabelsKeepApart(t *testing.T) {
	s := scale{min: 1, max: 10000, log: true}
	for _, v := range []float64{1, 2, 3, 9999, 10000} {
		s.ticks = append(s.ticks, plot.Tick{Value: v, Label: "a label"})
	}
	kept := s.apart(300, style(soft, small, text.XCenter, text.YTop))
	var at []float64
	for _, tick := range kept.ticks {
		if tick.Label != "" {
			at = append(at, tick.Value)
		}
	}
	assert.Equal(t, []float64{1, 10000}, at)
	assert.Equal(t, "a label", s.ticks[1].Label, "the scale itself is as it was")
	assert.Len(t, labels(s.apart(vg.Length(1e5), style(soft, small, text.XCenter, text.YTop))), 4, "with room, all but one that is beside another")
}
