//go:build simulate

package simulation

import (
	"math"

	"github.com/tickflake/tickflake/internal/window"
)

// numberKeeper is the keeper of a window of counted numbers, and what a run knows of the window
// that no caller does.
type numberKeeper struct {
	sim    *sim
	window *window.Numbers

	ranges []window.Range // that the keeper has put in, ascending
	put    uint64         // how many numbers they have
	after  uint64         // the number after the last of them
	puts   int            // that have begun
	taken  map[uint64]bool
	top    int64 // the largest number that a call has returned, or -1

	revoked   uint64 // once a Revoke has returned: no number below it is taken
	revokedAt int    // puts by then
	seals     int    // calls that were the first to seal
	sealing   bool   // such a call has begun
	sealed    bool   // one has returned
	atOnce    bool   // the keeper put a range in while a call sealed
	busy      bool   // it does so now
	end       uint64

	running  int // calls of Count
	begun    int // calls of Count, Revoke and Seal
	revoking bool
}

func newNumberKeeper(s *sim) *numberKeeper {
	n := &numberKeeper{sim: s, window: window.NewNumbers(), taken: map[uint64]bool{}, top: -1}
	if s.rng.IntN(4) == 0 {
		n.after = window.MaxNumbers - uint64(1+s.rng.IntN(200)) // where all numbers end
	}
	return n
}

// count takes numbers as a sequence does.
func (n *numberKeeper) count(c *caller, want uint64) {
	s := n.sim
	floor, sealed, revoked, revokedAt := n.top, n.sealed, n.revoked, n.revokedAt
	n.running++
	puts, quiet := n.puts, !n.busy
	n.begun++
	begun, alone := n.begun, n.running == 1 && !n.revoking
	rest, lost := n.window.Rest(), n.window.Lost()
	first, ok := n.window.Quick(want)
	more := false
	if !ok {
		first, more, ok = n.window.Count(want)
	}
	gaveUp := n.window.Lost() - lost
	alone = alone && begun == n.begun && !n.sealing
	n.running--
	s.progress = s.result.Steps
	if s.trace() {
		s.tracef("%s: counts %d: from %d on, more %t, ok %t", c, want, first, more, ok)
	}
	s.note(first)
	if !ok {
		if !more && !n.sealing {
			s.fail("not asked", "a call for %d numbers fails, and does not ask for a range", want)
		}
		if alone && want == 1 && rest > 0 { // also while the keeper queues a range
			s.fail("not served", "a call fails, and %d numbers were left", rest)
		}
		if alone && quiet && puts == n.puts && gaveUp > 0 {
			s.fail("numbers lost", "a call for %d numbers fails, and gives up %d", want, gaveUp)
		}
		return
	}
	last := first + want - 1
	switch {
	case sealed:
		s.fail("issued after Seal", "%d to %d", first, last)
	case int64(first) <= floor:
		s.fail("order", "%d, and %d was returned before the call began", first, floor)
	case first < revoked && n.puts >= revokedAt:
		s.fail("issued after Revoke", "%d to %d, and those below %d were revoked", first, last, revoked)
	case n.end > 0 && last >= n.end:
		s.fail("end", "%d to %d, and Seal said that none from %d on was taken", first, last, n.end)
	case !n.granted(first, last):
		s.fail("not granted", "%d to %d, of %v", first, last, n.ranges)
	}
	for x := first; x <= last; x++ {
		if n.taken[x] {
			s.fail("duplicate", "%d, of %d to %d", x, first, last)
		}
		n.taken[x] = true
	}
	n.top = max(n.top, int64(last))
}

// granted reports whether numbers are granted in a row.
func (n *numberKeeper) granted(first, last uint64) bool {
	next := first
	for _, r := range n.ranges {
		if r.From <= next && next < r.To {
			next = r.To
		}
	}
	return next > last
}

// queue puts a range in: it adjoins the last one, or another process was granted the numbers
// between them.
func (n *numberKeeper) queue(c *caller, many, gap uint64) {
	s, changed := n.sim, n.window.Changed()
	from := min(n.after+gap, window.MaxNumbers)
	r := window.Range{From: from, To: min(from+many, window.MaxNumbers)}
	if r.From == r.To {
		r.From--
		r.From = max(r.From, n.after)
	}
	more := r.From + uint64(s.rng.IntN(int(many)+2)) // as early as can be, up to too late
	n.puts++
	n.ranges = append(n.ranges, r)
	n.put, n.after = n.put+r.To-r.From, r.To
	n.busy = true
	n.atOnce = n.atOnce || n.sealing
	if s.trace() {
		s.tracef("%s: queues %d to %d, and is to be asked from %d on", c, r.From, r.To, more)
	}
	n.window.Queue(r, more)
	n.busy = false
	if !n.sealing { // a sealed window takes no range
		s.checkTold(changed, "Queue")
	}
}

// revoke takes back the numbers that are left.
func (n *numberKeeper) revoke(c *caller) {
	s, changed, before := n.sim, n.window.Changed(), n.after
	if s.trace() {
		s.tracef("%s: revokes the grant", c)
	}
	n.begun++
	n.revoking = true
	n.window.Revoke()
	n.revoking = false
	n.revoked, n.revokedAt = before, n.puts
	s.checkTold(changed, "Revoke")
}

func (n *numberKeeper) seal(c *caller) {
	s := n.sim
	n.begun++
	n.sealing, n.atOnce = true, n.atOnce || n.busy
	end, first := n.window.Seal()
	s.progress = s.result.Steps
	if first {
		n.seals++
	}
	if n.sealed && end != n.end || int64(end) <= n.top {
		s.fail("end", "of a sealed window is %d, and was %d; %d was returned", end, n.end, n.top)
	}
	n.sealed, n.end = true, end
	if s.trace() {
		s.tracef("%s: seals at %d, first %t", c, end, first)
	}
}

// finish makes sure that no number is lost, and that the rest can be taken.
func (n *numberKeeper) finish() {
	s, w := n.sim, n.window
	if n.sealed && n.seals != 1 {
		s.fail("end", "%d calls were the first to seal", n.seals)
	}
	rest, lost := w.Rest(), w.Lost()
	if !n.atOnce && uint64(len(n.taken))+rest+lost != n.put {
		s.fail("numbers lost", "%d were taken, %d are left and %d were given up, of %d: %v", len(n.taken), rest, lost, n.put, n.ranges)
	}
	if n.sealed {
		n.count(&s.outside, 1)
		return
	}
	for range rest {
		before := len(n.taken)
		n.count(&s.outside, 1)
		if len(n.taken) == before {
			s.fail("not served", "%d numbers are left of %d", w.Rest(), rest)
		}
		if s.over {
			return
		}
	}
	if _, more, ok := w.Count(1); ok || !more {
		s.fail("not asked", "nothing is left: ok %t, more %t", ok, more)
	}
	if n.after < window.MaxNumbers {
		n.queue(&s.outside, 1+math.MaxUint8, 0)
		n.count(&s.outside, min(2, window.MaxNumbers-n.after+1))
		if w.Lost() != lost {
			s.fail("numbers lost", "%d were given up, and %d before the last range", w.Lost(), lost)
		}
	}
}
