package generator

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/tickflake/tickflake/internal/span"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/strategies"
)

var (
	// ErrClosed is returned by a [Generator] that was closed, and by its
	// streams, for good.
	ErrClosed = errors.New("generator is closed: make a new one")

	// ErrNoLease is returned by [Generator.Restored] for a generator without a lease:
	// make a new one with another node number.
	ErrNoLease = errors.New("generator has no lease: make a new one with another node number")

	// ErrExhausted matches a [LeadError], by [errors.Is], if the sequence ran out
	// inside the clock's tick.
	ErrExhausted = errors.New("sequence exhausted")

	// ErrBehind matches a [LeadError], by [errors.Is], if the clock is behind the
	// last ID issued, or behind the ID that [Generator.NextAfter] was given.
	ErrBehind = errors.New("clock is behind the last issued ID")
)

// LeadError reports that the strategy rejected a call because the next free slot
// lies ahead of the clock. It is [ErrExhausted] or [ErrBehind] by its cause.
type LeadError struct {
	Cause  strategies.Cause
	Lead   time.Duration // from the clock's reading to the start of the slot's tick
	Limit  time.Duration // the longest lead that the strategy accepts
	Waited time.Duration // how long the call had waited for slots
	// Seen is the ID that the slot has to follow if [Generator.NextAfter] was given one and it alone lies
	// ahead; else 0.
	Seen snowflake.ID
}

// wrongLead is the lead from which no strategy is advised: a clock was wrong.
const wrongLead = time.Hour

func (e *LeadError) Error() string {
	waited := ""
	if e.Waited > 0 {
		waited = fmt.Sprintf(", after waiting %s", e.Waited)
	}
	retry := "retry"
	if beyond := e.Lead - e.Limit; beyond > 0 {
		retry = fmt.Sprintf("retry in %s", span.Text(beyond))
	}
	if e.Lead > wrongLead && e.Seen == 0 {
		return fmt.Sprintf("the next free slot begins %s ahead of the clock (limit %s%s): the clock is behind, the node number's last one was ahead, or the fleet has a floor: set the clock right and restart; if it is right, take another node number, which does not help against a floor",
			span.Text(e.Lead), e.Limit, waited)
	}
	if e.Cause == strategies.Exhausted {
		return fmt.Sprintf("sequence exhausted: next free slot in %s (limit %s%s): %s, lower the rate, or choose a strategy that waits or borrows longer",
			span.Text(e.Lead), e.Limit, waited, retry)
	}
	if e.Seen != 0 {
		return fmt.Sprintf("IDs above the seen ID %d begin %s ahead of the clock (limit %s%s): %s, or check the clock of its issuer",
			e.Seen, span.Text(e.Lead), e.Limit, waited, retry)
	}
	return fmt.Sprintf("clock is %s behind the last issued ID (limit %s%s): it was stepped back, IDs were borrowed, or the grant begins ahead, at the fleet's floor or a crashed process's limit: %s, or choose a strategy that waits or borrows longer",
		span.Text(e.Lead), e.Limit, waited, retry)
}

// Is reports whether target is the sentinel of the cause, [ErrExhausted] or [ErrBehind], or
// [stores.Transient].
func (e *LeadError) Is(target error) bool {
	return target == stores.Transient || target == ErrExhausted && e.Cause == strategies.Exhausted ||
		target == ErrBehind && e.Cause == strategies.Behind
}

// ErrNotGranted matches a [GrantError], by [errors.Is].
var ErrNotGranted = errors.New("no time granted")

// GrantError reports that the grant of the generator's lease is used up or expired, and
// that there is no further one. The generator issues IDs again as soon as there is a
// grant: answer 503 and try the next request, whatever the kind. [Generator.Err] says whether a restart is needed.
type GrantError struct {
	Node   int64         // the node number that was held
	Limit  time.Time     // where the grant ended
	Past   time.Duration // from Limit to the clock's reading: below zero if IDs ran ahead of the clock
	Waited time.Duration // how long the call had waited in all, for slots and for grants
	Err    error         // why the lease has no further grant, or nil if it gave no reason
	// Context is the error of the call's context if it ended the wait, with its cause,
	// or nil.
	Context error
}

func (e *GrantError) Error() string {
	when := fmt.Sprintf("%s ago", span.Text(e.Past))
	if e.Past < 0 {
		when = fmt.Sprintf("%s ahead of the clock", span.Text(-e.Past))
	}
	text := fmt.Sprintf("grant of node %d ended at %s, %s, and there is no further one", e.Node, e.Limit.UTC().Format(time.RFC3339Nano), when)
	if e.Waited > 0 {
		text += fmt.Sprintf(" after waiting %s", e.Waited)
	}
	if e.Context != nil && (e.Err == nil || !strings.Contains(e.Err.Error(), e.Context.Error())) {
		text += ": " + e.Context.Error()
	}
	if e.Err != nil {
		return text + ": " + e.Err.Error()
	}
	return text + ": the generator has asked for one, retry"
}

// Unwrap returns why the lease has no further grant, and the context's error.
func (e *GrantError) Unwrap() []error {
	var errs []error
	for _, err := range []error{e.Err, e.Context} {
		if err != nil {
			errs = append(errs, err)
		}
	}
	return errs
}

// Is reports whether target is [ErrNotGranted], or [stores.Transient] if Err is nil. Else the kind is
// that of Err: with [stores.Permanent], a call does not wait, and an operator must do what the message
// says.
func (e *GrantError) Is(target error) bool {
	return target == ErrNotGranted || target == stores.Transient && e.Err == nil
}

// endOfTime is the error of a layout whose time field cannot hold the time of another ID: the
// clock has reached end, or slots were borrowed up to it. In the year 2262 every time field
// ends for a generator.
func endOfTime(end time.Time) error {
	if end.Equal(lastInstant) {
		return fmt.Errorf("%w: no generator issues IDs after %s, whatever its layout: set the clock right", lease.ErrEndOfTime, end.Format(time.RFC3339Nano))
	}
	return fmt.Errorf("%w: its IDs end at %s: set the clock right, or move to a layout with larger IDs, or to a new table: IDs of another layout may repeat these",
		lease.ErrEndOfTime, end.Format(time.RFC3339Nano))
}

// join wraps both errors in one line, or returns the one that is not nil.
func join(a, b error) error {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	return fmt.Errorf("%w; %w", a, b)
}
