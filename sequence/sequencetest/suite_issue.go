package sequencetest

import (
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tickflake/tickflake/sequence"
	"github.com/tickflake/tickflake/stores"
)

// Processes and their callers in the tests of numbers.
const processes, callers = 3, 4

// run has some processes take numbers at once, each by some callers, in batches of up to
// 5. floor returns the floor of a process.
func (s *suite) run(name string, calls int, floor func(process int) *atomic.Int64, options ...sequence.Option) (*tally, []*sequence.Sequence) {
	s.Helper()
	taken := &tally{suite: s, by: 1}
	var all []*sequence.Sequence
	for range processes {
		all = append(all, s.open(s.store(), name, options...))
	}
	var calling sync.WaitGroup
	for p := range processes {
		for c := range callers {
			calling.Go(func() {
				for i := range calls {
					n := int64(1)
					if (i+c)%7 == 0 {
						n = int64(2 + i%4)
					}
					if !taken.take(all[p], n, floor(p)) {
						return
					}
				}
			})
		}
	}
	calling.Wait()
	return taken, all
}

// Three processes, each with its own client, take numbers of one segmented sequence at once.
// The missing numbers are those that the processes say they have lost: another one had a
// segment behind theirs when they closed, and no more than the bound.
func testSegmented(s *suite) {
	const name, first, step = "invoices", 1000, 64
	definition := sequence.Definition{Start: first, MinStep: 8, MaxStep: step}
	var floors [processes]atomic.Int64
	taken, all := s.run(name, 300, func(p int) *atomic.Int64 { return &floors[p] }, sequence.WithDefinition(definition))
	var lost int64
	for _, q := range all {
		before := q.Stats()
		if before.GapBound != 2*step+5 {
			s.Errorf("the bound is %d, want two segments of %d and the largest batch, 5", before.GapBound, step)
		}
		if before.Reserved > before.GapBound {
			s.Errorf("%d numbers are reserved, above the bound of %d", before.Reserved, before.GapBound)
		}
		if err := q.Close(); err != nil && !errors.Is(err, sequence.ErrNotGivenBack) {
			s.Errorf("Close: %v", err)
		}
		after := q.Stats()
		if lost := int64(after.Lost - before.Lost); lost > after.GapBound {
			s.Errorf("Close has lost %d numbers, above the bound of %d", lost, after.GapBound)
		}
		lost += int64(after.Lost)
	}
	info := s.inspect(s.store(), name)
	if missing := taken.check(first, info.Next); missing != lost {
		s.Errorf("%d numbers are missing, and the processes say that they have lost %d", missing, lost)
	}
}

// Three processes take numbers of one ordered sequence at once: consecutive, and in the
// order of real time across all of them.
func testOrdered(s *suite) {
	const name = "orders"
	var floor atomic.Int64
	taken, all := s.run(name, 40, func(int) *atomic.Int64 { return &floor },
		sequence.WithDefinition(sequence.Definition{Mode: sequence.Ordered, Start: 1}))
	for _, q := range all {
		s.must(q.Close())
	}
	if missing := taken.check(1, s.inspect(s.store(), name).Next); missing != 0 {
		s.Errorf("%d numbers are missing, and there was no crash", missing)
	}
}

// Batches of all sizes: below a segment, above one, and above two.
func testBatches(s *suite) {
	for _, mode := range []sequence.Mode{sequence.Segmented, sequence.Ordered} {
		store, name := s.store(), mode.String()
		q := s.open(store, name, sequence.WithDefinition(sequence.Definition{Mode: mode, Start: 1, MinStep: 10, MaxStep: 10}))
		taken := &tally{suite: s, by: 1}
		var floor atomic.Int64
		for _, n := range []int64{1, 10, 3, 11, 100, 1, 25, 9, 1_000_000, 2} {
			if !taken.take(q, n, &floor) {
				return
			}
		}
		for _, n := range []int64{0, -1, math.MinInt64} {
			_, err := q.NextN(s.ctx, n)
			var refused *stores.OptionError
			if !errors.As(err, &refused) {
				s.Errorf("NextN(%d): %v, want an OptionError", n, err)
			}
		}
		s.must(q.Close())
		stats := q.Stats()
		if missing := taken.check(1, s.inspect(store, name).Next); missing != int64(stats.Lost) || mode == sequence.Ordered && missing != 0 {
			s.Errorf("%s: %d numbers are missing, and %d lost", mode, missing, stats.Lost)
		}
	}
}

// Two sites without a common store share the numbers from 10 on.
func testStride(s *suite) {
	for _, mode := range []sequence.Mode{sequence.Segmented, sequence.Ordered} {
		seen := map[int64]bool{}
		for offset := range int64(3) {
			store, name := s.store(), fmt.Sprint(mode, ".", offset)
			q := s.open(store, name, sequence.WithDefinition(sequence.Definition{Mode: mode, Start: 10, Stride: sequence.Every(3, offset), MinStep: 4, MaxStep: 4}))
			for i := range int64(9) {
				s.next(q, 10+offset+3*i)
				seen[10+offset+3*i] = true
			}
			first, err := q.NextN(s.ctx, 4)
			s.must(err)
			taken := tally{suite: s, by: 3, batches: []batch{{10 + offset, 9}, {first, 4}}}
			s.must(q.Close())
			missing := taken.check(10+offset, s.inspect(store, name).Next)
			equal(s, "missing of the series", missing, int64(q.Stats().Lost))
		}
		equal(s, "numbers of the sites", len(seen), 27)
	}
}

// The maximum is the last number, also where a segment crosses it and where it is not
// of the series, and raising it lets a process go on.
func testMaximum(s *suite) {
	for _, mode := range []sequence.Mode{sequence.Segmented, sequence.Ordered} {
		store, name := s.store(), mode.String()
		q := s.open(store, name, sequence.WithDefinition(sequence.Definition{Mode: mode, Start: 1, Stride: sequence.Every(2, 0), Max: 50, MinStep: 7, MaxStep: 7}))
		for number := int64(1); number <= 45; number += 2 {
			s.next(q, number)
		}
		s.exhausted(q, 3, 2)
		s.next(q, 47)
		s.next(q, 49)
		s.exhausted(q, 1, 0)
		s.exhausted(q, 1<<60, 0)
		equal(s, "numbers left", q.Stats().Left, 0)
		equal(s, "numbers left in the store", s.inspect(store, name).Left, 0)
		_, after, err := sequence.Set(s.ctx, store, name, sequence.Change{Max: 53})
		s.must(err)
		equal(s, "numbers left after Set", after.Left, 2)
		s.goesOn(q, 51)
		s.next(q, 53)
		s.exhausted(q, 1, 0)
		s.must(q.Close())
	}
	// The largest number there is does not wrap.
	q := s.open(s.store(), "largest", sequence.WithDefinition(sequence.Definition{Start: math.MaxInt64 - 1}))
	s.next(q, math.MaxInt64-1)
	s.next(q, math.MaxInt64)
	s.exhausted(q, 1, 0)
	s.must(q.Close())
}

// exhausted asks for more numbers than are left.
func (s *suite) exhausted(q *sequence.Sequence, n, left int64) {
	s.Helper()
	_, err := q.NextN(s.ctx, n)
	var e *sequence.ExhaustedError
	if !errors.As(err, &e) {
		s.Fatalf("NextN(%d) with %d left: %v, want an ExhaustedError", n, left, err)
	}
	equal(s, "numbers asked", e.Asked, n)
	equal(s, "numbers left", e.Left, left)
}

// goesOn takes the next number, after another process has raised the maximum. For a moment
// calls may still be refused without asking the store.
func (s *suite) goesOn(q *sequence.Sequence, want int64) {
	s.Helper()
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	for {
		got, err := q.Next(s.ctx)
		var e *sequence.ExhaustedError
		if err == nil && got == want {
			return
		}
		if !errors.As(err, &e) || s.ctx.Err() != nil {
			s.Fatalf("Next after Set: %d, %v; want %d", got, err, want)
		}
		<-again.C
	}
}

// A process stops cleanly and starts again, 100 times, and there is no gap.
func testRestart(s *suite) {
	for _, mode := range []sequence.Mode{sequence.Segmented, sequence.Ordered} {
		store, name, number := s.store(), mode.String(), int64(1)
		for life := range 100 {
			q := s.open(store, name, sequence.WithDefinition(sequence.Definition{Mode: mode, Start: 1, MaxStep: 100}))
			for range life % 4 * 7 {
				s.next(q, number)
				number++
			}
			s.must(q.Close())
			if mode == sequence.Ordered && life == 10 {
				break // nothing is reserved
			}
		}
		equal(s, "the next number", s.inspect(store, name).Next, number)
	}
}

// Many sequences of one client are independent of each other.
func testMany(s *suite) {
	const many = 100
	store := s.store()
	var all [many]*sequence.Sequence
	for i := range all {
		all[i] = s.open(store, fmt.Sprint("many.", i), sequence.WithDefinition(sequence.Definition{Start: int64(i) * 1000}))
	}
	var calling sync.WaitGroup
	for i, q := range all {
		calling.Go(func() {
			for k := range int64(20) {
				if got, err := q.Next(s.ctx); err != nil || got != int64(i)*1000+k {
					s.Errorf("sequence %d: %d, %v; want %d", i, got, err, int64(i)*1000+k)
					return
				}
			}
			if err := q.Close(); err != nil {
				s.Errorf("Close: %v", err)
			}
		})
	}
	calling.Wait()
	infos, err := sequence.List(s.ctx, store)
	s.must(err)
	equal(s, "listed", len(infos), many)
	for _, info := range infos {
		equal(s, info.Name+" goes on at", info.Next, info.Definition.Start+20)
	}
}
