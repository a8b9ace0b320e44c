package generatortest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/internal/seam"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/monoclock/clocktest"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/storetest"
	"github.com/tickflake/tickflake/strategies"
)

// Leased describes tickflake's own generator under a lease. Its grants survive the end of the process, so
// scripts with restart, crash and takeover apply to it.
//
// Each process has its own Keeper and Store, on the cells of the process before. All processes claim the same
// node number, so each must begin where the grant of the one before ends; another number would hide an error.
// The keeper has no goroutine: the subject polls it before and after each call, and whenever the generator
// waits, so that nothing depends on the scheduler.
type Leased struct {
	// Strategy and Clock are the generator's. A zero Clock is the raw wall.
	Strategy strategies.Strategy
	Clock    ClockKind

	// Stores begins a script: it returns the function that opens the store of each process, on cells that
	// no other script has. nil keeps the cells in a [storetest.Memory].
	//
	// All processes of a script run in one process of the operating system, so the locks
	// of an ended process remain. If the Store has a method Crash(), it is called before
	// the next start: it unlocks the cells, as the end of a process would.
	Stores func() (open func() (stores.Store, error))

	// Layout is the layout of the IDs, by default one with 16 IDs per tick, as that of
	// [Tickflake].
	Layout snowflake.Layout
	// AnyNode lets each process take any node number that is free. By default all are pinned to number 0,
	// which is the harder case: the next process begins where the grant before ends.
	AnyNode bool
	// Options are further ones for the generator.
	Options []generator.Option
}

// Subject returns the generator, with the claim that its strategy makes. Its errors
// must be those of a generator that has a grant, since the store has no faults.
func (l Leased) Subject() Subject[snowflake.ID] {
	if l.Clock == "" {
		l.Clock = Raw
	}
	if l.Layout.Tick == 0 {
		l.Layout = snowflake.Default()
		l.Layout.SequenceBits = 4
	}
	if l.Stores == nil {
		l.Stores = func() func() (stores.Store, error) {
			cells := storetest.NewMemory()
			return func() (stores.Store, error) { return cells.Client(), nil }
		}
	}
	options := append([]generator.Option{generator.WithLayout(l.Layout), generator.WithNode(0)}, l.Options...)
	s := Tickflake(l.Strategy, l.Clock, options...)
	s.Name += " under a lease"
	s.New = func(fault *clocktest.Virtual) (Process[snowflake.ID], error) {
		return l.start(fault, l.Stores())
	}
	return s
}

// window is the length of a grant. It is shorter than most scripts.
const window = lease.DefaultLocalWindow

// start starts a process.
func (l Leased) start(fault *clocktest.Virtual, open func() (stores.Store, error)) (none Process[snowflake.ID], err error) {
	store, err := open()
	if err != nil {
		return none, err
	}
	p := &polledClock{Virtual: fault}
	clock := l.Clock.Of(p)
	claim := []lease.Option{
		lease.WithClock(clock), lease.WithLayout(l.Layout), lease.WithWindow(window),
		lease.WithTimeout(time.Minute), // in real time: many tests write to the disk
		lease.WithLogger(slog.New(slog.DiscardHandler))}
	if !l.AnyNode {
		claim = append(claim, lease.WithNode(0))
	}
	keeper, err := lease.Claim(p.In(context.Background()), store, claim...)
	if err != nil {
		return none, fmt.Errorf("claim: %w", err)
	}
	p.keeper.Store(keeper)
	options := append([]generator.Option{generator.WithStrategy(l.Strategy)}, l.Options...)
	gen, err := generator.New(append(options, generator.WithLease(keeper))...)
	if err != nil {
		return none, err
	}
	return Process[snowflake.ID]{
		Next: kept(p, gen.Next),
		NextN: func(ids []snowflake.ID) (int, error) {
			filled := 0
			return kept(p, func() (int, error) {
				n, err := gen.NextN(ids[filled:])
				filled += n
				return filled, err
			})()
		},
		Stream: func() func() (snowflake.ID, error) { return kept(p, gen.Stream().Next) },
		Now:    clock.Now,
		Close:  gen.Close,
		Restart: func() (Process[snowflake.ID], error) {
			if s, ok := store.(interface{ Crash() }); ok {
				s.Crash()
			}
			return l.start(fault, open)
		},
	}, nil
}

// polledClock polls the keeper, whose goroutine would run meanwhile, whenever a caller waits by it.
type polledClock struct {
	*clocktest.Virtual
	seam.Poller
	keeper atomic.Pointer[lease.Keeper] // nil until it has claimed
}

func (p *polledClock) poll() { _, _ = p.Poll(context.Background()) }

// After is that of [clocktest.Virtual], and polls the keeper. If the keeper has a
// new grant, or lost its node number for good, the generator knows, and no time has to pass.
func (p *polledClock) After(d time.Duration) <-chan time.Time {
	if k := p.keeper.Load(); k != nil {
		_, before := k.Granted()
		lost := errors.Is(k.Err(), lease.ErrLost)
		p.poll()
		if _, limit := k.Granted(); !limit.Equal(before) || !lost && errors.Is(k.Err(), lease.ErrLost) {
			return nil
		}
	}
	return p.Virtual.After(d)
}

// kept is a call with a poll of the keeper before and after it. A call that finds no
// grant is made again, since this keeper takes no time. In the poll after the call the
// clock is read, so that a takeover can stop the process within the keeper's work.
func kept[T any](p *polledClock, call func() (T, error)) func() (T, error) {
	return func() (T, error) {
		p.poll()
		result, err := call()
		p.poll()
		if errors.Is(err, generator.ErrNotGranted) {
			result, err = call()
		}
		return result, err
	}
}
