package cases

import (
	"time"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/strategies"
)

// Ours are the ways to make an ID with tickflake, the plain one first, with a sequence
// that is not the limit.
func Ours() []Case {
	return []Case{
		Next("Next", Wide()),
		NextContext(),
		Leased("Next, under a lease", Wide()),
		Strategy("Wait()", strategies.Wait()),
		Strategy("BorrowUpTo(1s)", strategies.BorrowUpTo(time.Second)),
		Strategy("Reject()", strategies.Reject()),
		Strategy("Chain", strategies.Chain(strategies.BorrowUpTo(time.Second), strategies.WaitUpTo(5*time.Second))),
		Ahead(),
		Next("Next, random start", Wide(), generator.WithSequenceStart(strategies.StartRandom(100))),
		Stream(),
		Iterator(),
		NextN(16), NextN(128), NextN(1024),
	}
}

// Strategy calls Generator.Next under a strategy, which the wide layout never needs:
// it shows what it costs to have one.
func Strategy(name string, s strategies.Strategy) Case {
	return Next("Next, "+name, Wide(), generator.WithStrategy(s))
}

// All lists every case once, but for the floors.
func All() []Case {
	return append(append(Ours(), Fleet()), Peers()...)
}
