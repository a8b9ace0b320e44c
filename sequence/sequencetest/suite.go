package sequencetest

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tickflake/tickflake/sequence"
	"github.com/tickflake/tickflake/stores"
)

// patience is the time for one test on a store without faults, and for each operation.
const patience = time.Minute

// TestSequences tests sequences on a store: that they are created once, issue each number
// once, in the order and up to the maximum that their definition says, leave no gap when
// their process stops cleanly, and can be changed and deleted while processes use them.
//
// It has the arguments of storetest.TestStore: open returns an independent client of the cells
// of a namespace, which is new to the store unless an earlier call had it. It leaves cleaning
// up to t.Cleanup, and calls t.Fatal if it fails.
//
// The tests run in parallel, and TestSequences returns when all have ended. They make some
// thousand operations in all.
func TestSequences(t *testing.T, open func(t testing.TB, namespace string) stores.Store) {
	t.Run("sequences", func(t *testing.T) {
		for _, test := range []struct {
			name string
			run  func(*suite)
		}{
			{"create", testCreate},
			{"create at once", testCreateAtOnce},
			{"names", testNames},
			{"segmented", testSegmented},
			{"ordered", testOrdered},
			{"batches", testBatches},
			{"stride", testStride},
			{"maximum", testMaximum},
			{"set", testSet},
			{"delete", testDelete},
			{"restart", testRestart},
			{"many", testMany},
		} {
			t.Run(test.name, func(t *testing.T) {
				t.Parallel()
				ctx, cancel := context.WithTimeout(context.Background(), patience)
				t.Cleanup(cancel)
				test.run(&suite{T: t, ctx: ctx, opener: open, namespace: "t" + rand.Text()[:12]})
			})
		}
	})
}

// suite is one test in a namespace of its own.
type suite struct {
	*testing.T
	ctx       context.Context
	opener    func(testing.TB, string) stores.Store
	namespace string
}

// store returns a client of its own, as each process has.
func (s *suite) store() stores.Store {
	s.Helper()
	return s.opener(s.T, s.namespace)
}

func (s *suite) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// wants fails the test unless err wraps target, and no retry helps, since all these errors
// are refusals.
func (s *suite) wants(what string, err, target error) {
	s.Helper()
	if !errors.Is(err, target) {
		s.Errorf("%s: error %v, want one that wraps %q", what, err, target)
	}
	if kind := stores.KindOf(err); kind != stores.Refused {
		s.Errorf("%s: error %v is %v, want it %v", what, err, kind, stores.Refused)
	}
}

func equal[T comparable](s *suite, what string, got, want T) {
	s.Helper()
	if got != want {
		s.Errorf("%s: %v, want %v", what, got, want)
	}
}

// open opens a sequence of a store, which has as much time as the test.
func (s *suite) open(store stores.Store, name string, options ...sequence.Option) *sequence.Sequence {
	s.Helper()
	options = append([]sequence.Option{sequence.WithTimeout(patience), sequence.WithLogger(slog.New(slog.DiscardHandler))}, options...)
	q, err := sequence.Open(s.ctx, store, name, options...)
	s.must(err)
	return q
}

func (s *suite) inspect(store stores.Store, name string) sequence.Info {
	s.Helper()
	info, err := sequence.Inspect(s.ctx, store, name)
	s.must(err)
	return info
}

// next takes one number, which must be want.
func (s *suite) next(q *sequence.Sequence, want int64) {
	s.Helper()
	got, err := q.Next(s.ctx)
	s.must(err)
	if got != want {
		s.Fatalf("Next: %d, want %d", got, want)
	}
}

// batch is what one call has taken.
type batch struct{ first, n int64 }

// tally has all numbers that some callers have taken.
type tally struct {
	*suite
	by int64 // the stride

	mu      sync.Mutex
	batches []batch
}

// take takes numbers by one call. It returns false after an error, which it reports.
//
// floor has the highest number that was returned before, by the calls that the number must
// be in order with.
func (l *tally) take(q *sequence.Sequence, n int64, floor *atomic.Int64) bool {
	before := floor.Load()
	first, err := int64(0), error(nil)
	if n == 1 {
		first, err = q.Next(l.ctx)
	} else {
		first, err = q.NextN(l.ctx, n)
	}
	if err != nil {
		l.Errorf("take %d: %v", n, err)
		return false
	}
	if first <= before {
		l.Errorf("%d was issued by a call that began after another had returned %d", first, before)
		return false
	}
	last := first + (n-1)*l.by
	for high := floor.Load(); high < last && !floor.CompareAndSwap(high, last); high = floor.Load() {
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.batches = append(l.batches, batch{first, n})
	return true
}

// check checks that no number was taken twice and that all are of the series from first on,
// and returns how many of the series below next are missing.
func (l *tally) check(first, next int64) (missing int64) {
	l.Helper()
	slices.SortFunc(l.batches, func(a, b batch) int { return cmp.Compare(a.first, b.first) })
	at := first
	for _, b := range l.batches {
		switch {
		case (b.first-first)%l.by != 0:
			l.Fatalf("%d is not of the series from %d by %d", b.first, first, l.by)
		case b.first < at:
			l.Fatalf("%d was issued twice, or is below %d", b.first, first)
		}
		missing += (b.first - at) / l.by
		at = b.first + b.n*l.by
	}
	if next < at {
		l.Fatalf("the sequence ends at %d, and %d was issued", next, at-l.by)
	}
	return missing + (next-at)/l.by
}
