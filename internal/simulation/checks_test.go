//go:build simulate

package simulation

import (
	"fmt"
	"math"
	"time"

	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/strategies"
)

// The width of the node field, and the largest node number.
const (
	nodeBits = 2
	maxNode  = 1<<nodeBits - 1
)

// checks is the state of the checks of calls. A slot is tick<<SequenceBits | sequence.
type checks struct {
	closed    bool   // Close has returned
	cancelled []bool // by operation: its context has ended

	allowed  uint64        // ticks that the strategy borrows in any case
	patience time.Duration // the longest that the strategy waits for slots in one call
	// grantPatience is the longest that a call without a deadline waits while there is no grant.
	grantPatience time.Duration
	first         uint64 // the first slot of the generator
	lastTick      uint64 // of the time field
	lifetime      int64  // of the layout, in nanoseconds

	issued  map[uint64]issue  // by slot
	drawn   map[uint64]uint64 // where a tick begins that the clock had reached
	draws   bool              // such a tick begins at a random number
	largest int64             // slot returned by a call other than a stream's, or -1
	highest int64             // ID returned by one, or -1
	latest  int64             // tick returned by any call, or -1

	waits, rejections uint64
	waited            time.Duration

	// What Stats must show: a MaxLead between the two, and no tick as borrowed
	// that may not have been.
	leadFloor, leadCeiling time.Duration
	maybeBorrowed          map[uint64]bool
	surelyBorrowed         map[uint64]bool
}

// issue describes an ID.
type issue struct {
	onTime bool // its tick had begun by every reading of its call
}

// call describes a caller's present call.
type call struct {
	kind      callKind
	floor     int64 // the largest slot returned before it began, or -1
	floorID   int64
	floorTick int64
	present   *span
	grants    int  // of the lease
	revoked   bool // and nothing granted since
	closed    bool // the generator was closed before it began
	cancelled bool // its context had ended before it began
	cut       bool // a wait of it was cut short

	// free is the generator's word as this caller has seen it last, if seenFree,
	// and firstFree as it has seen it first; begin is that of its span.
	free, firstFree, begin uint64
	span                   *span
	seenFree               bool
	drawn                  uint64 // for a fresh tick, since it saw free last
	drew                   bool   // a number, since then
	limited                bool   // has seen the limit since then

	waited       time.Duration // for all its waits
	ungranted    time.Duration // of that, for grants
	dry          time.Duration // of that, while the grant ended at grantEnd
	grantEnd     uint64
	pending      bool   // the present reservation has waited
	reserved     uint64 // the slot after those of the last reservation, or 0
	reservations []reservation
	looks        []look
	list         [1]snowflake.ID

	heard   int   // how many changes there were when it took the channel that tells
	from    *span // that was present then
	asked   bool  // why there is no grant, since the last reading
	refused error // the answer
}

// block describes a caller's stream.
type block struct {
	last            int64 // slot issued, or -1
	left            int64 // slots that are reserved and not issued
	issued, dropped int64 // slots
	held            reservation
	id              snowflake.ID // issued last
}

// look is a reading of the clock.
type look struct {
	reading int64  // nanoseconds since the epoch
	free    uint64 // the word as seen before the reading
	begin   uint64 // of its span
	limit   uint64 // of its span
	limited bool   // which was seen after free
	span    *span
	waited  time.Duration // for slots
}

// String shows the look without addresses, which differ from run to run.
func (l look) String() string {
	return fmt.Sprintf("{reading %s, free %#x, limit %#x, waited %s}", time.Duration(l.reading), l.free, l.limit, l.waited)
}

type callKind uint8

const (
	single callKind = iota
	batch
	streamed
)

func (s *sim) prepareChecks() {
	s.cancelled = make([]bool, len(s.Ops))
	s.allowed = s.tickOf(int64(strategies.BorrowLimit(s.Strategy)))
	s.patience = patience(s.Strategy)
	s.grantPatience = strategies.WaitLimit(s.Strategy)
	s.first = s.tickOf(int64(s.Start)) << s.SequenceBits
	s.lastTick = 1<<s.TimeBits - 1
	if s.TimeBits+s.SequenceBits == 63 {
		s.lastTick-- // there is no room for a slot after it
	}
	s.lifetime = math.MaxInt64 - epoch.UnixNano()
	if s.lastTick < uint64(s.lifetime/int64(s.Tick)) {
		s.lifetime = int64(s.lastTick+1) * int64(s.Tick)
	}
	s.lastTick = s.tickOf(s.lifetime - 1)
	s.drawn = map[uint64]uint64{}
	s.draws = s.Sequence != strategies.StartZero() && s.Sequence != strategies.StartRandom(1)
	s.issued = map[uint64]issue{}
	s.maybeBorrowed, s.surelyBorrowed = map[uint64]bool{}, map[uint64]bool{}
	s.largest, s.highest, s.latest = -1, -1, -1
}

func (s *sim) tickOf(reading int64) uint64 { return uint64(max(reading, 0)) / uint64(s.Tick) }

func (s *sim) leadOf(tick uint64, reading int64) time.Duration {
	return time.Duration(int64(tick)*int64(s.Tick) - reading)
}

// begin notes that a call begins now.
func (c *caller) begin(kind callKind) {
	s := c.sim
	c.call = call{
		kind: kind, floor: s.largest, floorID: s.highest, floorTick: s.latest, present: s.present,
		closed: s.closed || s.sealed, cancelled: c.ctx != nil && c.ctx.err != nil,
		looks: c.call.looks[:0], reservations: c.call.reservations[:0],
		heard: s.tells,
	}
	if l := s.ticks; l != nil {
		c.call.grants, c.call.revoked = l.grants, l.revoked
	}
	if s.trace() {
		s.tracef("%s: begins a call of %s", c, s.Ops[c.op])
	}
}

// end1 is end for a call that returns one ID.
func (c *caller) end1(id snowflake.ID, err error) {
	if err != nil {
		if id != 0 {
			c.sim.fail("ID with an error", "%d, %v", id, err)
		}
		c.end(nil, err)
		return
	}
	c.call.list[0] = id
	c.end(c.call.list[:], nil)
}

// end checks the results of a call.
func (c *caller) end(ids []snowflake.ID, err error) {
	s, call := c.sim, &c.call
	if c.late != nil && !c.late.Stop() {
		s.fail("hang", "the end of the generator or of the context did not end a wait")
	}
	c.late = nil
	s.progress = s.result.Steps
	c.endReservation()
	if s.trace() {
		s.tracef("%s: returns %s", c, s.idsText(ids, err))
	}
	if len(ids) > 0 {
		switch {
		case call.closed:
			s.fail("issued after Close", "%s", s.idsText(ids, err))
		case call.revoked && call.grants == s.ticks.grants:
			s.fail("issued after Revoke", "%s", s.idsText(ids, err))
		case call.cancelled:
			s.fail("issued after its context", "%s", s.idsText(ids, err))
		case call.cut && call.kind != batch:
			s.fail("issued after a wait that was cut short", "%s", s.idsText(ids, err))
		case len(call.looks) == 0:
			s.fail("clock not read", "%s", s.idsText(ids, err))
		}
	}
	for _, id := range ids {
		if s.over {
			return
		}
		c.checkID(id)
	}
	// Only now, since all IDs return at once.
	for _, id := range ids {
		slot, tick := s.slotOf(id)
		if call.kind == streamed {
			c.issueOfBlock(slot)
			c.block.id = id
		} else {
			s.highest = max(s.highest, int64(id))
			s.largest = max(s.largest, int64(slot))
		}
		s.latest = max(s.latest, int64(tick))
	}
	if err != nil {
		c.checkError(err)
	}
}

// issueOfBlock notes that the caller's stream has issued slot. It must not drop
// more slots than it issues, plus one.
func (c *caller) issueOfBlock(slot uint64) {
	b := &c.block
	if c.call.reserved > 0 { // in this call
		if b.left > 0 && c.sim.lives(b.last, c.call) {
			c.sim.fail("dropped", "%d slots after %#x, whose tick has not ended", b.left, b.last)
		}
		b.dropped += b.left
		b.left = int64(c.call.reserved - slot)
		if n := len(c.call.reservations); n > 0 { // none of a Core
			b.held = c.call.reservations[n-1]
		}
	}
	b.last = int64(slot)
	b.left--
	b.issued++
	if b.left < 0 || b.dropped+b.left > b.issued+1 {
		c.sim.fail("dropped", "a stream of %d IDs has dropped %d slots and holds %d", b.issued, b.dropped, b.left)
	}
}

// lives reports whether the block of a stream whose last slot was issued should
// have been issued from when a call began.
func (s *sim) lives(last int64, call call) bool {
	tick, reading := uint64(last)>>s.SequenceBits, call.looks[0].reading
	return reading >= 0 && s.tickOf(reading) <= tick && tick <= s.tickOf(reading)+s.allowed &&
		call.firstFree <= (tick+1)<<s.SequenceBits
}

// slotOf returns the slot and the tick of an ID.
func (s *sim) slotOf(id snowflake.ID) (slot, tick uint64) {
	mask := uint64(1)<<s.SequenceBits - 1
	width := s.layout.NodeBits
	tick = uint64(id) >> (s.SequenceBits + width)
	if s.Order == snowflake.TimeSequenceNode {
		return uint64(id) >> width, tick
	}
	return tick<<s.SequenceBits | uint64(id)&mask, tick
}

// nodeOf returns an ID's node number.
func (s *sim) nodeOf(id snowflake.ID) int64 {
	if s.Order == snowflake.TimeNodeSequence {
		id >>= s.SequenceBits
	}
	return int64(id) & (1<<s.layout.NodeBits - 1)
}

func (c *caller) checkID(id snowflake.ID) {
	s, call := c.sim, &c.call
	slot, tick := s.slotOf(id)
	text := s.idText(id)
	if id < 0 || tick > s.lastTick {
		s.fail("beyond the time field", "ID %d in tick %d, the last is %d", id, tick, s.lastTick)
		return
	}
	if slot < s.first {
		s.fail("before the start", "%s, but the generator begins with slot %#x", text, s.first)
	}
	node := s.nodeOf(id)
	if s.ticks == nil && node != s.node {
		s.fail("node", "ID %d has node %d, not %d", id, node, s.node)
	}
	if s.ticks != nil && !s.ticks.granted(node, tick) {
		s.fail("not granted", "%s of node %d, of grants %+v", text, node, s.ticks.all)
	}
	if s.sealed && tick >= s.end {
		s.fail("after the end", "%s, but the generator ended with tick %d", text, s.end)
	}
	if s.gen != nil {
		c.checkReserved(id, slot, node)
	}
	if _, ok := s.issued[slot]; ok {
		s.fail("duplicate", "%s was issued before", text)
	}
	if call.kind == streamed {
		if int64(slot) <= c.block.last || c.block.last >= 0 && id <= c.block.id {
			s.fail("order", "%s after slot %#x of the same stream, IDs %d and %d", text, c.block.last, id, c.block.id)
		}
	} else {
		if int64(slot) <= call.floor || int64(id) <= call.floorID {
			s.fail("order", "%s, but slot %#x was returned before this call began, IDs %d and %d", text, call.floor, id, call.floorID)
		}
		call.floor, call.floorID = int64(slot), int64(id) // within a batch
	}
	if int64(tick) < call.floorTick {
		s.fail("order of ticks", "%s, but an ID of tick %d was returned before this call began", text, call.floorTick)
	}
	if s.over {
		return
	}

	// The reading that the ID was judged by is the last, or the one before it if
	// the borrow was looked at again; a batch may have any.
	looks := call.looks
	if call.kind != batch {
		looks = looks[max(0, len(looks)-2):]
	}
	lowest, highest := looks[0].reading, looks[0].reading
	ok := false
	for _, l := range looks {
		lowest, highest = min(lowest, l.reading), max(highest, l.reading)
		ok = ok || s.mayIssue(l, tick)
	}
	onTime := lowest >= 0 && tick <= s.tickOf(lowest)
	s.issued[slot] = issue{onTime}
	if tick < s.tickOf(lowest) {
		s.fail("stale", "%s, but the clock was read as %s, which is tick %d", text, time.Duration(lowest), s.tickOf(lowest))
	}
	if !ok {
		s.fail("ahead", "%s is further ahead of the readings, %s to %s, than %s allows",
			text, time.Duration(lowest), time.Duration(highest), s.strategyText())
	}
	// A borrow counts by the last reading, which is of after the reservation.
	last := looks[len(looks)-1].reading
	if s.leadOf(tick, last) > 0 || call.kind == batch && !onTime {
		s.maybeBorrowed[tick] = true
	}
	lead := s.leadOf(tick, highest)
	if call.kind != streamed { // a stream's block may have been reserved earlier
		s.leadFloor = max(s.leadFloor, lead)
		if lead > 0 {
			s.surelyBorrowed[tick] = true
		}
	}
}

func (c *caller) endReservation() {
	if c.call.pending {
		c.call.pending = false
		c.sim.waits++
	}
}
