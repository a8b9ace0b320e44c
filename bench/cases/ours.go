package cases

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/tickflake/tickflake/bench/results"
	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/strategies"
)

// Ours are the ways to make an ID with tickflake, the plain one first, with a sequence
// that is never used up.
func Ours() []Case {
	return []Case{
		Next("Next", Wide()),
		NextContext(),
		Leased("Next, under a lease", Wide()),
		strategy("Wait()", strategies.Wait()),
		strategy("BorrowUpTo(1s)", strategies.BorrowUpTo(time.Second)),
		strategy("Reject()", strategies.Reject()),
		strategy("Chain", strategies.Chain(strategies.BorrowUpTo(time.Second), strategies.WaitUpTo(5*time.Second))),
		Ahead(),
		Next("Next, random start", Wide(), generator.WithSequenceStart(strategies.StartRandom(100))),
		Stream(),
		Iterator(),
		NextN(16), NextN(128), NextN(1024),
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

// ours is a case of one generator.
func ours(name string, layout snowflake.Layout, open opener, loop func(*generator.Generator) Loop) Case {
	limit := Limit{IDs: 1 << layout.SequenceBits, Per: layout.Tick}
	return Case{Name: name, Group: results.Ours, Bits: 64, Limit: limit, Open: func(ctx context.Context) (Source, error) {
		g, err := open(ctx)
		if err != nil {
			return Source{}, err
		}
		return Source{Loop: func() Loop { return loop(g) }, Close: g.Close}, nil
	}}
}

// Next calls Generator.Next with a fixed node number.
func Next(name string, layout snowflake.Layout, opts ...generator.Option) Case {
	return ours(name, layout, fixed(layout, opts...), loopNext)
}

// Leased calls Generator.Next under a lease.
func Leased(name string, layout snowflake.Layout) Case {
	return ours(name, layout, leased(layout), loopNext)
}

// strategy calls Generator.Next under a strategy, which the wide layout never needs: it
// shows what it costs to have one.
func strategy(name string, s strategies.Strategy) Case {
	return Next("Next, "+name, Wide(), generator.WithStrategy(s))
}

// Ahead calls Generator.Next with a sequence that is used up several times as fast as
// ticks pass, so that nearly every ID is borrowed from a later tick.
func Ahead() Case {
	c := Next("Next, borrowing every ID", snowflake.Default(), generator.WithStrategy(strategies.BorrowUpTo(math.MaxInt64)))
	c.Limit.Ahead = true
	return c
}

// NextContext calls Generator.NextContext, with a context that can end.
func NextContext() Case { return ours("NextContext", Wide(), fixed(Wide()), loopContext) }

// NextN calls Generator.NextN for slices of so many IDs.
func NextN(size int) Case {
	c := ours(fmt.Sprintf("NextN(%d)", size), Wide(), fixed(Wide()), loopBatches(size))
	c.Unit = size
	return c
}

// Stream calls Stream.Next, on a stream of its own for each goroutine.
func Stream() Case { return ours("Stream.Next", Wide(), fixed(Wide()), loopStream) }

// Iterator ranges over Generator.All.
func Iterator() Case { return ours("for range All", Wide(), fixed(Wide()), loopAll) }

// fleetSize is how many generators [Fleet] has.
const fleetSize = 64

// Fleet calls Generator.Next of 64 generators with node numbers of their own, one for each
// loop. Their layout has 262,144 IDs per millisecond and node, which no run uses up, and
// lasts for 17 years.
func Fleet() Case {
	layout := snowflake.Default()
	layout.TimeBits, layout.NodeBits, layout.SequenceBits = 39, 6, 18
	limit := Limit{IDs: fleetSize << layout.SequenceBits, Per: layout.Tick}
	return Case{Name: "Next, a generator each", Group: results.Ours, Bits: 64, Limit: limit, Open: func(ctx context.Context) (Source, error) {
		var fleet [fleetSize]*generator.Generator
		for node := range fleet {
			g, err := generator.New(generator.WithLayout(layout), generator.WithNode(int64(node)))
			if err != nil {
				return Source{}, err
			}
			fleet[node] = g
		}
		loops := 0
		return Source{
			Loop: func() Loop {
				loops++
				return loopNext(fleet[(loops-1)%fleetSize])
			},
			Close: func() error {
				var errs []error
				for _, g := range fleet {
					errs = append(errs, g.Close())
				}
				return errors.Join(errs...)
			},
		}, nil
	}}
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
