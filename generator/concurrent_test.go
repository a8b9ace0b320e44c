package generator_test

import (
	"errors"
	"flag"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/strategies"
)

// wide holds 4,194,304 IDs per millisecond, so that callers contend for the word
// and not for the clock.
func wide() snowflake.Layout {
	l := snowflake.Default()
	l.NodeBits, l.SequenceBits = 0, 22
	return l
}

var millions = flag.Int("generator.millions", 10, "so many million IDs in TestMillions")

// Millions of IDs from 8 goroutines are all different, and ascend for each. They
// are checked in rounds: within a round by merging, and from round to round
// because every ID of a round is larger than all before it.
func TestMillions(t *testing.T) {
	const goroutines, perRound = 8, 1_000_000
	rounds := *millions
	if raceDetector {
		rounds = min(rounds, 2)
	}
	g := newGenerator(t, generator.WithLayout(wide()))
	ids := make([]snowflake.ID, perRound)
	largest := snowflake.ID(-1)
	for range rounds {
		var group errgroup.Group
		for i := range goroutines {
			own := ids[i*perRound/goroutines : (i+1)*perRound/goroutines]
			group.Go(func() error {
				last := snowflake.ID(-1)
				for j := range own {
					id, err := g.Next()
					if err != nil {
						return err
					}
					if id <= last {
						return fmt.Errorf("%d after %d", id, last)
					}
					own[j], last = id, id
				}
				return nil
			})
		}
		require.NoError(t, group.Wait())
		slices.Sort(ids)
		require.Greater(t, ids[0], largest, "an ID of a round that is over comes again, or is overtaken")
		for i := 1; i < len(ids); i++ {
			if ids[i] == ids[i-1] {
				t.Fatalf("%d twice", ids[i])
			}
		}
		largest = ids[len(ids)-1]
	}
}

// operation is one call in a recorded history: the logical times of its begin
// and its return, and what it returned.
type operation struct {
	begin, end  int64
	first, last snowflake.ID
}

// checkOrder fails unless each operation's IDs are larger, by less, than those of
// every operation that had returned before it began.
func checkOrder(t *testing.T, history []operation, less func(a, b snowflake.ID) bool) {
	t.Helper()
	byEnd := slices.Clone(history)
	slices.SortFunc(byEnd, func(a, b operation) int { return int(a.end - b.end) })
	slices.SortFunc(history, func(a, b operation) int { return int(a.begin - b.begin) })
	ended := 0
	largest := snowflake.ID(-1)
	for _, op := range history {
		for ; byEnd[ended].end < op.begin; ended++ {
			largest = max(largest, byEnd[ended].last)
		}
		if largest >= 0 && !less(largest, op.first) {
			t.Fatalf("%d was issued after %d had been returned", op.first, largest)
		}
	}
}

// record runs callers on several goroutines at once and returns the history. It
// goes on until at least two calls have overlapped, as they do at once unless the
// machine is busy: a history of calls one after the other shows nothing.
// Goroutines that share one processor hardly ever overlap, so they get threads.
func record(t *testing.T, goroutines, calls int, caller func() func() (first, last snowflake.ID, err error)) []operation {
	t.Helper()
	var now atomic.Int64
	var history []operation
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(max(goroutines, runtime.GOMAXPROCS(0))))
	for round, overlaps := 0, false; !overlaps; round++ {
		require.Less(t, round, 100, "no two calls overlapped: the history shows nothing")
		histories := make([][]operation, goroutines)
		var group errgroup.Group
		for i := range goroutines {
			call := caller()
			group.Go(func() error {
				for range calls {
					op := operation{begin: now.Add(1)}
					var err error
					if op.first, op.last, err = call(); err != nil {
						return err
					}
					op.end = now.Add(1)
					histories[i] = append(histories[i], op)
				}
				return nil
			})
		}
		require.NoError(t, group.Wait())
		for _, op := range slices.Concat(histories...) {
			history = append(history, op)
			overlaps = overlaps || op.end > op.begin+1
		}
	}
	return history
}

// steppingClock is the machine's clock, stepped back by a millisecond or a few
// at every so-manieth reading.
type steppingClock struct {
	readings, offset atomic.Int64
}

func (c *steppingClock) Now() time.Time {
	if n := c.readings.Add(1); n%500 == 0 {
		c.offset.Add(-(n / 500 % 5) * int64(time.Millisecond))
	} else if n%700 == 0 {
		c.offset.Add(2 * int64(time.Millisecond))
	}
	return time.Now().Round(0).Add(time.Duration(c.offset.Load()))
}

func TestOrderOfHistory(t *testing.T) {
	less := func(a, b snowflake.ID) bool { return a < b }
	clocks := map[string][]generator.Option{
		"steady":    nil,
		"exhausted": {generator.WithLayout(snowflake.Sonyflake()), generator.WithStrategy(strategies.BorrowUpTo(time.Hour))},
		"stepping":  {generator.WithClock(&steppingClock{}), generator.WithStrategy(strategies.BorrowUpTo(time.Hour))},
		"own":       {generator.WithClock(&steppingClock{}), generator.WithStrategy(borrower{})},
		"waiting":   {generator.WithClock(&steppingClock{}), generator.WithStrategy(strategies.Wait())},
	}
	for name, opts := range clocks {
		t.Run(name, func(t *testing.T) {
			calls := 20_000
			if name == "waiting" {
				calls = 2_000
			}
			g := newGenerator(t, opts...)
			if name != "steady" {
				defer func() { require.Positive(t, g.Stats().MaxLead, "the clock was never behind") }()
			}
			t.Run("Next", func(t *testing.T) {
				checkOrder(t, record(t, 4, calls, func() func() (a, b snowflake.ID, err error) {
					return func() (a, b snowflake.ID, err error) { id, err := g.Next(); return id, id, err }
				}), less)
			})
			t.Run("NextN", func(t *testing.T) {
				checkOrder(t, record(t, 4, calls/10, func() func() (a, b snowflake.ID, err error) {
					ids := make([]snowflake.ID, 10)
					return func() (a, b snowflake.ID, err error) {
						_, err = g.NextN(ids)
						return ids[0], ids[len(ids)-1], err
					}
				}), less)
			})
			t.Run("Stream", func(t *testing.T) {
				l := g.Layout()
				// Order holds from tick to tick only.
				tick := l.NodeBits + l.SequenceBits
				history := record(t, 4, calls, func() func() (a, b snowflake.ID, err error) {
					s, last := g.Stream(), snowflake.ID(-1)
					return func() (a, b snowflake.ID, err error) {
						id, err := s.Next()
						if err == nil && id <= last {
							err = fmt.Errorf("stream went from %d to %d", last, id)
						}
						last = id
						return id, id, err
					}
				})
				checkOrder(t, history, func(a, b snowflake.ID) bool { return a>>tick <= b>>tick })
				seen := make(map[snowflake.ID]bool, len(history))
				for _, op := range history {
					require.False(t, seen[op.first], "%d twice", op.first)
					seen[op.first] = true
				}
			})
		})
	}
}

// Calls, batches and streams draw on one word.
func TestMixedCallersAreUnique(t *testing.T) {
	g := newGenerator(t, generator.WithStrategy(strategies.BorrowUpTo(time.Hour)))
	const each = 50_000
	found := make([][]snowflake.ID, 6)
	var group errgroup.Group
	for i := range found {
		group.Go(func() error {
			own := make([]snowflake.ID, 0, each+99)
			s, batch := g.Stream(), make([]snowflake.ID, 99)
			for len(own) < each {
				var id snowflake.ID
				var err error
				switch i % 3 {
				case 0:
					id, err = g.Next()
				case 1:
					id, err = s.Next()
				case 2:
					_, err = g.NextN(batch)
					own = append(own, batch[1:]...)
					id = batch[0]
				}
				if err != nil {
					return err
				}
				own = append(own, id)
			}
			found[i] = own
			return nil
		})
	}
	require.NoError(t, group.Wait())
	all := slices.Concat(found...)
	slices.Sort(all)
	for i := 1; i < len(all); i++ {
		require.NotEqual(t, all[i-1], all[i])
	}
}

// stillClock stands still, and is read in no time.
type stillClock struct{}

func (stillClock) Now() time.Time { return noon }

// Two close the generator at the same moment. It is closed for each of them when
// its own Close returns, also for the one who came second. There is little time
// for one to come between the other's steps, hence the many rounds.
func TestCloseTwiceAtOnce(t *testing.T) {
	const closers, rounds = 2, 10_000
	generators, batches := make([]*generator.Generator, rounds), 5
	if raceDetector { // which slows down the steps, so that they meet more often
		batches = 1
	}
	for range batches {
		for i := range generators {
			generators[i] = newGenerator(t, generator.WithLayout(wide()), generator.WithClock(stillClock{}))
		}
		var arrived atomic.Int64
		var group errgroup.Group
		for range closers {
			group.Go(func() error {
				for i, g := range generators {
					arrived.Add(1)
					for spins := 1; arrived.Load() < int64(closers*(i+1)); spins++ {
						if spins%1000 == 0 { // the other may need this core
							runtime.Gosched()
						}
					}
					if err := g.Close(); err != nil {
						return err
					}
					if id, err := g.Next(); id != 0 || !errors.Is(err, generator.ErrClosed) {
						arrived.Add(closers * rounds) // the other need not wait
						return fmt.Errorf("Next after Close: %d, %v", id, err)
					}
				}
				return nil
			})
		}
		require.NoError(t, group.Wait())
	}
}

// Several close the generator while others draw on it in every way. Once any
// Close has returned, nobody gets an ID, and before that everybody gets one or
// ErrClosed.
func TestCloseAmongCallers(t *testing.T) {
	for range 20 {
		g := newGenerator(t, generator.WithLayout(wide()))
		var closed atomic.Bool
		var group, begun sync.WaitGroup
		call := func(next func() (snowflake.ID, error)) {
			begun.Add(1)
			group.Go(func() {
				for first := true; ; first = false {
					over := closed.Load()
					id, err := next()
					if first {
						begun.Done()
					}
					if err != nil {
						assert.ErrorIs(t, err, generator.ErrClosed)
						assert.Zero(t, id)
						return
					}
					if !assert.False(t, over, "%d was issued after a Close had returned", id) {
						return
					}
				}
			})
		}
		call(g.Next)
		call(g.Stream().Next)
		ids := make([]snowflake.ID, 2)
		call(func() (snowflake.ID, error) {
			if _, err := g.NextN(ids); err != nil {
				return 0, err // one may have been filled before
			}
			return ids[0], nil
		})
		begun.Wait()
		for range 4 {
			group.Go(func() {
				assert.NoError(t, g.Close())
				closed.Store(true)
			})
		}
		group.Wait()
	}
}
