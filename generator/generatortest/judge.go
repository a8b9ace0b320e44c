package generatortest

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// judge compares the calls of one script with the claim. One goroutine at a time uses
// it.
type judge[ID cmp.Ordered] struct {
	subject *Subject[ID]
	result  *Result
	warped  bool // the clock does more than jump: bounds of causes that follow each other add up

	world *world

	process int // that of the call that is judged, or of what the machine does
	step    int
	calls   int

	events []event[ID] // the calls that returned an ID
	last   map[ID]int  // where in events each ID was returned last
}

// event is a call that returned an ID.
type event[ID cmp.Ordered] struct {
	id ID
	Event
}

// line is what callers got from a process, and from those whose state it started on.
type line[ID cmp.Ordered] struct {
	process int       // the number of the process
	largest int       // where in events the largest is that Next or NextN returned, and 1; 0: there is none
	stream  int       // so the last of the stream
	start   time.Time // when the first process started: it may hold what was before for others'
	top     time.Time // the latest tick of any ID; zero: there is none
	// unknown says that the process started on the state of another and has issued
	// nothing yet. More than the IDs of this line may bind it; its first ID, even if
	// out of order, is the base for judging its later ones.
	unknown bool
}

// call is one call of Next, of NextN or to a stream.
type call struct {
	began, ended time.Time // the generator's clock
	stall        time.Duration
	several      bool // a batch
	stream       bool // to the stream
	shared       bool // others ran at the same time: time passed for all of them
	jumped       bool // the wall jumped in the middle of it
}

func (j *judge[ID]) violate(kind Kind, format string, args ...any) {
	j.result.violate(kind, func() Violation {
		return Violation{Kind: kind, Event: j.now(), Detail: fmt.Sprintf(format, args...)}
	})
}

// now is an event of the call that is judged.
func (j *judge[ID]) now() Event {
	return Event{Process: j.process, Step: j.step, Call: j.calls, At: Seconds(j.world.clock.Passed())}
}

// returned judges a call that filled so many of ids, and returned err. The line is as it was when the
// call began, except that other callers may have added to it; before is what had been returned by then.
func (j *judge[ID]) returned(l *line[ID], before line[ID], c call, ids []ID, filled int, err error) {
	j.calls++
	j.process = l.process
	if !c.shared {
		j.stalled(before, c)
	}
	got := min(max(filled, 0), len(ids))
	now := j.now()
	for _, id := range ids[:got] {
		j.issued(l, &before, c, id, now)
	}
	if err != nil {
		j.result.Errors++
		j.failed(before, c, got > 0, err)
	} else if got == 0 {
		j.violate(WrongError, "the call returned neither an ID nor an error")
	}
	if filled != got || err == nil && 0 < filled && filled < len(ids) { // of none, it has been said
		j.violate(WrongError, "a batch of %d filled %d, with the error %v", len(ids), filled, err)
	}
}

// timed reports whether the tick of an ID is known.
func (j *judge[ID]) timed() bool { return j.subject.Time != nil && j.subject.Tick > 0 }

// stalled judges how long a call took.
func (j *judge[ID]) stalled(before line[ID], c call) {
	j.result.LongestStall = max(j.result.LongestStall, Seconds(c.stall))
	if c.stall == 0 {
		return
	}
	over := !j.subject.End.IsZero() && !c.began.Before(j.subject.End)
	bound, lead, cause := j.bound(before, c.began, c.several || c.jumped || over)
	allowed, why := bound.Wait, string(cause)
	if least := lead - j.subject.Tick; cause == behind && least > bound.reach() {
		allowed, why = 0, fmt.Sprintf("since the clock was at least %s behind, further than a wait may help", least)
	}
	if c.stall > allowed {
		j.violate(Stall, "the call took %s; at most %s, %s", c.stall, allowed, why)
	}
}

// issued judges one ID.
func (j *judge[ID]) issued(l *line[ID], before *line[ID], c call, id ID, now Event) {
	j.add(id, now)
	ordered := j.inOrder(l, before, c, id)
	if j.subject.Time != nil {
		j.onTime(l, before, c, id, ordered)
	}
	l.unknown = false
}

// beside notes a call of a process that another has taken over from. The call may fail
// in any way, but must not return an ID that was issued before.
func (j *judge[ID]) beside(process int, ids []ID) {
	j.calls++
	j.process = process
	for _, id := range ids {
		j.add(id, j.now())
	}
}

// add notes an ID, which must be new.
func (j *judge[ID]) add(id ID, now Event) {
	j.result.Issued++
	j.events = append(j.events, event[ID]{id, now})
	if first, ok := j.last[id]; ok {
		j.result.Duplicates++
		j.broken(Duplicate, first+1, "%v was issued twice", id)
	}
	j.last[id] = len(j.events) - 1
}

// event is the call at an index.
func (j *judge[ID]) event(index int) Event {
	e := j.events[index]
	e.ID = fmt.Sprint(e.id)
	return e.Event
}

// inOrder judges the order, and notes the ID for the calls to come. It reports
// whether the ID is in order.
func (j *judge[ID]) inOrder(l *line[ID], before *line[ID], c call, id ID) (ordered bool) {
	this := len(j.events)
	if c.stream {
		if ordered = l.stream == 0 || id > j.events[l.stream-1].id; !ordered {
			j.disorder(l.stream, "%v is not above %v, which the stream had returned", id, j.events[l.stream-1].id)
		}
		l.stream = this
		return ordered
	}
	if ordered = before.largest == 0 || id > j.events[before.largest-1].id; !ordered {
		j.disorder(before.largest, "%v is not above %v, which had been returned before the call began", id, j.events[before.largest-1].id)
	}
	if c.several { // the next of the batch comes after this one
		before.largest = this
	}
	if l.largest == 0 || id > j.events[l.largest-1].id || l.unknown {
		l.largest = this
	}
	return ordered
}

// disorder notes that the last ID is out of order: after that of this index, and 1, if it is not 0.
func (j *judge[ID]) disorder(after int, format string, args ...any) {
	j.result.Disorder++
	if !j.subject.Claim.Unordered {
		j.broken(Disorder, after, format, args...)
	}
}

// broken notes what the last ID breaks, also with an earlier one: that of this index, and 1, if it is not 0.
func (j *judge[ID]) broken(kind Kind, earlier int, format string, args ...any) {
	j.result.violate(kind, func() Violation {
		v := Violation{Kind: kind, Event: j.event(len(j.events) - 1), Detail: fmt.Sprintf(format, args...)}
		if earlier > 0 {
			first := j.event(earlier - 1)
			v.First = &first
		}
		return v
	})
}

// onTime judges the time that an ID carries, in order or not.
func (j *judge[ID]) onTime(l *line[ID], before *line[ID], c call, id ID, ordered bool) {
	s := j.subject
	tick := s.Time(id)
	if ordered && tick.Before(before.top) {
		j.disorder(0, "%v is of %s, an earlier tick than one that had been returned before the call began: %s", id, show(tick), show(before.top))
	}
	if tick.After(l.top) || l.unknown {
		l.top = tick
	}
	now := c.ended
	if without := c.began.Add(c.stall); c.several && without.After(now) {
		now = without // a leap second came between the first of the batch and the last
	}
	lead := tick.Sub(now)
	j.result.LargestLead = max(j.result.LargestLead, Seconds(lead))
	// By the clock at the end, since a call that waits may borrow the rest. If the tick
	// was free by then, it needed no borrow.
	bound, _, cause := j.bound(*before, c.ended, c.several || c.stream || c.shared || j.warped)
	if lead > bound.Borrow && !c.jumped {
		j.violate(Lead, "%v is %s ahead of the clock; at most %s, %s", id, lead, bound.Borrow, cause)
	}
	if s.Tick > 0 && !tick.Add(s.Tick).After(c.began) && !c.jumped {
		j.violate(Stale, "%v is of %s, but the call began at %s", id, show(tick), show(c.began))
	}
	if !s.End.IsZero() && !tick.Before(s.End) {
		j.violate(EndOfTime, "%v is of %s, but time ends at %s", id, show(tick), show(s.End))
	}
	if !s.End.IsZero() && !c.began.Before(s.End) && !c.jumped {
		j.violate(EndOfTime, "%v was issued at %s, but time ends at %s", id, show(c.began), show(s.End))
	}
	if c.began.Before(s.Epoch) && c.ended.Before(s.Epoch) && !c.jumped {
		j.violate(EndOfTime, "%v was issued at %s, but time begins at %s", id, show(c.ended), show(s.Epoch))
	}
}

// failed judges an error.
func (j *judge[ID]) failed(before line[ID], c call, filled bool, err error) {
	s := j.subject
	if s.CheckError != nil {
		if wrong := s.CheckError(err); wrong != nil {
			j.violate(WrongError, "%v: %v", wrong, err)
		}
	}
	if !j.timed() || before.unknown || c.jumped || c.ended.Before(s.Epoch) {
		return
	}
	if !s.End.IsZero() && (!c.ended.Before(s.End) || !before.top.IsZero() && !before.top.Add(s.Tick).Before(s.End)) {
		return // there is no time left to serve it
	}
	lead, cause := j.lead(before, c.ended)
	bound := s.Claim.Exhausted
	if cause == behind {
		bound = s.Claim.Behind
	}
	switch {
	case c.shared:
		// Other callers take free slots, and time passes for all. A generator that
		// waits Forever need not fail even so, unless others have borrowed.
		_, began := j.lead(before, c.began)
		if !c.several && began != behind && s.Claim.Exhausted.Wait == Forever && s.Claim.Exhausted.Borrow == 0 {
			j.violate(Rejected, "the call failed among others, though the generator %s for a tick that is used up: %v", s.Claim.Exhausted, err)
		}
		return
	case c.several && (filled || cause != none):
		return
	}
	// The lead is that of a slot after the last tick's: at least that of the slot
	// the call failed to get.
	if cause == none {
		j.violate(Rejected, "the call failed though its tick was free: %v", err)
	} else if lead <= bound.Borrow || lead <= bound.Wait-c.stall {
		j.violate(Rejected, "the call failed though its slot was at most %s ahead, and a generator that %s serves it: %v", lead, bound, err)
	}
}

// cause says which bound a call has.
type cause string

const (
	none      cause = "since its tick was free" // the clock's tick is after that of every ID
	exhausted cause = "as claimed for a tick that is used up"
	behind    cause = "as claimed for a clock that is behind"
	either    cause = "as claimed"
)

// bound returns what binds a call at an instant, and the lead. For a loose call it is the larger of both causes,
// as where a cause is not known, or where the clock does more than jump.
func (j *judge[ID]) bound(before line[ID], at time.Time, loose bool) (Bound, time.Duration, cause) {
	claim := j.subject.Claim
	switch lead, cause := j.lead(before, at); {
	case loose || before.unknown || !j.timed() || j.warped && cause != none:
		return Bound{max(claim.Exhausted.Wait, claim.Behind.Wait), max(claim.Exhausted.Borrow, claim.Behind.Borrow)}, lead, either
	case cause == exhausted:
		return claim.Exhausted, lead, cause
	case cause == behind:
		return claim.Behind, lead, cause
	}
	return Bound{}, 0, none
}

// lead returns how far the first tick after that of every ID is ahead of now.
func (j *judge[ID]) lead(l line[ID], now time.Time) (time.Duration, cause) {
	if l.top.IsZero() {
		if now.Before(l.start) {
			return l.start.Sub(now), behind
		}
		return 0, none
	}
	lead := l.top.Add(j.subject.Tick).Sub(now)
	switch {
	case lead <= 0:
		return lead, none
	case now.Before(l.top):
		return lead, behind
	}
	return lead, exhausted
}

// end sorts the violations.
func (j *judge[ID]) end() {
	slices.SortStableFunc(j.result.Violations, func(a, b Violation) int { return cmp.Compare(slices.Index(kinds, a.Kind), slices.Index(kinds, b.Kind)) })
}

func show(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000000Z") }
