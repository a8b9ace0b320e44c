//go:build simulate

package simulation

import (
	"fmt"
	"io"
	"time"

	"github.com/tickflake/tickflake/monoclock"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/strategies"
)

// Config is a program and all parameters of its run. Two runs of equal
// Configs are the same in every step. The zero Config runs nothing.
type Config struct {
	// Seed decides the schedule: who runs when, and how long readings take.
	Seed uint64
	// Callers is the number of callers, from 1 to MaxCallers; 0 counts as 1.
	Callers int
	// Schedule is how the next caller is picked.
	Schedule Schedule
	// Changes is, for [Priorities], how often a caller loses its priority.
	Changes int
	// Jitter bounds the true time that a reading of the clock takes: a new random
	// time below Jitter for one reading in two, on average.
	Jitter time.Duration

	// Clock is the generator's clock; Threshold and Limit are those of
	// monoclock.WithResync, for [Resync].
	Clock            ClockKind
	Threshold, Limit time.Duration
	// Strategy is the generator's; nil is strategies.Default(). Its Decide must
	// be pure: it is called for checks as well.
	Strategy strategies.Strategy
	// Tick is the layout's unit, and 0 counts as 1 ms. TimeBits and SequenceBits
	// are the layout's widths; a TimeBits of 0 counts as 41. The epoch is at the
	// beginning of the year 2026.
	Tick                   time.Duration
	TimeBits, SequenceBits int
	// Order is the layout's. Nodeless leaves out its node field, which has two bits
	// else.
	Order    snowflake.Order
	Nodeless bool
	// Sequence is where the sequence of a new tick begins; the seed makes the draws.
	Sequence strategies.SequenceStart
	// Start is where the wall stands at the start, counted from the epoch.
	Start time.Duration

	// Lease has a simulated keeper put grants into the window: by a draw of the seed, an
	// extension, another node number, or nothing. Term is how many ticks it grants, from
	// 1 on. Deadlines gives contexts a deadline, which is when they are cancelled: calls
	// wait that long for a grant.
	Lease     bool
	Term      int
	Deadlines bool

	// Counted runs a window of counted numbers in place of a generator. Its operations are
	// Count, Queue, Revoke and Seal.
	Counted bool

	// Ops is the program.
	Ops []Op
	// Trace, if not nil, is written a numbered line for every step.
	Trace io.Writer
	// Core makes an issuer to run in place of the generator: one that is broken on
	// purpose, built from the words of package word. It must read time from the clock.
	// It has only Next, so only IDs and faults can be run on it. Nil is the generator.
	Core func(Env) Core
}

// Core is something that issues IDs of the layout in [Env].
type Core interface {
	Next() (snowflake.ID, error)
}

// Env is what a [Core] is made from.
type Env struct {
	Clock  monoclock.Interface // reads are points where others may come first
	Layout snowflake.Layout
	Node   int64
}

// MaxCallers is the largest number of callers.
const MaxCallers = 64

// Schedule is how the scheduler picks the next caller.
type Schedule uint8

// The schedules. In all of them the faults of a program are a party of their own,
// which is picked as a caller is.
const (
	// Uniform picks any caller that can run, with equal probability. Long delays of one caller
	// are rare.
	Uniform Schedule = iota
	// Sticky stays with the same caller seven times of eight, so that it makes many
	// steps while another stands still.
	Sticky
	// Priorities gives each a random priority and runs the highest that can
	// run; at Changes random steps that one becomes the lowest. It finds a bug
	// which takes d such constraints, among n callers in k steps, with a
	// probability of at least 1/(n·k^(d-1)): Burckhardt, Kothari, Musuvathi and
	// Nagarakatte, "A Randomized Scheduler with Probabilistic Guarantees of
	// Finding Bugs", ASPLOS 2010.
	Priorities
)

// ClockKind is the kind of the generator's clock.
type ClockKind uint8

// The clocks.
const (
	Raw    ClockKind = iota // the wall
	Mono                    // a monoclock.Clock
	Resync                  // a monoclock.Clock with WithResync
)

// OpKind is the kind of an [Op].
type OpKind uint8

// The operations. The callers' own are dealt to them in turn, in the order of the
// program, and each caller does its share in that order. The rest are faults:
// each happens at a moment that the scheduler picks, after the last caller's
// operation before it in the program has begun, and after the faults before it. The
// keeper's operations begin likewise, and others come in between as in any call.
const (
	IDs      OpKind = iota // N calls of Next
	Batch                  // one call of NextN for N IDs
	Stream                 // N calls of the caller's own stream
	Contexts               // N calls of NextContext; their context is cancelled at some moment
	Count                  // takes N counted numbers in a row
	Close                  // closes the generator
	Seal                   // closes it as its keeper does when that is closed

	Extend // the keeper grants N more ticks of the node number that is held
	Move   // the keeper grants node number N from D after the first unused tick on
	Revoke // the keeper takes back the rest of the grant
	Queue  // the keeper queues N counted numbers, from D (in ns) after the last on

	Pass    // D of true time passes at once
	Step    // the wall jumps by D
	Slew    // for D the wall runs at Rate times true time
	Freeze  // for D the clock stands still
	Coarse  // from now on the clock moves in multiples of D; 0 ends it
	Suspend // the wall advances by D, and monotonic time does not
	Leap    // the wall repeats the second before the next whole one

	cancel // ends the context of the operation N; made from Contexts
)

var opNames = [...]string{"ids", "batch", "stream", "contexts", "count", "close", "seal", "extend", "move", "revoke", "queue", "pass", "step", "slew", "freeze", "coarse", "suspend", "leap", "cancel"}

// Op is one operation of a program. The meaning of its fields depends on Kind.
type Op struct {
	Kind OpKind
	N    int
	D    time.Duration
	Rate float64
}

// keeper reports whether the operation is the keeper's and not a caller's.
func (o Op) keeper() bool { return o.Kind >= Extend && o.Kind <= Queue }

// fault reports whether the operation is the clock's and not a caller's.
func (o Op) fault() bool { return o.Kind >= Pass }

// String returns, for example, "batch 5" or "step -3ms".
func (o Op) String() string {
	switch {
	case int(o.Kind) >= len(opNames):
		return fmt.Sprintf("op %d", o.Kind)
	case o.Kind == Close || o.Kind == Seal || o.Kind == Revoke || o.Kind == Leap:
		return opNames[o.Kind]
	case o.Kind == Slew:
		return fmt.Sprintf("slew %g for %s", o.Rate, o.D)
	case o.Kind == Move:
		return fmt.Sprintf("move to node %d after %s", o.N, o.D)
	case o.Kind == Queue:
		return fmt.Sprintf("queue %d after %d", o.N, o.D)
	case o.Kind < Close || o.Kind == Extend || o.Kind == cancel:
		return fmt.Sprintf("%s %d", opNames[o.Kind], o.N)
	}
	return fmt.Sprintf("%s %s", opNames[o.Kind], o.D)
}

// Result is the result of a run.
type Result struct {
	Config Config // as it was run
	// Steps is the number of points at which the scheduler had a choice.
	Steps int
	// Hash is of the whole schedule: every access and reading with its values.
	Hash uint64
	// Violations has the failed checks. A run ends at the first.
	Violations []Violation
	// Trace has the last lines of the trace, if there are violations and Config.Trace
	// is nil.
	Trace []string
}

// Failed reports whether anything went wrong.
func (r Result) Failed() bool { return len(r.Violations) > 0 }

// Violation is something that must not happen.
type Violation struct {
	What   string // such as "duplicate"
	Detail string // the numbers
	Caller int    // or -1 before and after all callers
	Op     int    // the index in Config.Ops, or -1
}

// String returns one line with the violation, the caller and the operation.
func (v Violation) String() string {
	if v.Caller < 0 {
		return v.What + ": " + v.Detail
	}
	return fmt.Sprintf("%s: %s (caller %d, op %d)", v.What, v.Detail, v.Caller, v.Op)
}
