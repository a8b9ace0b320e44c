//go:build simulate

package simulation

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/strategies"
)

const (
	us = time.Microsecond
	ms = time.Millisecond
)

// Random returns a program made from a seed alone: a few callers on a small
// layout, where ticks fill up and carry all the time, with faults in between.
func Random(seed uint64) Config {
	r := rand.New(rand.NewPCG(seed, 0x73656564))
	c := Config{
		Seed:         seed,
		Callers:      pick(r, 1, 2, 2, 2, 3, 3, 4, 4),
		Schedule:     Schedule(r.IntN(3)),
		Changes:      1 + r.IntN(3),
		Jitter:       pick(r, 0, 20*us, 400*us, 3*ms),
		Clock:        ClockKind(r.IntN(3)),
		Threshold:    pick(r, 0, 10*ms),
		Limit:        pick(r, 5*time.Second, time.Hour),
		Strategy:     randomStrategy(r),
		SequenceBits: r.IntN(5),
		Start:        time.Duration(r.IntN(2000)) * 10 * us,
	}
	closing := pick(r, 0, 0, 0, 0, 0, 0, 1, 2) // the generator may be closed twice
	kinds := randomKinds(r)
	if slices.Contains(kinds, Stream) && r.IntN(4) != 0 {
		c.SequenceBits = 5 + r.IntN(3) // where a stream's blocks are longer than one slot
	}
	switch r.IntN(6) {
	case 0:
		c.TimeBits = 45 // which reach further than 64-bit nanoseconds
	case 1:
		// The end of time, or the beginning, is near.
		c.TimeBits = 3 + r.IntN(3)
		c.Start = time.Duration(r.Int64N(int64(1<<c.TimeBits) * int64(ms)))
	}
	if r.IntN(3) == 0 {
		c.Sequence = strategies.StartRandom(1 + r.Int64N(1<<c.SequenceBits))
	}
	faults := 2 // of five
	if c.Clock == Resync {
		faults = 3 // a race there takes several of them within one call
	}
	for range 4 + r.IntN(10) {
		c.Ops = append(c.Ops, randomOp(r, pick(r, kinds...), c.SequenceBits))
		for r.IntN(5) < faults {
			c.Ops = append(c.Ops, randomFault(r, c.Clock))
		}
	}
	for range closing {
		i := r.IntN(len(c.Ops))
		c.Ops = append(c.Ops[:i:i], append([]Op{{Kind: Close}}, c.Ops[i:]...)...)
	}
	vary(&c)
	return c
}

func pick[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }

// randomKinds returns the kinds of calls of a program: often only one, since
// some checks hold only then.
func randomKinds(r *rand.Rand) []OpKind {
	switch r.IntN(4) {
	case 0:
		return []OpKind{IDs}
	case 1:
		return []OpKind{IDs, Batch, Contexts}
	case 2:
		return []OpKind{Stream, pick(r, IDs, Batch)}
	}
	return []OpKind{IDs, Batch, Stream, Contexts}
}

func randomOp(r *rand.Rand, kind OpKind, sequenceBits int) Op {
	op := Op{Kind: kind, N: 1 + r.IntN(4)}
	if r.IntN(3) == 0 {
		most := 3 << sequenceBits // a few ticks' worth
		if kind != Batch {
			most = min(most, 48)
		}
		op.N = 1 + r.IntN(most)
	}
	return op
}

func randomFault(r *rand.Rand, clock ClockKind) Op {
	if clock == Resync {
		// Looks at the wall are a second apart.
		switch r.IntN(4) {
		case 0:
			return Op{Kind: Pass, D: pick(r, time.Second, 1100*ms)}
		case 1:
			return Op{Kind: Suspend, D: pick(r, 5*ms, 50*ms, 2*time.Second)}
		case 2:
			return Op{Kind: Step, D: pick(r, 20*ms, time.Second, 10*time.Second, 2*time.Hour)}
		}
	}
	some := time.Duration(1+r.IntN(5_000)) * us
	switch r.IntN(12) {
	case 0, 1, 2:
		return Op{Kind: Step, D: -pick(r, some, some, ms, 3*ms, 20*ms, time.Second, time.Hour)}
	case 3:
		return Op{Kind: Step, D: pick(r, some, 3*ms, time.Second)}
	case 4:
		return Op{Kind: Slew, D: 5 * some, Rate: pick(r, 0, 0.5, 1.5, 2)}
	case 5:
		return Op{Kind: Freeze, D: pick(r, some, 10*ms)}
	case 6:
		return Op{Kind: Coarse, D: pick(r, 0, ms, 5*ms, 15_600*us)}
	case 7:
		return Op{Kind: Suspend, D: pick(r, some, time.Second)}
	case 8:
		return Op{Kind: Leap}
	}
	return Op{Kind: Pass, D: pick(r, some, some, ms, 50*ms)}
}

// randomStrategy returns any of the presets, the compositions, and strategies
// that are not of package strategies, which a generator asks for every ID.
func randomStrategy(r *rand.Rand) strategies.Strategy {
	d := time.Duration(1+r.IntN(8)) * pick(r, ms/2, ms)
	bound := func() strategies.Strategy {
		return pick(r, strategies.Reject(), strategies.WaitUpTo(d), strategies.BorrowUpTo(d), strategies.WaitUpTo(4*d))
	}
	switch r.IntN(10) {
	case 0:
		return strategies.Default()
	case 1:
		return pick(r, strategies.LikeTwitter(), strategies.LikeLeaf(), strategies.LastTimestampPlusOne(), strategies.Wait())
	case 2, 3:
		return strategies.BorrowUpTo(d)
	case 4:
		return strategies.WaitUpTo(d)
	case 5:
		return strategies.Chain(strategies.BorrowUpTo(d), strategies.WaitUpTo(3*d))
	case 6:
		return strategies.Chain(bound(), bound(), strategies.WaitUpTo(time.Second))
	case 7:
		return strategies.PerCause(bound(), bound())
	case 8: // the same, but asked
		return strategies.Func(pick(r, strategies.BorrowUpTo(d), strategies.PerCause(bound(), bound()), bound()).Decide)
	}
	// Waits in short pieces first, or as long as it takes, and borrows then.
	piece := pick(r, d/2, 0)
	return strategies.Func(func(s strategies.Situation) strategies.Decision {
		switch {
		case s.Waited < d:
			return strategies.Decision{Action: strategies.ActionWait, Wait: min(s.Lead, piece)}
		case s.Lead <= 2*d:
			return strategies.Decision{Action: strategies.ActionBorrow}
		}
		return strategies.Decision{Limit: 2 * d}
	})
}

// vary gives a third of the programs a lease, and a few another layout. It draws
// from numbers of its own, so that it does not change the other programs.
func vary(c *Config) {
	r := rand.New(rand.NewPCG(c.Seed, 0x6c65617365))
	switch r.IntN(24) {
	case 0, 1:
		nearWideEnd(r, c)
		return
	case 2, 3, 4:
		c.Order = snowflake.TimeSequenceNode
	}
	if r.IntN(3) != 0 {
		return
	}
	c.Lease = true
	c.Term = pick(r, 1, 2, 3, 5, 20, 200)
	c.Deadlines = r.IntN(2) == 0
	for i, op := range c.Ops {
		if op.Kind == Close && r.IntN(2) == 0 {
			c.Ops[i].Kind = Seal
		}
	}
	moves := pick(r, 0, 1, 1, 2, 3, 6)
	for range moves + r.IntN(3) {
		op := Op{Kind: Extend, N: pick(r, 0, 1, 2, c.Term)}
		if r.IntN(4) == 0 {
			op = Op{Kind: Revoke}
		}
		if moves > 0 {
			moves--
			op = Op{Kind: Move, N: r.IntN(maxNode + 1), D: pick(r, 0, 0, 0, -ms, ms, 3*ms, -5*ms, 50*ms)}
		}
		c.Ops = slices.Insert(c.Ops, r.IntN(len(c.Ops)+1), op)
	}
}

// nearWideEnd makes a program run at the end of a layout without a node field: its slots
// take all 63 bits, so the word has hardly room for the seal.
func nearWideEnd(r *rand.Rand, c *Config) {
	c.TimeBits, c.SequenceBits, c.Nodeless = 41, 22, true
	c.Sequence = strategies.StartRandom(1 << 22)
	c.Start = time.Duration(1<<41)*ms - pick(r, ms, 2*ms, 3*ms, 10*ms) - time.Duration(1+r.IntN(1000))*us
	if r.IntN(2) == 0 {
		c.Strategy = strategies.BorrowUpTo(10 * ms)
	}
	for i, op := range c.Ops {
		if op.Kind == Stream { // its blocks are long, and the rest of the last tick is short
			c.Ops[i].Kind = IDs
		}
	}
}

// RandomCounted returns a program on a window of counted numbers.
func RandomCounted(seed uint64) Config {
	r := rand.New(rand.NewPCG(seed, 0x636f756e74))
	c := Config{Seed: seed, Counted: true, Callers: pick(r, 1, 2, 2, 3, 3, 4), Schedule: Schedule(r.IntN(3)), Changes: 1 + r.IntN(4)}
	most := pick(r, 1, 1, 3, 8) // numbers at a time
	size := pick(r, 1, 2, 4, 12)
	seals := pick(r, 0, 0, 0, 1, 2)
	for range 6 + r.IntN(14) {
		c.Ops = append(c.Ops, Op{Kind: Count, N: 1 + r.IntN(most)})
		for r.IntN(3) == 0 {
			c.Ops = append(c.Ops, Op{Kind: Queue, N: 1 + r.IntN(size), D: time.Duration(pick(r, 0, 0, 1, 5))})
		}
		if r.IntN(24) == 0 {
			c.Ops = append(c.Ops, Op{Kind: Revoke})
		}
	}
	for range seals {
		i := len(c.Ops)/2 + r.IntN(len(c.Ops)/2+1)
		c.Ops = append(c.Ops[:i:i], append([]Op{{Kind: Seal}}, c.Ops[i:]...)...)
	}
	return c
}
