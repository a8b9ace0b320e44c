package measure

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// fake is a clock that goes on by itself at each reading, and when it is told to.
type fake struct {
	t       time.Time
	used    time.Duration
	reading time.Duration // that it goes on by at each reading
	stolen  bool          // a hypervisor takes time
}

func (f *fake) now() time.Time {
	f.t = f.t.Add(f.reading)
	return f.t
}

func (f *fake) cpu() (time.Duration, bool) { return f.used, true }

func (f *fake) watch() func() bool { return func() bool { return f.stolen } }

// pass lets time pass, half of which is on the processor.
func (f *fake) pass(d time.Duration) {
	f.t = f.t.Add(d)
	f.used += d / 2
}

// newRun returns a run on a fake clock, and the calls of Progress.
func newRun(f *fake, budget time.Duration) (*Run, *[]int) {
	told := new([]int)
	return &Run{
		Budget:   budget,
		Rand:     rand.New(rand.NewPCG(1, 2)),
		Progress: func(done, of int, what string) { *told = append(*told, done, of) },
		now:      f.now,
	}, told
}

func TestRoundsGiveEachItsTurnInDifferentOrders(t *testing.T) {
	f := &fake{}
	run, _ := newRun(f, time.Second)
	names := []string{"a", "b", "c", "d"}
	var turns []int
	rounds := run.Rounds(t.Context(), f.t, 1, names, func(i int) {
		turns = append(turns, i)
		f.pass(10 * time.Millisecond)
	})
	require.Equal(t, 25, rounds, "of 40 ms in 1 s")
	orders := map[[4]int]bool{}
	for order := range slices.Chunk(turns, 4) {
		sorted := slices.Sorted(slices.Values(order))
		require.Equal(t, []int{0, 1, 2, 3}, sorted)
		orders[[4]int(order)] = true
	}
	assert.Greater(t, len(orders), 5)
}

func TestRoundsStopBeforeTheBudgetIsExceeded(t *testing.T) {
	for _, test := range []struct {
		name         string
		budget, turn time.Duration
		before       time.Duration // used up before the first round
		least, want  int
	}{
		{"fits", 100 * time.Millisecond, 10 * time.Millisecond, 0, 1, 10},
		{"no room for half a round", 105 * time.Millisecond, 10 * time.Millisecond, 0, 1, 10},
		{"warm-up counts", 100 * time.Millisecond, 10 * time.Millisecond, 50 * time.Millisecond, 1, 5},
		{"at least", 0, 10 * time.Millisecond, time.Hour, 3, 3},
		{"none", 0, 10 * time.Millisecond, time.Second, 0, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := &fake{}
			run, _ := newRun(f, test.budget)
			began := f.t
			f.pass(test.before)
			got := run.Rounds(t.Context(), began, test.least, []string{"a"}, func(int) { f.pass(test.turn) })
			assert.Equal(t, test.want, got)
		})
	}
}

// Those of a group follow each other, in an order that is swapped from round to round.
func TestGroupsAreNeighbours(t *testing.T) {
	f := &fake{}
	run, _ := newRun(f, time.Second)
	var turns []int
	run.Rounds(t.Context(), f.t, 1, []string{"a", "b", "c", "d", "e"}, func(i int) {
		turns = append(turns, i)
		f.pass(10 * time.Millisecond)
	}, []int{4, 1})
	swapped := false
	places := map[int]bool{}
	for order := range slices.Chunk(turns, 5) {
		require.ElementsMatch(t, []int{0, 1, 2, 3, 4}, order)
		first, second := slices.Index(order, 4), slices.Index(order, 1)
		if swapped {
			first, second = second, first
		}
		assert.Equal(t, 1, second-first, "%v", order)
		swapped = !swapped
		places[first] = true
	}
	assert.Greater(t, len(places), 2, "the place of the group is drawn")
}
