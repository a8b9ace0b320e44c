//go:build simulate

package simulation

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/strategies"
)

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
