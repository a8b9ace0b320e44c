package spread

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/tickflake/tickflake/bench/results"
)

// most is the share of the fullest shard.
func (s spread) most() float64 { return slices.Max(s.shares) }

func median(samples []float64) float64 { return results.Cell{Samples: samples}.Median() }

// over returns the median of what is seen in samples.
func over(samples []spread, of func(spread) float64) float64 {
	var all []float64
	for _, s := range samples {
		all = append(all, of(s))
	}
	return median(all)
}

// median returns the median of what is seen in the rounds, in percent.
func (w worn) median(of func(waste) float64) float64 {
	var all []float64
	for _, r := range w.rounds {
		all = append(all, 100*of(r))
	}
	return median(all)
}

// verdict says in words what the tables come to.
func verdict(idle []line, busy []worn) (lines []string) {
	var even, some, one []string
	for _, l := range idle {
		switch {
		case len(l.by) == 0:
		case over(l.by, func(s spread) float64 { return s.p }) >= uniform:
			even = append(even, l.name)
		case over(l.by, spread.most) == 1:
			one = append(one, l.name)
		default:
			some = append(some, l.name)
		}
	}
	for _, group := range []struct {
		says  string
		names []string
	}{
		{"At a low rate, all IDs fall into one of 16 shards: ", one},
		{"At a low rate, 16 shards are filled unevenly, beyond chance: ", some},
		{"At a low rate, 16 shards are filled evenly (p ≥ 0.01): ", even},
	} {
		if len(group.names) > 0 {
			lines = append(lines, group.says+strings.Join(group.names, ", ")+".")
		}
	}
	return append(lines, costs(busy)...)
}

// costs says what is left unused at saturation.
func costs(busy []worn) (lines []string) {
	var within, missed, random []string
	least := math.Inf(1)
	for _, w := range busy {
		if len(w.rounds) > 0 {
			least = min(least, w.median(waste.within))
		}
	}
	var best []string
	for _, w := range busy {
		if len(w.rounds) == 0 {
			continue
		}
		if unused := figure(w.median(waste.within)); w.starts > 0 {
			got := figure(w.median(func(w waste) float64 { return w.start }))
			random = append(random, fmt.Sprintf("below %d, %s%% (%s%% expected)", w.starts, got, figure(100*expected(w.starts))))
		} else {
			within = append(within, fmt.Sprintf("%s %s%%", w.name, unused))
			if unused == figure(least) {
				best = append(best, w.name)
			}
		}
		if skipped := figure(w.median(func(w waste) float64 { return w.skipped })); skipped != "0" {
			missed = append(missed, fmt.Sprintf("%s %s%%", w.name, skipped))
		}
	}
	if len(within) > 0 {
		lines = append(lines, fmt.Sprintf("Asked without a pause, these leave unused, in ticks that got IDs: %s. The least: %s.", strings.Join(within, ", "), strings.Join(best, ", ")))
	}
	if len(missed) > 0 {
		lines = append(lines, fmt.Sprintf("Ticks that got no ID, because the caller was not running, or woke up too late: %s.", strings.Join(missed, ", ")))
	}
	if len(random) > 0 {
		lines = append(lines, "What a random start costs a busy generator, of the slots in ticks that got IDs: "+strings.Join(random, "; ")+".")
	}
	return lines
}

// figure is a percentage to a hundredth.
func figure(x float64) string {
	return strings.TrimSuffix(strings.TrimRight(fmt.Sprintf("%.2f", x), "0"), ".")
}
