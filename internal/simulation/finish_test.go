//go:build simulate

package simulation

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/internal/window"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/snowflake"
)

// finish checks conditions that hold only at the end of a run.
func (s *sim) finish() {
	defer func() {
		if p := recover(); p != nil {
			s.fail("panic", "%v at%s", p, where())
		}
	}()
	if s.numbers != nil {
		s.numbers.finish()
		return
	}
	s.checkSlots()
	if s.gen != nil {
		s.checkStats()
	}
	if s.ticks != nil {
		s.checkLease()
	}
	s.checkResync()
	if s.gen != nil && !s.over {
		s.checkServed()
	}
}

// heal ends all faults.
func (s *sim) heal() {
	s.clock.Freeze(0)
	s.clock.Coarse(0)
	s.clock.Slew(1, 0)
}

// checkServed checks that once the faults have ended and the clock has caught up,
// a call is served at once, or told that the generator has ended.
func (s *sim) checkServed() {
	s.heal()
	if l := s.ticks; l != nil { // the last grant
		l.give(&s.outside, window.Range{Node: l.held.Node, From: l.held.To, To: math.MaxUint64})
	}
	now := int64(s.reader.Now().Sub(epoch))
	for range 2 { // a leap second may set the wall back once more
		before := now
		lead := max(s.gen.Stats().Lead, s.leadOf(s.present.free&^sealed>>s.SequenceBits, now), 0)
		s.clock.Advance(lead + 2*s.Tick)
		if now = int64(s.reader.Now().Sub(epoch)); now-before > int64(lead) {
			break
		}
	}
	_, err := s.gen.Next()
	lost := s.ticks != nil && s.ticks.lost
	switch {
	case s.closed:
		if !errors.Is(err, generator.ErrClosed) {
			s.fail("not served", "a call after Close returns %v", err)
		}
	case lost && errors.Is(err, lease.ErrLost): // the grant was used up
	case err != nil && now >= 0 && now < s.lifetime-2*int64(s.Tick):
		s.fail("not served", "a call at %s, with no fault and nothing ahead, returns %v", time.Duration(now), err)
	}
}

// checkSlots checks that no slot was lost: without streams, which drop the rest of
// a block, the IDs of a tick stand together and begin where a tick begins.
func (s *sim) checkSlots() {
	for _, op := range s.Ops {
		if op.Kind == Stream {
			return
		}
	}
	mask := uint64(1)<<s.SequenceBits - 1
	last := uint64(math.MaxUint64)
	for _, slot := range slices.Sorted(maps.Keys(s.issued)) {
		tick, sequence := slot>>s.SequenceBits, slot&mask
		begins := last == math.MaxUint64 || last>>s.SequenceBits != tick
		switch {
		case !begins && slot != last+1:
			s.fail("slots lost", "%#x follows %#x", slot, last)
		case begins && s.issued[slot].onTime && sequence != s.drawn[tick]:
			s.fail("start of a tick", "tick %d, reached by the clock, begins with sequence %d, not %d", tick, sequence, s.drawn[tick])
		case begins && sequence != 0 && sequence != s.drawn[tick]:
			s.fail("slots lost", "tick %d begins with sequence %d", tick, sequence)
		}
		last = slot
	}
}

// checkStats compares the generator's counters with the run.
func (s *sim) checkStats() {
	stats := s.gen.Stats()
	expect := func(ok bool, format string, args ...any) {
		if !ok {
			s.fail("stats", "%s: %+v", fmt.Sprintf(format, args...), stats)
		}
	}
	expect(stats.Rejections == s.rejections, "%d rejections were seen", s.rejections)
	expect(stats.Waits == s.waits, "%d waits were seen", s.waits)
	expect(stats.Waited == s.waited, "waits of %s were seen", s.waited)
	expect(stats.MaxLead >= s.leadFloor, "a lead of %s was seen", s.leadFloor)
	expect(stats.MaxLead <= s.leadCeiling || s.Clock != Raw, "no lead above %s was seen", s.leadCeiling)
	most, least := uint64(len(s.maybeBorrowed)), uint64(len(s.surelyBorrowed))
	if s.Callers > 1 {
		least = min(least, 1) // of several callers that begin to borrow at once, one is counted
	}
	expect(least <= stats.BorrowedTicks && stats.BorrowedTicks <= most, "%d to %d ticks were seen to be borrowed", least, most)

	if r, ok := s.reader.(*monoReader); ok {
		drift := s.clock.Wall().Sub(r.Clock.Now())
		expect(s.gen.Stats().Drift == drift, "the drift is %s", drift)
	}
	t := s.present
	now := int64(s.reader.Now().Sub(epoch))
	granted := s.leadOf(max(t.limit, t.free&^sealed)>>s.SequenceBits, now)
	expect(s.gen.Stats().Granted == granted, "granted for %s", granted)
	if s.closed {
		expect(stats.Lead == 0, "closed")
	} else if t.free == t.begin {
		lead := max(0, s.leadOf(t.begin>>s.SequenceBits, now))
		expect(s.gen.Stats().Lead == lead, "no ID of this node number was issued, and the lead of the first is %s", lead)
	} else if last := s.largest; last >= 0 && !slices.ContainsFunc(s.Ops, func(op Op) bool { return op.Kind == Stream }) {
		lead := max(0, s.leadOf(uint64(last)>>s.SequenceBits, now))
		expect(s.gen.Stats().Lead == lead, "the lead is %s", lead)
	}
}

// checkResync checks that a Clock which resyncs has caught up once it was read
// late enough.
func (s *sim) checkResync() {
	r, ok := s.reader.(*monoReader)
	if !ok || s.Clock != Resync || s.over {
		return
	}
	s.heal()
	s.clock.Advance(time.Second)
	before := r.Drift()
	r.Clock.Now()
	drift := r.Drift()
	switch followed := before > s.Threshold && before <= s.Limit; {
	case followed && drift != 0:
		s.fail("resync", "a drift of %s was not caught up: %s is left", before, drift)
	case !followed && drift != before:
		s.fail("resync", "a drift of %s became %s, with threshold %s and limit %s", before, drift, s.Threshold, s.Limit)
	}
}

// strategyText is the strategy as it prints itself. A function would print its
// address, which is another in every program.
func (s *sim) strategyText() string {
	if text, ok := s.Strategy.(fmt.Stringer); ok {
		return text.String()
	}
	return fmt.Sprintf("the %T", s.Strategy)
}

// idText shows an ID's parts.
func (s *sim) idText(id snowflake.ID) string {
	slot, tick := s.slotOf(id)
	return fmt.Sprintf("slot %#x (tick %d, sequence %d)", slot, tick, slot&(1<<s.SequenceBits-1))
}

func (s *sim) idsText(ids []snowflake.ID, err error) string {
	var b strings.Builder
	for i, id := range ids {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(s.idText(id))
	}
	if err != nil {
		// Only the type: the message of a wait that was cut short has real time in it.
		fmt.Fprintf(&b, " error %T", err)
	}
	return b.String()
}
