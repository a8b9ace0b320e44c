// Package strategies decides what a generator does when its next slot lies ahead of its
// clock.
//
// You need these names:
//
//   - [Default]: wait up to one second, then reject. Most programs want it.
//   - [WaitUpTo]: wait, up to a bound.
//   - [BorrowUpTo]: run ahead of the clock, up to a bound.
//   - [Reject]: neither wait nor run ahead of the clock.
//   - [Chain]: try several in order. ([PerCause] takes one strategy per cause.)
//
// A generator hands out slots in order. Each tick has the same number of slots. Two things put the next slot
// ahead of the clock: the sequence ran out inside this tick ([Exhausted]), or the clock
// reads earlier than the last slot issued ([Behind]), after a step back, a restart or an
// earlier borrow. The lead is the distance from the clock to the next slot.
//
// A [Strategy] turns such a [Situation] into a [Decision]: wait, borrow the slot from the
// future, or reject the call. It is a pure function without a clock, a wait or a state, so
// one value serves any number of generators and goroutines, and a table tests it.
//
// A strategy chooses between delay, error and early timestamps. A generator
// issues no slot twice with any strategy.
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
	// Exhausted: every slot of the clock's tick is issued, and none after it.
	Exhausted Cause = iota + 1
	// Behind: slots of later ticks are issued already. The clock was stepped back, a
	// process restarted below its floor, or earlier calls borrowed.
	Behind
)

// String returns "exhausted" or "behind".
func (c Cause) String() string {
	if c == Exhausted || c == Behind {
		return [...]string{"exhausted", "behind"}[c-Exhausted]
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
	// Waited is how long this call has waited for slots already, zero at first. It does not
	// count the time in which it waited for a lease's grant.
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
	if names := [...]string{"reject", "wait", "borrow"}; int(a) < len(names) {
		return names[a]
	}
	return fmt.Sprintf("Action(%d)", uint8(a))
}

// Decision is a [Strategy]'s answer.
type Decision struct {
	// Action is what to do. A generator treats an unknown value as ActionReject.
	Action Action
	// Wait is how long to wait for ActionWait. Zero or less means the lead.
	Wait time.Duration
	// Limit is the bound that led to ActionReject, for the error message: the
	// longest lead that would have been accepted.
	Limit time.Duration
}

// Strategy decides what happens to a call whose slot lies ahead of the clock.
//
// Decide must be a pure function, safe for use by several goroutines at once. The generator knows how far the
// strategies of this package borrow, so their borrowed IDs come at full speed; it asks a Strategy of your own
// for every borrowed ID. It also knows how long they wait, and so how long a call without a deadline waits for
// a lease's grant: 0 for a Strategy of your own, also inside a [Chain] or [PerCause].
type Strategy interface {
	Decide(Situation) Decision
}

// Func is a function that serves as a [Strategy].
type Func func(Situation) Decision

// Decide returns f(s).
func (f Func) Decide(s Situation) Decision { return f(s) }

// Reject returns the strategy that rejects every call whose slot lies ahead of
// the clock. A tick that is used up, or a clock that is behind, fails each call at once
// until the clock has caught up.
func Reject() Strategy { return bound{} }

// WaitUpTo returns the strategy that waits until the clock has caught up, for at most d
// in one call, all its waits for slots together. If the lead is longer than the rest of d,
// it rejects the call at once, not after d.
//
// IDs never carry a time that the clock has not reached. The generator's constructor
// refuses a negative d.
func WaitUpTo(d time.Duration) Strategy { return bound{wait: d} }

// Wait returns the strategy that waits until the clock has caught up or the call's
// context ends. Use it with contexts that have a deadline: without one, a clock that was
// stepped back an hour blocks the caller for an hour.
func Wait() Strategy { return WaitUpTo(math.MaxInt64) }

// BorrowUpTo returns the strategy that issues slots ahead of the clock while the
// lead is at most d, and rejects calls beyond that. Nothing waits; IDs carry
// times up to d ahead of the clock.
//
// Without a lease, borrowing is a risk at the next start: after a crash, a process with
// the same node number knows nothing of the borrowed slots, and issues them again if it
// starts within d, even when every clock is right. Borrow with a lease, or where a
// restart takes longer than d. The generator's constructor refuses a negative d.
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

func (b bound) validate() error {
	if limit := min(b.borrow, b.wait); limit < 0 {
		return fmt.Errorf("%w strategy %s: the limit %s is negative: give 0s or more", ErrInvalid, b, limit)
	}
	return nil
}

// Validate returns nil, or an error that wraps [ErrInvalid] if s is nil, has a negative limit, or is made of
// strategies that are wrong. Of a [Strategy] made outside this package it only checks that it is not nil.
func Validate(s Strategy) error {
	if s == nil {
		return fmt.Errorf("%w strategy: nil; give one, such as strategies.Default()", ErrInvalid)
	}
	// A nil pointer or function in s would fail only at its first decision.
	if v := reflect.ValueOf(s); (v.Kind() == reflect.Pointer || v.Kind() == reflect.Func) && v.IsNil() {
		return fmt.Errorf("%w strategy: nil; give one, such as strategies.Default()", ErrInvalid)
	}
	if s, ok := s.(bounded); ok {
		return s.validate()
	}
	return nil
}
