package generatortest

import (
	"cmp"
	"fmt"
	"math"
	"time"

	"github.com/tickflake/tickflake/monoclock/clocktest"
)

// Forever is the time in a [Bound] of who waits, or runs ahead, for as long as it
// takes.
const Forever = time.Duration(math.MaxInt64)

// Subject is a generator that is put through the faults. Only Name and New must
// be given; the more of the rest there is, the more is checked.
//
// ID is the type of its IDs, whose order under < must be the order in which they
// are issued: an integer, or a text that sorts like the ID.
type Subject[ID cmp.Ordered] struct {
	// Name is what reports call it.
	Name string
	// New starts a process with a generator that reads the clock it is given, and
	// waits by its Sleep or After: by no other clock, and not by spinning. Only its
	// calls may wait, not a goroutine of its own: each wait moves the clock at once.
	// New is called once for each script. In a script that begins before Epoch or
	// not before End it may refuse with an error; at any other time an error is a
	// violation.
	//
	// Its functions must be safe for use by several goroutines at once.
	New func(clock *clocktest.Virtual) (Process[ID], error)
	// Claim is what the generator promises its callers. The zero Claim never
	// waits and never runs ahead of its clock.
	Claim Claim
	// Time returns the time that an ID carries: the start of its tick. Without
	// it, leads and rejections are not judged. The catalogue asks for about 10,000
	// IDs of one tick at the most, so that a wider sequence is never used up.
	Time func(ID) time.Time
	// Tick is the unit of Time.
	Tick time.Duration
	// Epoch is the first time that IDs can carry and End the first that they
	// cannot. Without them, F18 and F17 do not apply.
	Epoch, End time.Time
	// Reserve is how much time a process may reserve beyond its last ID, for one
	// that starts on its state to leave out: the window of a lease. The script's end
	// gives each process that was started so much longer until it must serve.
	Reserve time.Duration
	// CheckError returns what is wrong with an error of Next, or nil: that it is
	// not of the type that callers were promised, or does not say by how much.
	CheckError func(error) error
	// SystemTime says that the generator reads the time package instead of the
	// clock, which New is given as nil. Such a Subject runs inside a bubble of
	// testing/synctest only, where Go's time is virtual but never wrong: scripts
	// in which the clock goes wrong do not apply.
	//
	// The bubble's time passes only when all its goroutines wait, and not for a
	// mutex. So its scripts are run with one caller, for several would wait for
	// good where one sleeps and holds a mutex; and a script never ends if a call
	// reads the time over and over without a sleep.
	SystemTime bool
}

// Process is a running generator.
type Process[ID cmp.Ordered] struct {
	// Next issues one ID.
	Next func() (ID, error)
	// NextN fills a slice with IDs and returns how many it filled. Without it,
	// batches are issued by Next.
	NextN func([]ID) (int, error)
	// Stream starts a stream of IDs for one goroutine, whose IDs ascend and are
	// unique, but which keeps the order among other callers' from tick to tick
	// only. It must not return nil. Without Stream, streams are calls of Next.
	Stream func() func() (ID, error)
	// Now is the time that the generator goes by, for one that does not go by
	// the wall's.
	Now func() time.Time
	// Close ends the process in good order.
	Close func() error
	// Restart starts another process on the state that this one leaves behind,
	// closed or not; the old one may still be running, and stand still in the
	// middle of a call, where it reads the clock: Restart must not need a lock
	// that it holds there. Without Restart, scripts that restart do not apply.
	Restart func() (Process[ID], error)
}

// Claim is what a generator promises. It is held to it.
type Claim struct {
	Exhausted Bound // while the last ID's tick is the clock's
	Behind    Bound // while the last ID's tick is after the clock's
	// Unordered says that IDs come in no particular order, at least not while the
	// clock goes wrong. Reports still count those that are out of order.
	Unordered bool
}

// Bound says how long a call may wait, and how far ahead of the clock its ID may
// be. A call whose next free slot is no further ahead than either must be served.
//
// A generator that waits for the next tick when the tick's IDs are used up, and
// fails while the clock is behind, claims
//
//	Claim{Exhausted: Bound{Wait: Forever}}
//
// since a clock that stands still (F7, F8) makes it wait for longer than a tick.
// One that sleeps until the clock has caught up, however long that takes, claims
// Wait: Forever for Behind as well; one that goes on from its last timestamp,
// Borrow: Forever for both.
type Bound struct {
	Wait   time.Duration
	Borrow time.Duration
}

// reach is the furthest lead at which a call is served.
func (b Bound) reach() time.Duration { return max(b.Wait, b.Borrow) }

// String returns, for example, "waits up to 5ms, borrows up to 1s".
func (b Bound) String() string {
	if b.reach() == 0 {
		return "rejects"
	}
	show := func(verb string, d time.Duration) string {
		if d == Forever {
			return verb + " forever"
		}
		return fmt.Sprintf("%s up to %s", verb, d)
	}
	switch {
	case b.Borrow == 0:
		return show("waits", b.Wait)
	case b.Wait == 0:
		return show("borrows", b.Borrow)
	}
	return show("waits", b.Wait) + ", " + show("borrows", b.Borrow)
}

// ahead is the furthest that an ID may be ahead of the clock, whatever the cause.
func (c Claim) ahead() time.Duration { return max(c.Exhausted.Borrow, c.Behind.Borrow) }

// patience is the longest that a call may wait, whatever the causes it meets.
func (c Claim) patience() time.Duration { return max(c.Exhausted.Wait, c.Behind.Wait) }
