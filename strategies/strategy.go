// Package strategies decides what a generator does when its next free slot lies
// ahead of its clock.
//
// A generator hands out slots, one after the other: so many per tick. Two things
// can put the next free slot ahead of the clock. The sequence ran out inside
// this tick ([Exhausted]), or the clock reads earlier than the last slot issued
// ([Behind]): after a step back, after a restart, or after an earlier borrow. By
// how much it is ahead is the lead.
//
// A [Strategy] looks at such a [Situation] and makes a [Decision]: wait, borrow
// the slot from the future, or reject the call. It is a pure function: it reads
// no clock, waits for nothing, and keeps nothing, so one value serves any number
// of generators and goroutines, and a table tests it.
//
//   - [Reject] never waits and never runs ahead of the clock.
//   - [WaitUpTo] waits, up to a bound.
//   - [BorrowUpTo] runs ahead of the clock, up to a bound.
//   - [Chain] tries several in order; [PerCause] tells the causes apart.
//
// Most programs want [Default]. No choice of strategy can make a generator issue
// the same slot twice; it decides between delay, error and early timestamps.
package strategies

import (
	"fmt"
	"math"
	"reflect"
	"time"
)

// Cause says why the next free slot lies ahead of the clock.
type Cause uint8

const (
	// Exhausted: every slot of the clock's tick is taken, and no slot after it.
	Exhausted Cause = iota + 1
	// Behind: slots of ticks after the clock's are taken already. The clock was
	// stepped back, a restart began below its floor, or earlier calls borrowed.
	Behind
)

// String returns "exhausted" or "behind".
func (c Cause) String() string {
	switch c {
	case Exhausted:
		return "exhausted"
	case Behind:
		return "behind"
	}
	return fmt.Sprintf("Cause(%d)", uint8(c))
}

// Situation is what a generator tells a [Strategy].
type Situation struct {
	// Cause is why the next free slot lies ahead.
	Cause Cause
	// Lead is the time from the clock's reading to the tick of the next free
	// slot. It is above zero.
	Lead time.Duration
	// Waited is how long this call has waited already, zero at first.
	Waited time.Duration
}

// Action is what a [Strategy] can tell a generator to do.
type Action uint8

const (
	// ActionReject ends the call with an error. It is the zero Action.
	ActionReject Action = iota
	// ActionWait waits, reads the clock again, and asks again if that was not
	// enough.
	ActionWait
	// ActionBorrow issues the slot now, ahead of the clock.
	ActionBorrow
)

// String returns "reject", "wait" or "borrow".
func (a Action) String() string {
	switch a {
	case ActionReject:
		return "reject"
	case ActionWait:
		return "wait"
	case ActionBorrow:
		return "borrow"
	}
	return fmt.Sprintf("Action(%d)", uint8(a))
}

// Decision is a [Strategy]'s answer.
type Decision struct {
	// Action is what to do. A generator takes an unknown one for ActionReject.
	Action Action
	// Wait is how long to wait for ActionWait. Zero or less means the lead.
	Wait time.Duration
	// Limit is the bound that led to ActionReject, for the error message: the
	// longest lead that would have been accepted.
	Limit time.Duration
}

// Strategy decides what happens to a call whose slot lies ahead of the clock.
//
// Decide must be a pure function, safe for use by several goroutines at once.
// The strategies of this package also tell the generator, once and in advance,
// how far they borrow in any situation, and so borrow at full speed; a Strategy
// of your own is asked for every borrowed ID. And they tell how long they wait, which
// is how long a call waits for a lease's next grant ([WaitLimit]): with a Strategy of
// your own it fails at once if its context has no deadline.
type Strategy interface {
	Decide(Situation) Decision
}

// Func is a function that serves as a [Strategy].
type Func func(Situation) Decision

// Decide returns f(s).
func (f Func) Decide(s Situation) Decision { return f(s) }

// Reject returns the strategy that rejects every call whose slot lies ahead of
// the clock. The generator then issues at most one tick's worth of IDs per tick
// and fails at once, for as long as it lasts, when the clock is behind.
func Reject() Strategy { return bound{} }

// WaitUpTo returns the strategy that waits until the clock has caught up, if
// that takes the call no longer than d in all, and rejects it otherwise. A call
// whose lead is longer than that is rejected at once, not after d.
//
// IDs never carry a time that the clock has not reached. A negative d is refused
// by the generator's constructor.
func WaitUpTo(d time.Duration) Strategy { return bound{wait: d} }

// Wait returns the strategy that waits for as long as it takes, or until the
// call's context ends. Use it with contexts that end: without one, a clock that
// was stepped back an hour blocks the caller for an hour.
func Wait() Strategy { return WaitUpTo(math.MaxInt64) }

// BorrowUpTo returns the strategy that issues slots ahead of the clock while the
// lead is at most d, and rejects calls beyond that. Nothing waits; IDs carry
// times up to d ahead of the clock.
//
// Borrowing shifts trouble to the next start: after a crash, a new process with
// the same node number and no record of the last ID issues the borrowed slots
// again, even if every clock was right, unless d passes before it starts.
// Borrow where node numbers come as grants, or where a restart takes longer
// than d. A negative d is refused by the generator's constructor.
func BorrowUpTo(d time.Duration) Strategy { return bound{borrow: d} }

// bound is the one rule behind Reject, WaitUpTo and BorrowUpTo: borrow up to one
// lead, or wait up to one time. At most one of the two is set.
type bound struct{ borrow, wait time.Duration }

func (b bound) Decide(s Situation) Decision {
	switch {
	case s.Lead <= b.borrow:
		return Decision{Action: ActionBorrow}
	case s.Lead <= b.wait-s.Waited:
		return Decision{Action: ActionWait, Wait: s.Lead}
	}
	return Decision{Action: ActionReject, Limit: max(b.borrow, b.wait)}
}

func (b bound) String() string {
	switch {
	case b.borrow != 0:
		return "borrow:" + b.borrow.String()
	case b.wait == math.MaxInt64:
		return "wait"
	case b.wait != 0:
		return "wait:" + b.wait.String()
	}
	return "reject"
}

func (b bound) borrowLimit() time.Duration { return b.borrow }

func (b bound) validate() error {
	if limit := min(b.borrow, b.wait); limit < 0 {
		return &LimitError{Strategy: b, Limit: limit}
	}
	return nil
}

// bounded is what the strategies of this package tell beyond their decisions.
type bounded interface {
	borrowLimit() time.Duration
	waitLimit() time.Duration
	limits(Cause) (wait, borrow time.Duration)
	validate() error
}

// BorrowLimit returns the lead up to which s borrows in every situation, so that
// a generator need not ask. It is zero for a Strategy made outside this package.
func BorrowLimit(s Strategy) time.Duration {
	if s, ok := s.(bounded); ok {
		return s.borrowLimit()
	}
	return 0
}

// Validate returns what is wrong with s: nil, a [*LimitError] or a
// [*CompositionError]. It finds nothing wrong with a Strategy made outside this
// package unless it is nil, for which it returns [ErrNil].
func Validate(s Strategy) error {
	if s == nil {
		return ErrNil
	}
	// A nil pointer or function in s would fail only at its first decision.
	if v := reflect.ValueOf(s); (v.Kind() == reflect.Pointer || v.Kind() == reflect.Func) && v.IsNil() {
		return ErrNil
	}
	if s, ok := s.(bounded); ok {
		return s.validate()
	}
	return nil
}
