package generators

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/tickflake/tickflake/bench/report"
	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/monoclock"
	"github.com/tickflake/tickflake/publicid"
	"github.com/tickflake/tickflake/sequence"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/stores/storetest"
)

// start is the base of the clock readings of the floors.
var start = time.Now()

// The least that an ID or a number can cost. Each new word depends on the clock reading, as an ID
// does, where there is one.
var (
	Floor = floor("floor: clock read + compare-and-swap", func(word *atomic.Uint64) {
		elapsed, old := time.Since(start), word.Load()
		word.CompareAndSwap(old, old+1+uint64(elapsed>>62))
	})
	// SharedFloor is that of goroutines that share a word.
	SharedFloor = floor("floor: clock read + atomic addition", func(word *atomic.Uint64) { word.Add(1 + uint64(time.Since(start)>>62)) })
	// AddFloor is that of a counted number.
	AddFloor = floor("floor: atomic addition", func(word *atomic.Uint64) { word.Add(1) })
	// SwapFloor is that of goroutines that share a counter with a bound.
	SwapFloor = floor("floor: compare-and-swap loop", func(word *atomic.Uint64) {
		for {
			if old := word.Load(); word.CompareAndSwap(old, old+1) {
				return
			}
		}
	})
	// OwnFloor is Floor on a word for each loop: loops that share nothing.
	OwnFloor = Case{Name: Floor.Name + ", a word each", Group: report.Floor, Open: func(ctx context.Context) (Source, error) {
		return Source{Loop: func() Loop {
			alone, _ := Floor.Open(ctx) // opening a floor does not fail
			return alone.Loop()
		}}, nil
	}}
)

func floor(name string, next func(*atomic.Uint64)) Case {
	return Case{Name: name, Group: report.Floor, Open: func(context.Context) (Source, error) {
		word := new(struct { // in a cache line of its own
			_ [128]byte
			atomic.Uint64
			_ [128]byte
		})
		return shared(loop(func() (int, error) { next(&word.Uint64); return 0, nil }), nil)
	}}
}

// EmptyLoop makes no ID.
var EmptyLoop = Case{Name: "empty loop", Group: report.Floor, Open: func(context.Context) (Source, error) {
	return shared(func(int) error { return nil }, nil)
}}

// Ours are the ways to make an ID with tickflake, the plain one first, with a sequence
// that is never used up.
func Ours() []Case {
	return []Case{
		Next("Next", Wide()),
		Leased("Next, under a lease", Wide()),
		Stream("Stream.Next", Wide()),
		ours("NextAfter", Wide(), fixed(Wide()), func(g *generator.Generator) Loop { // each answers the one before
			var seen snowflake.ID
			return loop(func() (id snowflake.ID, err error) {
				seen, err = g.NextAfter(context.Background(), seen)
				return seen, err
			})
		}),
		nextN(1024),
	}
}

// Wide is the default layout with a sequence of 4,194,304 IDs per millisecond, which no
// run uses up: it shows what an ID costs, and not the ceiling of the layout.
func Wide() snowflake.Layout {
	l := snowflake.Default()
	l.NodeBits, l.SequenceBits = 0, 22
	return l
}

// opener makes the generator of a case.
type opener func(context.Context) (*generator.Generator, error)

// fixed makes a generator with a fixed node number and a clock of its own, so that it shares no word with another case.
func fixed(layout snowflake.Layout, opts ...generator.Option) opener {
	return func(context.Context) (*generator.Generator, error) {
		return generator.New(append(opts, generator.WithLayout(layout), generator.WithNode(0), generator.WithClock(monoclock.New()))...)
	}
}

// ours is a case of one generator.
func ours(name string, layout snowflake.Layout, open opener, loop func(*generator.Generator) Loop) Case {
	limit := Limit{IDs: 1 << layout.SequenceBits, Per: layout.Tick}
	return Case{Name: name, Group: report.Ours, Limit: limit, Open: func(ctx context.Context) (Source, error) {
		g, err := open(ctx)
		if err != nil {
			return Source{}, err
		}
		return Source{Loop: func() Loop { return loop(g) }, Close: g.Close}, nil
	}}
}

func next(g *generator.Generator) Loop { return loop(g.Next) }

// Next calls Generator.Next with a fixed node number.
func Next(name string, layout snowflake.Layout, opts ...generator.Option) Case {
	return ours(name, layout, fixed(layout, opts...), next)
}

// Leased calls Generator.Next under a lease in a store in memory, which is extended meanwhile.
func Leased(name string, layout snowflake.Layout) Case {
	return ours(name, layout, func(ctx context.Context) (*generator.Generator, error) {
		keeper, err := lease.Claim(ctx, storetest.NewMemory(), lease.WithLayout(layout), lease.WithWindow(time.Second), lease.WithLogger(slog.New(slog.DiscardHandler)))
		if err != nil {
			return nil, err
		}
		return generator.New(generator.WithLease(keeper))
	}, next)
}

// nextN calls Generator.NextN for slices of so many IDs.
func nextN(size int) Case {
	c := ours(fmt.Sprintf("NextN(%d)", size), Wide(), fixed(Wide()), func(g *generator.Generator) Loop {
		ids := make([]snowflake.ID, size)
		return loop(func() (int, error) { return g.NextN(ids) })
	})
	c.Unit = size
	return c
}

// Stream calls Stream.Next, on a stream of its own for each goroutine.
func Stream(name string, layout snowflake.Layout) Case {
	return ours(name, layout, fixed(layout), func(g *generator.Generator) Loop { return loop(g.Stream().Next) })
}

// Public encodes one number after the other for strangers.
func Public() Case {
	return Case{Name: "publicid.Encode", Group: report.Ours, Clockless: true, Note: "the public form of an ID that there is: ten rounds of AES; its floor is an atomic addition", Open: func(context.Context) (Source, error) {
		codec, err := publicid.New([]byte("a secret of at least 16 bytes"))
		return Source{Loop: func() Loop {
			number := start.UnixMilli() << 22
			return loop(func() (string, error) { number++; return codec.Encode(number), nil })
		}}, err
	}}
}

// Number calls Sequence.Next in segmented mode. Its segments have the largest step, so the store is
// hardly ever asked: the case shows the cost of a number that is in reserve.
func Number() Case {
	return Case{Name: "Sequence.Next", Group: report.Ours, Clockless: true, Note: "a counted number, in segmented mode: no clock is read, and its floor is an atomic addition", Open: func(ctx context.Context) (Source, error) {
		store := storetest.NewMemory()
		s, err := sequence.Open(ctx, store, "orders", sequence.WithLogger(slog.New(slog.DiscardHandler)),
			sequence.WithDefinition(sequence.Definition{MinStep: sequence.MaxStep, MaxStep: sequence.MaxStep}))
		if err != nil {
			return Source{}, errors.Join(err, store.Close())
		}
		next := loop(func() (int64, error) { return s.Next(context.Background()) })
		return Source{Loop: func() Loop { return next }, Close: func() error { return errors.Join(s.Close(), store.Close()) }}, nil
	}}
}
