package strategies

import (
	"fmt"
	"strconv"
	"strings"
)

// SequenceStart says where the sequence of a new tick begins. It changes the
// low bits of IDs, never their order. The zero SequenceStart is [StartZero].
//
// A generator that issues less than one ID per tick issues nearly all of them at the
// start of a sequence. With zero, those IDs are all even. Where n is a power of two, up
// to the sequence's size, id % n puts them all into one shard. A random start spreads
// them.
type SequenceStart struct {
	random bool
	below  int64 // for random
}

// StartZero begins every tick's sequence at zero: the full capacity.
func StartZero() SequenceStart { return SequenceStart{} }

// StartRandom begins every tick's sequence at a random number from 0 up to, but
// not including, below. Give the number of shards, or the sequence's size for an
// even spread over all of it.
//
// The cost is capacity: of the n IDs that a tick can hold, at least n-below+1 remain,
// and n-(below-1)/2 on average. With below equal to n a busy generator loses half its
// ceiling. A tick that is borrowed before the clock
// reaches it begins at zero.
//
// The generator's constructor refuses a below outside 1 to the number of IDs per tick.
func StartRandom(below int64) SequenceStart { return SequenceStart{random: true, below: below} }

// bound is that of [StartRandom], or 1 for [StartZero].
func (s SequenceStart) bound() int64 {
	if !s.random {
		return 1
	}
	return s.below
}

// validate returns an error that wraps [ErrInvalid] unless the start fits a sequence of
// perTick IDs per tick.
func (s SequenceStart) validate(perTick int64) error {
	switch below := s.bound(); {
	case below < 1:
		return fmt.Errorf("%w sequence start: random below %d: the bound must be 1 or more", ErrInvalid, below)
	case below > perTick:
		return fmt.Errorf("%w sequence start: random below %d: the layout holds %d IDs per tick, so give a bound from 1 to %d",
			ErrInvalid, below, perTick, perTick)
	}
	return nil
}

// String returns "zero" or, for example, "random:100".
func (s SequenceStart) String() string {
	if !s.random {
		return "zero"
	}
	return fmt.Sprintf("random:%d", s.below)
}

// ParseSequenceStart reads what String prints: zero, or random:N, as a flag or a configuration file holds
// it. The error wraps [ErrInvalid].
func ParseSequenceStart(s string) (SequenceStart, error) {
	if s == StartZero().String() {
		return StartZero(), nil
	}
	if digits, ok := strings.CutPrefix(s, "random:"); ok {
		below, err := strconv.ParseInt(digits, 10, 64)
		if start := StartRandom(below); err == nil && below > 0 && start.String() == s {
			return start, nil
		}
	}
	if len(s) > 40 {
		s = s[:40] + "…"
	}
	return SequenceStart{}, fmt.Errorf("%w sequence start %q: want zero, or random:N with N from 1 to the IDs per tick of the layout, such as random:256", ErrInvalid, s)
}
