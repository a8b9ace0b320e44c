package strategies

import (
	"errors"
	"fmt"
	"time"
)

// ErrNil is reported for a nil [Strategy].
var ErrNil = errors.New("strategy is nil: give one, such as strategies.Default()")

// LimitError reports a strategy with a limit that cannot be.
type LimitError struct {
	Strategy Strategy      // the strategy with the limit
	Limit    time.Duration // the limit given, below zero
}

func (e *LimitError) Error() string {
	return fmt.Sprintf("strategy %s has the negative limit %s: it must be 0s or more", text(e.Strategy), e.Limit)
}

// CompositionError reports what is wrong with a [Chain] or a [PerCause].
type CompositionError struct {
	Problem string // which member, or what is missing
	Err     error  // what is wrong with that member, or nil
}

func (e *CompositionError) Error() string {
	if e.Err == nil {
		return e.Problem
	}
	return e.Problem + ": " + e.Err.Error()
}

// Unwrap returns what is wrong with the member.
func (e *CompositionError) Unwrap() error { return e.Err }

// StartError reports a [SequenceStart] that does not fit the sequence.
type StartError struct {
	Below   int64 // the bound given to StartRandom
	PerTick int64 // how many IDs a tick holds, or 0 if that does not matter
}

func (e *StartError) Error() string {
	if e.Below < 1 {
		return fmt.Sprintf("random sequence start below %d: the bound must be 1 or more", e.Below)
	}
	return fmt.Sprintf("random sequence start below %d: the layout holds %d IDs per tick, so give a bound from 1 to %d",
		e.Below, e.PerTick, e.PerTick)
}

// ParseError reports a text that [Parse] cannot read.
type ParseError struct {
	Text    string // the part that is wrong
	Problem string // what is wrong with it, and what would be right
	Err     error  // the cause, or nil
}

func (e *ParseError) Error() string {
	shown := e.Text
	if len(shown) > 40 {
		shown = shown[:40] + "…"
	}
	return fmt.Sprintf("strategy %q: %s", shown, e.Problem)
}

// Unwrap returns the cause.
func (e *ParseError) Unwrap() error { return e.Err }
