package generatortest

import (
	"cmp"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/tickflake/tickflake/monoclock/clocktest"
)

// Forever is the time in a [Bound] without a bound.
const Forever = time.Duration(math.MaxInt64)

// Subject is a generator that is put through the faults. Only Name and New are
// required; each further field adds checks.
//
// ID is the type of its IDs. Their order under < must be the order in which they are
// issued: an integer, or a text that sorts like the ID.
type Subject[ID cmp.Ordered] struct {
	// Name is the generator's name in reports.
	Name string
	// New starts a process with a generator that reads the clock it is given. The
	// generator must wait by the clock's Sleep or After, by no other clock, and not by
	// spinning. Only its calls may wait, not a goroutine of its own: each wait moves
	// the clock at once. New is called once for each script. In a script that begins
	// before Epoch or not before End it may return an error; at any other time an error
	// is a violation.
	//
	// The functions of the Process must be safe for use by several goroutines at once.
	New func(clock *clocktest.Virtual) (Process[ID], error)
	// Claim is what the generator promises its callers. The zero Claim promises never
	// to wait and never to be ahead of the clock.
	Claim Claim
	// Time returns the time that an ID carries: the start of its tick. Without it,
	// leads and rejections are not judged.
	Time func(ID) time.Time
	// Tick is the unit of Time.
	Tick time.Duration
	// Epoch is the first time that IDs can carry, and End the first after it that they
	// cannot. Without them, F18 and F17 do not apply.
	Epoch, End time.Time
	// CheckError returns what is wrong with an error of Next, or nil: for example that
	// its type is not the promised one, or that it does not say by how much.
	CheckError func(error) error
}

// Process is a running generator.
type Process[ID cmp.Ordered] struct {
	// Next issues one ID.
	Next func() (ID, error)
	// NextN fills a slice with IDs and returns how many it filled. Without it,
	// batches are issued by Next.
	NextN func([]ID) (int, error)
	// Stream starts a stream of IDs for one goroutine. Its IDs are unique and ascend;
	// against those of other callers only their ticks are in order. Stream must not
	// return nil. Without Stream, streams are calls of Next.
	Stream func() func() (ID, error)
	// Now is the time that the generator goes by, if it is not the wall's.
	Now func() time.Time
	// Close ends the process cleanly.
	Close func() error
	// Restart starts another process on the state that this one leaves behind, closed
	// or not. The old one may still be running, stopped in the middle of a call where
	// it reads the clock: Restart must not need a lock that the call holds there.
	// Without Restart, scripts that restart do not apply. A Process without one that it
	// starts goes on with this one.
	Restart func() (Process[ID], error)
}

// Claim is what a generator promises, and what it is judged by.
type Claim struct {
	Exhausted Bound // while the last ID's tick is the clock's
	Behind    Bound // while the last ID's tick is after the clock's
	// Unordered says that IDs come in no particular order, at least not while the clock
	// goes wrong. Reports still count the IDs that are out of order.
	Unordered bool
}

// Bound says how long a call may wait, and how far ahead of the clock its ID may be. A
// call whose next free slot is no further ahead than either must be served.
//
// A generator that waits for the next tick when the tick's IDs are used up, and fails
// while the clock is behind, claims
//
//	Claim{Exhausted: Bound{Wait: Forever}}
//
// since a clock that stands still (F7, F8) makes it wait longer than a tick. A
// generator that sleeps until the clock has caught up claims Wait: Forever for Behind
// as well; one that continues from its last timestamp claims Borrow: Forever for both.
type Bound struct {
	Wait   time.Duration
	Borrow time.Duration
}

// reach is the furthest lead at which a call is served.
func (b Bound) reach() time.Duration { return max(b.Wait, b.Borrow) }

// String returns, for example, "waits up to 5ms, borrows up to 1s".
func (b Bound) String() string {
	var does []string
	for _, x := range []struct {
		verb string
		d    time.Duration
	}{{"waits", b.Wait}, {"borrows", b.Borrow}} {
		if x.d == Forever {
			does = append(does, x.verb+" forever")
		} else if x.d > 0 {
			does = append(does, fmt.Sprintf("%s up to %s", x.verb, x.d))
		}
	}
	return cmp.Or(strings.Join(does, ", "), "rejects")
}
