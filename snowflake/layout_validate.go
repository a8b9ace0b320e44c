package snowflake

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tickflake/tickflake/internal/span"
)

// maxBits is the number of bits of an ID that a layout can use: all but the sign.
const maxBits = 63

// The bounds of an epoch: those of a positive int64 of nanoseconds since 1970.
var (
	minEpoch = time.Unix(0, 0).UTC()
	maxEpoch = time.Unix(0, math.MaxInt64).UTC()
)

// reservedNames are the words of a layout spec. They are no names for parts.
var reservedNames = []string{"time", "node", "sequence", "tick", "epoch"}

// problemsError returns an error that wraps cause and lists what is wrong.
func problemsError(cause error, name string, problems []string) error {
	if name != "" {
		name = " " + strconv.Quote(name)
	}
	if len(problems) == 1 {
		return fmt.Errorf("%w%s: %s", cause, name, problems[0])
	}
	numbered := make([]string, len(problems))
	for i, p := range problems {
		numbered[i] = fmt.Sprintf("(%d) %s", i+1, p)
	}
	return fmt.Errorf("%w%s: %d problems: %s", cause, name, len(problems), strings.Join(numbered, "; "))
}

// Validate reports whether the layout is well formed: every field within the
// range that its doc comment states, widths that sum to at most 63 bits, and
// parts with valid, distinct names whose widths sum to NodeBits. It reads no
// clock; see [Layout.ValidateAt]. The error wraps [ErrLayout] and lists every problem
// with its numbers.
func (l Layout) Validate() error {
	var ps []string
	ps = l.checkWidths(ps)
	ps = l.checkTick(ps)
	ps = l.checkEpoch(ps)
	if l.Order != TimeNodeSequence && l.Order != TimeSequenceNode {
		ps = append(ps, fmt.Sprintf("%s is unknown; use TimeNodeSequence or TimeSequenceNode", l.Order))
	}
	ps = l.checkParts(ps)
	if len(ps) > 0 {
		return problemsError(ErrLayout, l.Name, ps)
	}
	return nil
}

// released is a day before which no clock that is right runs this code. .ci/release sets it.
var released = time.Date(2026, 11, 28, 0, 0, 0, 0, time.UTC)

// ValidateAt reports whether the layout is well formed, as [Layout.Validate]
// does, and can stamp IDs at the instant now: now lies neither before the epoch
// nor after the time field. The error wraps [ErrLayout], or [ErrEarly] if now lies before an epoch that is
// older than this release: then the clock is wrong, and not the layout.
func (l Layout) ValidateAt(now time.Time) error {
	if err := l.Validate(); err != nil {
		return err
	}
	now = now.Round(0)
	epoch, end := instantText(l.Epoch), l.end()
	if now.Before(l.Epoch) {
		if l.Epoch.After(released) {
			return problemsError(ErrLayout, l.Name, []string{fmt.Sprintf("epoch %s is %s after now, %s; choose an epoch in the past",
				epoch, spanText(l.Epoch, now), instantText(now))})
		}
		return fmt.Errorf("%w: it reads %s, %s before the epoch of the layout, %s: set it right", ErrEarly, instantText(now), spanText(l.Epoch, now), epoch)
	}
	if !now.Before(end) {
		return problemsError(ErrLayout, l.Name, []string{fmt.Sprintf("the time field, %d bits of %s from %s, ended at %s, %s before now, %s; existing IDs still decode; to issue new ones set the clock right, or use a new table with a later epoch, more time bits or a longer tick (in the old table these would repeat IDs)",
			l.TimeBits, l.Tick, epoch, instantText(end), spanText(now, end), instantText(now))})
	}
	return nil
}

func (l Layout) checkWidths(ps []string) []string {
	widths := []struct {
		field     string
		bits, min int
	}{{"time", l.TimeBits, 1}, {"node", l.NodeBits, 0}, {"sequence", l.SequenceBits, 0}}
	sum := 0
	for _, w := range widths {
		if w.bits < w.min || w.bits >= maxBits {
			ps = append(ps, fmt.Sprintf("the %s field is %d bits wide; give it %d to %d bits", w.field, w.bits, w.min, maxBits-1))
		}
		sum += boundWidth(w.bits)
	}
	if sum > maxBits {
		msg := fmt.Sprintf("widths %d+%d+%d sum to %d bits; at most %d fit (the 64th is the sign): remove %d",
			l.TimeBits, l.NodeBits, l.SequenceBits, sum, maxBits, sum-maxBits)
		if l.TimeBits > 0 && l.TimeBits < maxBits && l.Tick > 0 {
			msg += fmt.Sprintf("; %d bits of %s last %s", l.TimeBits, l.Tick, span.Seconds(fieldYears(l.TimeBits, l.Tick)*span.Year))
		}
		ps = append(ps, msg)
	}
	return ps
}

func (l Layout) checkTick(ps []string) []string {
	if l.Tick >= 1 && l.Tick <= time.Hour {
		return ps
	}
	return append(ps, fmt.Sprintf("a tick of %s is out of range; give 1ns to 1h, usually 1ms", l.Tick))
}

func (l Layout) checkEpoch(ps []string) []string {
	epoch := l.Epoch.Round(0)
	if !epoch.Before(minEpoch) && !epoch.After(maxEpoch) {
		return ps
	}
	switch {
	case epoch.IsZero():
		return append(ps, "the epoch is not set; give the instant of tick 0, such as the start of the year in which the first ID is issued")
	case epoch.Before(minEpoch):
		return append(ps, fmt.Sprintf("epoch %s is %s before %s, the earliest possible; choose a later one",
			instantText(epoch), spanText(epoch, minEpoch), instantText(minEpoch)))
	}
	return append(ps, fmt.Sprintf("epoch %s is %s after %s, the latest possible (64 bits of nanoseconds since 1970); choose an earlier one",
		instantText(epoch), spanText(epoch, maxEpoch), instantText(maxEpoch)))
}

func (l Layout) checkParts(ps []string) []string {
	if len(l.Parts) >= maxBits {
		return append(ps, fmt.Sprintf("the node has %d parts; at most %d of 1 bit each fit: remove %d", len(l.Parts), maxBits-1, len(l.Parts)-maxBits+1))
	}
	sum := 0
	for i, p := range l.Parts {
		if msg := checkPartName(p.Name); msg != "" {
			ps = append(ps, msg)
		}
		if slices.ContainsFunc(l.Parts[:i], func(q Part) bool { return q.Name == p.Name }) {
			ps = append(ps, fmt.Sprintf("part name %q occurs twice; give each part its own", p.Name))
		}
		if p.Bits < 1 || p.Bits >= maxBits {
			ps = append(ps, fmt.Sprintf("part %q is %d bits wide; give it 1 to %d bits", p.Name, p.Bits, maxBits-1))
		}
		sum += boundWidth(p.Bits)
	}
	if len(l.Parts) > 0 && sum != l.NodeBits {
		ps = append(ps, fmt.Sprintf("the widths of the node's parts sum to %s, but the node field has %s; make them equal", bitsText(sum), bitsText(l.NodeBits)))
	}
	return ps
}

// boundWidth bounds a width that is reported anyway, so that a sum cannot overflow.
func boundWidth(width int) int { return min(max(width, 0), 1<<16) }

func bitsText(n int) string {
	if n == 1 {
		return "1 bit"
	}
	return fmt.Sprintf("%d bits", n)
}

// checkPartName returns what is wrong with the name of a part, or "".
func checkPartName(name string) string {
	if slices.Contains(reservedNames, name) {
		return fmt.Sprintf("part name %q is reserved; choose another than %s", name, strings.Join(reservedNames, ", "))
	}
	for i, c := range []byte(name) {
		letter := c >= 'a' && c <= 'z'
		if !letter && (i == 0 || (c < '0' || c > '9') && c != '_' && c != '-') {
			return fmt.Sprintf("part name %q is not valid; use a lower-case letter followed by lower-case letters, digits, _ or -", name)
		}
	}
	if name == "" {
		return "a part has no name; use a lower-case letter followed by lower-case letters, digits, _ or -"
	}
	return ""
}
