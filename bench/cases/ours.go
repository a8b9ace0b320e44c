package cases

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"time"

	"github.com/tickflake/tickflake/bench/results"
	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/lease/leasetest"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/strategies"
)

// Wide is the default layout with a sequence that no run exhausts: 4,194,304 IDs per
// millisecond. It shows what an ID costs, where the default layout would show its
// ceiling.
func Wide() snowflake.Layout {
	l := snowflake.Default()
	l.NodeBits, l.SequenceBits = 0, 22
	return l
}

// limitOf is what the layout has room for.
func limitOf(l snowflake.Layout) Limit { return Limit{IDs: 1 << l.SequenceBits, Per: l.Tick} }

// opener makes the generator of a case.
type opener func(context.Context) (*generator.Generator, error)

// ours is a case of one generator.
func ours(name string, layout snowflake.Layout, open opener, loop func(*generator.Generator) Loop, issue func(*generator.Generator) (snowflake.ID, error)) Case {
	return Case{Name: name, Group: results.Ours, Bits: 64, Limit: limitOf(layout), Open: func(ctx context.Context) (Source, error) {
		g, err := open(ctx)
		if err != nil {
			return Source{}, err
		}
		return Source{
			Loop: func() Loop { return loop(g) },
			Issue: func() (ID, error) {
				id, err := issue(g)
				return idOfInt(uint64(id)), err
			},
			Close: g.Close,
		}, nil
	}}
}

// plain makes a generator without a lease.
func plain(layout snowflake.Layout, opts ...generator.Option) opener {
	return func(context.Context) (*generator.Generator, error) {
		return generator.New(append(opts, generator.WithLayout(layout))...)
	}
}

// leased makes a generator under a lease that is extended as it goes on, of a store in
// memory.
func leased(layout snowflake.Layout) opener {
	return func(ctx context.Context) (*generator.Generator, error) {
		keeper, err := lease.Claim(ctx, leasetest.NewMemory(), lease.WithLayout(layout),
			lease.WithWindow(time.Second), lease.WithLogger(slog.New(slog.DiscardHandler)))
		if err != nil {
			return nil, err
		}
		g, err := generator.New(generator.WithLease(keeper))
		if err != nil {
			return nil, errors.Join(err, keeper.Close())
		}
		return g, nil
	}
}

func loopNext(g *generator.Generator) Loop {
	return func(n int) error {
		for range n {
			if _, err := g.Next(); err != nil {
				return err
			}
		}
		return nil
	}
}

// Next calls Generator.Next, of a generator with the layout and options.
func Next(name string, layout snowflake.Layout, opts ...generator.Option) Case {
	return ours(name, layout, plain(layout, opts...), loopNext, (*generator.Generator).Next)
}

// Leased calls Generator.Next under a lease.
func Leased(name string, layout snowflake.Layout) Case {
	return ours(name, layout, leased(layout), loopNext, (*generator.Generator).Next)
}

// Ahead calls Generator.Next with a layout whose sequence is used up several times as
// fast as ticks pass, so that nearly every ID is borrowed from a tick not yet begun.
func Ahead() Case {
	c := Next("Next, borrowing every ID", snowflake.Default(), generator.WithStrategy(strategies.BorrowUpTo(math.MaxInt64)))
	c.Limit.Ahead = true
	return c
}

// NextContext calls Generator.NextContext, with a context that can end.
func NextContext() Case {
	return ours("NextContext", Wide(), plain(Wide()), loopContext, func(g *generator.Generator) (snowflake.ID, error) {
		return g.NextContext(context.Background())
	})
}

func loopContext(g *generator.Generator) Loop {
	return func(n int) error {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		for range n {
			if _, err := g.NextContext(ctx); err != nil {
				return err
			}
		}
		return nil
	}
}

// NextN calls Generator.NextN for slices of so many IDs.
func NextN(size int) Case {
	var ids []snowflake.ID // what Issue has left
	c := ours(fmt.Sprintf("NextN(%d)", size), Wide(), plain(Wide()), loopBatches(size), func(g *generator.Generator) (id snowflake.ID, err error) {
		if len(ids) == 0 {
			ids = make([]snowflake.ID, size)
			if _, err = g.NextN(ids); err != nil {
				return 0, err
			}
		}
		id, ids = ids[0], ids[1:]
		return id, nil
	})
	c.Unit = size
	return c
}

func loopBatches(size int) func(*generator.Generator) Loop {
	return func(g *generator.Generator) Loop {
		ids := make([]snowflake.ID, size)
		return func(n int) error {
			for ; n > 0; n -= size {
				if _, err := g.NextN(ids); err != nil {
					return err
				}
			}
			return nil
		}
	}
}

// Stream calls Stream.Next, on a stream of its own for each goroutine.
func Stream() Case {
	return ours("Stream.Next", Wide(), plain(Wide()), loopStream,
		func(g *generator.Generator) (snowflake.ID, error) { return g.Stream().Next() })
}

func loopStream(g *generator.Generator) Loop {
	s := g.Stream()
	return func(n int) error {
		for range n {
			if _, err := s.Next(); err != nil {
				return err
			}
		}
		return nil
	}
}

// Iterator ranges over Generator.All.
func Iterator() Case {
	return ours("for range All", Wide(), plain(Wide()), loopAll, func(g *generator.Generator) (snowflake.ID, error) {
		for id, err := range g.All(context.Background()) {
			return id, err
		}
		return 0, errors.New("All ended before its first element")
	})
}

func loopAll(g *generator.Generator) Loop {
	return func(n int) error {
		if n == 0 {
			return nil
		}
		for _, err := range g.All(context.Background()) {
			if err != nil {
				return err
			}
			if n--; n == 0 {
				break
			}
		}
		return nil
	}
}
