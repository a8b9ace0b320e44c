// Package measure runs the cases of a benchmark side by side: in one process, in turn, in
// random order, in many rounds, so that a disturbance of the machine affects them all
// alike. A work and its base are neighbours in each round, and a [Pair] compares them in the
// rounds that were not disturbed.
//
// You need these names: a [Section] of the report measures within a [Run]. It passes its
// [Work] values to [Interleave], which returns [Samples], or takes turns by [Run.Rounds].
// [Compare] makes the Pair of two works, and [Watch] tells whether a turn was disturbed.
package measure

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/tickflake/tickflake/bench/results"
)

// Section is one kind of measurement.
type Section struct {
	ID, Title string
	About     string // what is measured, and how
	// Full and Quick are about how long the section takes.
	Full, Quick time.Duration
	// Measure returns the tables, targets and notes, or the reason why the section is
	// skipped. When ctx ends, it soon returns what it has.
	Measure func(ctx context.Context, run *Run) results.Section
	// Verdict says in one sentence what the tables show. It returns "" if they show
	// nothing. A nil Verdict is one that always does.
	Verdict func(results.Section) string
}

// Run is how to measure a section.
type Run struct {
	Quick  bool
	Budget time.Duration // what the section may take
	Rand   *rand.Rand    // for the order of the cases
	// Progress is told what runs, and how many parts of the section's work are done.
	// It may be nil.
	Progress func(done, of int, what string)

	now func() time.Time // nil: time.Now
}

// Rounds gives each of names its turn once per round, in an order that is drawn anew for
// every round, and returns how many rounds are complete. It ends before the round that
// would exceed run.Budget, counted from began, but not before there are least rounds; or
// when ctx ends, after the turn that is in progress.
//
// The names of a group, by their indices, follow each other, so that a disturbance of the
// machine affects both of a pair. Their order is swapped from one round to the next. A name
// is in one group at most.
func (run *Run) Rounds(ctx context.Context, began time.Time, least int, names []string, turn func(i int), groups ...[]int) int {
	blocks := blocksOf(len(names), groups)
	first := run.time()
	told := began
	for round := 0; ; round++ {
		now := run.time()
		if each := now.Sub(first) / time.Duration(max(round, 1)); round >= least && now.Sub(began)+each > run.Budget {
			return round
		}
		for _, block := range run.Rand.Perm(len(blocks)) {
			for _, i := range blocks[block] {
				if ctx.Err() != nil {
					return round
				}
				if now = run.time(); now.Sub(told) >= tellEvery {
					told = now
					run.tell(now.Sub(began), fmt.Sprintf("round %d: %s", round+1, names[i]))
				}
				turn(i)
			}
			slices.Reverse(blocks[block])
		}
	}
}

// blocksOf returns the groups, and a block for each of n indices that is in none.
func blocksOf(n int, groups [][]int) [][]int {
	var blocks [][]int
	grouped := make([]bool, n)
	for _, g := range groups {
		blocks = append(blocks, slices.Clone(g))
		for _, i := range g {
			grouped[i] = true
		}
	}
	for i, in := range grouped {
		if !in {
			blocks = append(blocks, []int{i})
		}
	}
	return blocks
}

// tellEvery is the least time between two reports of progress, so that they do not disturb
// the measurement.
const tellEvery = 100 * time.Millisecond

// tell reports that so much of the budget is used up.
func (run *Run) tell(used time.Duration, what string) {
	if run.Progress != nil {
		run.Progress(int(min(used, run.Budget).Milliseconds()), int(run.Budget.Milliseconds()), what)
	}
}

// time is the time that budgets are counted in.
func (run *Run) time() time.Time {
	if run.now != nil {
		return run.now()
	}
	return time.Now()
}
