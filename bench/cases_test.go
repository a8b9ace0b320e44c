package bench

import (
	"log/slog"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/lease/leasetest"
)

// wide is the default layout with a sequence that no run exhausts: 4,194,304
// IDs per millisecond. It shows what an ID costs, where the default layout would
// show its ceiling.
func wide() generator.Layout {
	l := generator.DefaultLayout()
	l.NodeBits, l.SequenceBits = 0, 22
	return l
}

func newGenerator(tb testing.TB, opts ...generator.Option) *generator.Generator {
	g, err := generator.New(opts...)
	require.NoError(tb, err)
	return g
}

// newLeased returns a generator under a lease that is extended as it goes on, of a
// store in memory.
func newLeased(tb testing.TB, layout generator.Layout) *generator.Generator {
	keeper, err := lease.Claim(tb.Context(), leasetest.NewMemory(), lease.WithLayout(layout), lease.WithWindow(time.Second), lease.WithLogger(slog.New(slog.DiscardHandler)))
	require.NoError(tb, err)
	g := newGenerator(tb, generator.WithLease(keeper))
	tb.Cleanup(func() { require.NoError(tb, g.Close()) })
	return g
}

// work does something n times.
type work func(n int)

var start = time.Now()

// floor is the least that an ID can cost: a clock read and an uncontended
// compare-and-swap. The word depends on the clock's reading, as an ID does.
func floor() work {
	word := new(paddedWord)
	return func(n int) {
		for range n {
			elapsed := time.Since(start)
			old := word.Load()
			word.CompareAndSwap(old, old+1+uint64(elapsed>>62))
		}
	}
}

// paddedWord is a word that shares its cache line with nothing.
type paddedWord struct {
	_ [128]byte
	atomic.Uint64
	_ [128]byte
}

// sharedFloor is the least that an ID can cost when several goroutines share a
// word: a clock read and an atomic addition.
func sharedFloor() work {
	word := new(paddedWord)
	return func(n int) {
		for range n {
			elapsed := time.Since(start)
			word.Add(1 + uint64(elapsed>>62))
		}
	}
}

func next(tb testing.TB, g *generator.Generator) work {
	return func(n int) {
		for range n {
			if _, err := g.Next(); err != nil {
				tb.Error(err)
				return
			}
		}
	}
}

func nextN(tb testing.TB, g *generator.Generator, size int) work {
	ids := make([]generator.ID, size)
	return func(n int) {
		for ; n > 0; n -= size {
			if _, err := g.NextN(ids); err != nil {
				tb.Error(err)
				return
			}
		}
	}
}

func stream(tb testing.TB, g *generator.Generator) work {
	s := g.Stream()
	return func(n int) {
		for range n {
			if _, err := s.Next(); err != nil {
				tb.Error(err)
				return
			}
		}
	}
}

// together runs the works at the same time, n between them. None begins before
// all are there, as far as there are processors.
func together(works ...work) work {
	return func(n int) {
		var done sync.WaitGroup
		var there atomic.Int64
		wanted := int64(min(len(works), runtime.GOMAXPROCS(0)))
		for _, w := range works {
			done.Go(func() {
				there.Add(1)
				for there.Load() < wanted {
				}
				w(n / len(works))
			})
		}
		done.Wait()
	}
}

// times returns w as often as goroutines are to run it.
func times(goroutines int, w work) []work {
	works := make([]work, goroutines)
	for i := range works {
		works[i] = w
	}
	return works
}
