package simulation

import (
	"fmt"
	"math"
	"slices"

	core "github.com/tickflake/tickflake/internal/simulation/core/generator"
	"github.com/tickflake/tickflake/internal/simulation/seam"
)

// growing are the words of the generator and of monoclock.Clock that only grow.
var growing = []string{"free", "last", "limit", "next", "tenure", "maxLead", "borrowedEnd", "caughtUp", "nextResync"}

// sealed is the bit of free that ends a tenure; what is below stays as it was.
const sealed = 1 << 63

// tenure is what is known of one of the generator's, from its words.
type tenure struct {
	node              int64
	floor             uint64 // the first slot that is granted
	free, last, limit uint64
	// begin is where free began, if no slot of the tick before was issued by then;
	// else it is no slot.
	begin uint64
	used  bool // slots were taken
	final bool // the one after the last, in which nothing is issued
}

// words is what a run knows of the generator's words.
type words struct {
	watched map[string]int
	tenures []tenure // in their order; numbers begin with 1
	coming  tenure   // what is known of the next
	present uint64   // the number of the generator's own
	tells   int      // how often the news of a grant were told

	sealed bool   // the last tenure's word is: nothing can be taken any more
	done   bool   // those who wait were told that the generator is closed
	end    uint64 // the first tick of which nothing was reserved, if sealed
}

// reservation is what a caller has taken: slots from or above begin, up to end.
type reservation struct {
	begin, end uint64
	node       int64
	tenure     int
}

// Watch counts the words of a name. A tenure is known from when it is set as next.
func (s *sim) Watch(word string, value uint64) int {
	s.watched[word]++
	n := s.watched[word]
	if s.gen == nil {
		return n
	}
	switch word {
	case "free":
		s.coming.free = value
		s.tenures = append(s.tenures, s.coming)
		s.sawEnd()
	case "last":
		s.tenures[n-1].last = value
	case "limit":
		t := &s.tenures[n-1]
		t.limit = value
		s.checkLast(n)
		if t.final && value != s.current.limit {
			s.fail("limit", "of the closed generator is %#x, but was seen as %#x", value, s.current.limit)
		}
	case "tenure":
		s.present = value
	}
	return n
}

// After takes note of an access that a word has had.
func (s *sim) After(a seam.Access) {
	c := s.current
	if c == nil || c.dead {
		return
	}
	s.note(uint64(c.id)<<8 | uint64(a.Op))
	s.note(a.New)
	if s.trace() {
		s.tracef("%s: %s", c, accessText(a))
	}
	if a.New < a.Old && slices.Contains(growing, a.Word) {
		s.fail("word goes back", "%s", accessText(a))
	}
	if s.gen != nil {
		c.saw(a)
	}
}

// saw notes what an access tells of the generator.
func (c *caller) saw(a seam.Access) {
	s, asking := c.sim, &c.call.asking
	switch a.Word {
	case "free":
		c.sawFree(a)
	case "last":
		s.tenures[a.Number-1].last = a.New
		s.checkLast(a.Number)
		c.call.last = a.New
	case "limit":
		s.tenures[a.Number-1].limit = a.New
		s.checkLast(a.Number)
		c.limit = a.New
		if c.granting == nil {
			asking.limit, asking.tenure, asking.looked = a.New, a.Number, asking.asked
		}
	case "next":
		if a.New == a.Old {
			return
		}
		s.coming = tenure{node: s.tenures[a.Number-1].node, final: true, begin: math.MaxUint64}
		c.ending = c.granting == nil
		if g := c.granting; g != nil {
			s.coming = tenure{node: g.Node, floor: min(g.Floor, s.lastTick+1) << s.SequenceBits, begin: math.MaxUint64}
		}
	case "tenure":
		s.present = a.New
		if a.Op == seam.CompareAndSwap && c.ending {
			c.ending, s.done = false, true // with no step between
		}
	case "news":
		if c.granting != nil {
			s.tells++
		} else {
			asking.listens, asking.heard = true, s.tells
		}
	}
}

// sawFree notes what the caller has seen of a tenure's word, or done to it.
func (c *caller) sawFree(a seam.Access) {
	s := c.sim
	t := &s.tenures[a.Number-1]
	if a.Old >= sealed && a.New != a.Old {
		s.fail("sealed word moves", "%s", accessText(a))
	}
	t.free = a.New
	if a.New >= sealed && a.Old < sealed {
		s.sawEnd()
	}
	swapped := a.Op == seam.CompareAndSwap && !a.Failed
	if swapped && uint64(a.Number) == s.present+1 && a.Old == 0 {
		s.opened(a) // by whoever came first
		return
	}
	swapped = swapped && a.New != a.Old // one who helps late opens slot 0 again
	if swapped {
		if (a.New-1)>>s.SequenceBits > t.last>>s.SequenceBits || uint64(a.Number) > s.present {
			s.fail("reserved too soon", "%s, but the last slot that may be taken is %#x of tenure %d", accessText(a), t.last, s.present)
		}
		t.used = true
		c.endReservation()
		c.call.reserved = a.New
		c.call.reservations = append(c.call.reservations, reservation{a.Old, a.New, t.node, a.Number})
	}
	if c.granting != nil {
		return // the lease's look at it
	}
	if !c.call.seenFree {
		c.call.firstFree = a.Old
	}
	c.call.free, c.call.begin, c.call.seenFree = a.New, t.begin, true
	if swapped {
		c.noteLead(int64(s.clock.Wall().Sub(epoch)))
	}
}

// opened checks where the word of the tenure that comes next begins: with the first
// tick of which nothing was issued and which is granted.
func (s *sim) opened(a seam.Access) {
	t, before := &s.tenures[a.Number-1], s.tenures[a.Number-2]
	if before.free < sealed {
		s.fail("opened too soon", "%s, and before it slots can be taken: %#x", accessText(a), before.free)
	}
	free := before.free &^ sealed
	first := max(s.tickEnd(free), t.floor)
	if a.New&^sealed != first || t.final != (a.New >= sealed) {
		s.fail("opened elsewhere", "%s, but the first slot is %#x", accessText(a), first)
	}
	if first > s.tickEnd(free) || free == before.begin {
		t.begin = first
	}
}

// tickEnd is the first slot, from free on, that begins a tick.
func (s *sim) tickEnd(free uint64) uint64 {
	mask := uint64(1)<<s.SequenceBits - 1
	return (free + mask) &^ mask
}

// sawEnd notes that the generator has ended, if it has.
func (s *sim) sawEnd() {
	if n := len(s.tenures); n > 1 && s.tenures[n-1].final && s.tenures[n-2].free >= sealed {
		s.sealed = true
		s.end = s.tickEnd(s.tenures[n-2].free&^sealed) >> s.SequenceBits
	}
}

func (s *sim) checkLast(tenure int) {
	if t := s.tenures[tenure-1]; t.last > t.limit {
		s.fail("last beyond limit", "tenure %d: %#x, and the limit is %#x", tenure, t.last, t.limit)
	}
}

func accessText(a seam.Access) string {
	word := a.Word
	if a.Number > 1 {
		word = fmt.Sprintf("%s#%d", word, a.Number)
	}
	switch {
	case a.Op == seam.Load:
		return fmt.Sprintf("load %s = %#x", word, a.Old)
	case a.Op == seam.Lock:
		return fmt.Sprintf("lock %s", word)
	case a.Failed:
		return fmt.Sprintf("%s %s fails: it is %#x", a.Op, word, a.Old)
	}
	return fmt.Sprintf("%s %s: %#x becomes %#x", a.Op, word, a.Old, a.New)
}

// checkReserved checks that an ID's slot was reserved by its caller, in this call or
// as a block, under the node number that was held then, and that the generator had
// not gone on from that number when the call began.
func (c *caller) checkReserved(id core.ID, slot uint64, node int64) {
	s := c.sim
	held := c.call.reservations
	if len(held) == 0 {
		held = []reservation{c.block.held}
	}
	if !slices.ContainsFunc(held, func(r reservation) bool {
		return r.begin <= slot && slot < r.end && r.node == node && uint64(r.tenure) >= c.call.present
	}) {
		s.fail("not reserved", "%s, of %v, and %d was present", s.idText(id), held, c.call.present)
	}
}
