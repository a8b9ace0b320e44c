package spread

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/bwmarrin/snowflake"
	"github.com/sony/sonyflake"

	"github.com/tickflake/tickflake/bench/results"
	"github.com/tickflake/tickflake/bench/yours"
	"github.com/tickflake/tickflake/generator"
	flake "github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/strategies"
)

// busy is a generator that issues IDs without a pause.
type busy struct {
	name    string
	group   results.Group
	tick    time.Duration
	perTick slot
	starts  int64 // bound of the random number that a sequence starts at, or 0
	issue   issuer
	close   func() error
}

const (
	perTick = 4096 // in the default layout, and of bwmarrin/snowflake
	batch   = 1024 // for NextN
)

// starts are the ranges of random sequence starts that are compared; 0 is a start at
// zero.
var starts = []int64{0, 2, 16, 256, perTick}

// startOf is the sequence start with such a range.
func startOf(below int64) strategies.SequenceStart {
	if below == 0 {
		return strategies.StartZero()
	}
	return strategies.StartRandom(below)
}

// openAll opens the generators. On an error it closes those that are open.
func openAll() (all []busy, err error) {
	defer func() {
		if err != nil {
			closeAll(all)
		}
	}()
	for _, below := range starts {
		b, err := ours(fmt.Sprintf("tickflake Next, start %s", startOf(below)), below, next)
		if err != nil {
			return all, err
		}
		all = append(all, b)
	}
	for _, way := range []struct {
		name  string
		issue func(*generator.Generator) issuer
	}{{fmt.Sprintf("tickflake NextN(%d)", batch), nextN}, {"tickflake stream", stream}, {"tickflake 2 streams at once", twoStreams}} {
		b, err := ours(way.name, 0, way.issue)
		if err != nil {
			return all, err
		}
		all = append(all, b)
	}
	node, err := snowflake.NewNode(7)
	if err != nil {
		return all, err
	}
	all = append(all, busy{name: "bwmarrin/snowflake", group: results.Peers, tick: time.Millisecond, perTick: perTick, issue: func(into []slot, ticks int) ([]slot, error) {
		return until(into, perTick, ticks, func() (slot, error) { return slotOf(int64(node.Generate())), nil })
	}})
	sony, err := sonyflake.New(sonyflake.Settings{MachineID: func() (uint16, error) { return 7, nil }})
	if err != nil {
		return all, err
	}
	all = append(all, busy{name: "sony/sonyflake", group: results.Peers, tick: 10 * time.Millisecond, perTick: 256, issue: func(into []slot, ticks int) ([]slot, error) {
		return until(into, 256, ticks, func() (slot, error) {
			id, err := sony.NextID()
			return slot(id >> sonyflake.BitLenMachineID), err
		})
	}})
	for _, g := range yours.List() {
		next, err := g.New(yours.System{})
		if err != nil {
			return all, fmt.Errorf("%s: %w", g.Name, err)
		}
		all = append(all, busy{name: g.Name, group: results.Peers, tick: g.Tick, perTick: slot(g.PerTick), issue: func(into []slot, ticks int) ([]slot, error) {
			return until(into, slot(g.PerTick), ticks, func() (slot, error) {
				id, err := next()
				return slot(g.Slot(id)), err
			})
		}})
	}
	return all, nil
}

func closeAll(all []busy) {
	for _, b := range all {
		if b.close != nil {
			_ = b.close() // of a fixed node number, which has nothing to give back
		}
	}
}

// slotOf is the slot of an ID of 41 bits of milliseconds, 10 of node and 12 of
// sequence.
func slotOf(id int64) slot { return slot(id>>22<<12 | id&(perTick-1)) }

// issuer issues IDs in the rest of the tick in which it begins, in so many whole ticks
// after that, and one more ID. It appends their slots to into. It may be called again.
type issuer = func(into []slot, ticks int) ([]slot, error)

// ours is tickflake with a strategy that waits without a bound.
func ours(name string, below int64, issue func(*generator.Generator) issuer) (busy, error) {
	gen, err := generator.New(generator.WithNode(7), generator.WithStrategy(strategies.Wait()), generator.WithSequenceStart(startOf(below)))
	if err != nil {
		return busy{}, err
	}
	return busy{name: name, group: results.Ours, tick: time.Millisecond, perTick: perTick, starts: below, issue: issue(gen), close: gen.Close}, nil
}

// until calls for one ID after the other.
func until(into []slot, perTick slot, ticks int, next func() (slot, error)) ([]slot, error) {
	for end := slot(-1); ; {
		s, err := next()
		if err != nil {
			return into, err
		}
		into = append(into, s)
		if end < 0 {
			end = (s/perTick + slot(ticks) + 1) * perTick
		}
		if s >= end {
			return into, nil
		}
	}
}

func next(gen *generator.Generator) issuer {
	return func(into []slot, ticks int) ([]slot, error) { return fromIDs(into, ticks, gen.Next) }
}

func fromIDs(into []slot, ticks int, next func() (flake.ID, error)) ([]slot, error) {
	return until(into, perTick, ticks, func() (slot, error) {
		id, err := next()
		return slotOf(int64(id)), err
	})
}

func nextN(gen *generator.Generator) issuer {
	return func(into []slot, ticks int) ([]slot, error) {
		var ids [batch]flake.ID
		n := 0
		return until(into, perTick, ticks, func() (slot, error) {
			if n == 0 {
				var err error
				if n, err = gen.NextN(ids[:]); err != nil {
					return 0, err
				}
			}
			n--
			return slotOf(int64(ids[batch-1-n])), nil
		})
	}
}

func stream(gen *generator.Generator) issuer {
	s := gen.Stream()
	return func(into []slot, ticks int) ([]slot, error) { return fromIDs(into, ticks, s.Next) }
}

func twoStreams(gen *generator.Generator) issuer {
	streams := [2]issuer{stream(gen), stream(gen)}
	return func(into []slot, ticks int) ([]slot, error) {
		var slots [2][]slot
		var errs [2]error
		var both sync.WaitGroup
		for i, issue := range streams {
			both.Go(func() { slots[i], errs[i] = issue(nil, ticks) })
		}
		both.Wait()
		return slices.Concat(into, slots[0], slots[1]), errors.Join(errs[:]...)
	}
}
