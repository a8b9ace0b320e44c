package strategies

import (
	"fmt"
	"slices"
	"strings"
)

// Chain returns the strategy that asks each of its members in order and takes
// the first decision that is not a rejection:
//
//	Chain(BorrowUpTo(time.Second), WaitUpTo(5*time.Second))
//
// borrows while the lead is at most 1 s, waits while it is at most 5 s, and rejects a
// longer lead. A wait that follows a borrow in the chain lasts only until
// the lead is short enough to borrow. If every member
// rejects, the error reports the largest limit.
//
// The generator's constructor refuses a Chain without members or with a nil member.
func Chain(members ...Strategy) Strategy { return chain(slices.Clone(members)) }

type chain []Strategy

func (c chain) Decide(s Situation) Decision {
	rejected := Decision{Action: ActionReject}
	for _, member := range c {
		d := member.Decide(s)
		switch d.Action {
		case ActionBorrow:
			return d
		case ActionWait:
			if d.Wait <= 0 {
				d.Wait = s.Lead
			}
			d.Wait = min(d.Wait, s.Lead-c.limits(s.Cause).Always) // above 0: else this member, or one before it, borrows
			return d
		}
		rejected.Limit = max(rejected.Limit, d.Limit)
	}
	return rejected
}

func (c chain) String() string {
	members := make([]string, len(c))
	for i, member := range c {
		members[i] = nested(member)
	}
	return strings.Join(members, ",")
}

func (c chain) validate() error {
	if len(c) == 0 {
		return fmt.Errorf("%w strategy: Chain has no members: give at least one strategy, or Reject()", ErrInvalid)
	}
	for i, member := range c {
		if err := Validate(member); err != nil {
			return fmt.Errorf("Chain member %d of %d: %w", i+1, len(c), err)
		}
	}
	return nil
}

// PerCause returns the strategy that asks one strategy when the sequence is exhausted
// and another when the clock is behind.
//
// A generator that has borrowed is behind its own last ID, so a strategy that
// borrows when exhausted should borrow at least as far when behind; otherwise it
// borrows one slot and then does what behind says.
//
// The generator's constructor refuses a nil member.
func PerCause(exhausted, behind Strategy) Strategy { return perCause{exhausted, behind} }

type perCause struct{ exhausted, behind Strategy }

func (p perCause) Decide(s Situation) Decision { return p.of(s.Cause).Decide(s) }

func (p perCause) of(cause Cause) Strategy {
	if cause == Exhausted {
		return p.exhausted
	}
	return p.behind
}

func (p perCause) String() string {
	return "exhausted=" + nested(p.exhausted) + "/behind=" + nested(p.behind)
}

func (p perCause) validate() error {
	if err := Validate(p.exhausted); err != nil {
		return fmt.Errorf("PerCause for exhausted: %w", err)
	}
	if err := Validate(p.behind); err != nil {
		return fmt.Errorf("PerCause for behind: %w", err)
	}
	return nil
}

// nested returns the text of a member: that of a [PerCause] stands in parentheses.
func nested(s Strategy) string {
	text := fmt.Sprintf("%T", s)
	if s, ok := s.(fmt.Stringer); ok {
		text = s.String()
	}
	if _, ok := s.(perCause); ok {
		return "(" + text + ")"
	}
	return text
}
