//go:build simulate

package simulation

import "github.com/tickflake/tickflake/internal/window"

// numbers has callers count on a window of counted numbers as package sequence does, while a keeper
// queues ranges and revokes them, and a caller seals.
func numbers(r *run) func() {
	w := window.NewNumbers()
	w.Watch(&r.marker)
	var (
		ranges []window.Range // that the keeper has put in, ascending
		after  uint64         // the number after the last of them
		taken  = map[uint64]bool{}
		top    = int64(-1) // the largest number that a call has returned
		asked  bool

		revoked         uint64 // once a Revoke has returned: no number below it is taken
		sealing, sealed bool
		seals           int // calls that were the first
		end             uint64

		locked bool   // the lock of the sequence is held
		puts   uint64 // ranges that were queued: callers without numbers wait for the next
	)
	lock := func() (unlock func()) {
		if r.current != nil {
			r.await(func() bool { return !locked }, forever)
		}
		locked = true
		return func() { locked = false }
	}
	if r.IntN(4) == 0 {
		after = window.MaxNumbers - uint64(1+r.IntN(200)) // where all numbers end
	}
	queue := func() {
		defer lock()()
		from := min(after+pick[uint64](r, 0, 0, 1, 5), window.MaxNumbers-1)
		next := window.Range{From: from, To: min(from+uint64(1+r.IntN(12)), window.MaxNumbers)}
		more := next.From + r.Uint64N(next.To-next.From+2) // as early as can be, up to too late
		ranges, after = append(ranges, next), next.To
		r.note("queues %+v, and is to be asked from %d on", next, more)
		w.Queue(next, more)
		puts++
	}
	seal := func() {
		defer lock()()
		sealing = true
		at, first := w.Seal()
		if first {
			seals++
		}
		if sealed && at != end || int64(at) <= top {
			r.failf("the end of a sealed window is %d, and was %d; %d was returned", at, end, top)
		}
		sealed, end, r.progress = true, at, r.steps
		r.note("seals at %d, first %t", at, first)
	}
	count := func(want uint64) (ok bool) {
		returned, closed, below := top, sealed, revoked
		first, ok := w.Quick(want)
		more := !ok
		if !ok {
			unlock := lock()
			first, more, ok = w.Count(want)
			unlock()
		}
		asked = asked || more
		r.progress = r.steps
		r.note("counts %d: from %d on, more %t, ok %t", want, first, more, ok)
		last := first + want - 1
		next := first // the first number that is not found in a range
		for _, g := range ranges {
			if g.From <= next && next < g.To {
				next = g.To
			}
		}
		switch {
		case !ok && !more && !sealing:
			r.failf("not asked: a call for %d numbers fails, and does not ask for a range", want)
		case !ok:
			return false
		case closed || sealed && last >= end:
			r.failf("issued after Seal: %d to %d, and the end is %d", first, last, end)
		case int64(first) <= returned:
			r.failf("order: %d, and %d was returned before the call began", first, returned)
		case first < below:
			r.failf("issued after Revoke: %d, and those below %d were revoked", first, below)
		case next <= last:
			r.failf("not granted: %d to %d, of %v", first, last, ranges)
		}
		if r.current != nil {
			r.original(r.current, first)
		}
		for n := first; n <= last; n++ {
			if taken[n] {
				r.failf("duplicate: %d, of %d to %d", n, first, last)
			}
			taken[n] = true
		}
		top = max(top, int64(last))
		return true
	}

	most := pick(r, 1, 1, 3, 8)
	sealers := pick(r, 0, 0, 0, 1, 2)
	for i := range 1 + r.IntN(4) {
		r.spawn("caller", func(c *caller) {
			for range 2 + r.IntN(6) {
				for want := uint64(1 + r.IntN(most)); ; {
					before := puts
					if count(want) || sealing {
						break
					}
					r.await(func() bool { return puts > before || sealing }, forever)
				}
			}
			if i < sealers {
				seal()
			}
		})
	}
	copies := pick(r, 0, 0, 1, 3) // what is dropped then is not counted
	r.copied(copies)
	issued := uint64(0)
	r.spawn("keeper", func(c *caller) {
		for {
			unlock := lock()
			n := w.Taken(w.Used())
			unlock()
			if n < issued && !sealing && copies == 0 {
				r.failf("a count that falls: %d numbers were issued, and %d before that", n, issued)
			} else if !sealing {
				issued = n
			}
			c.idle = true
			r.await(func() bool { return asked }, forever)
			c.idle = false
			switch asked = false; {
			case r.unnoticed():
				before, unlock := after, lock()
				r.notice(w, func() uint64 { return before })
				unlock()
				revoked, asked = before, true
			case after >= window.MaxNumbers:
				seal()
			case r.IntN(12) == 0:
				before, unlock := after, lock()
				w.Revoke()
				unlock()
				revoked, asked = before, true
			default:
				queue()
			}
		}
	})
	return func() {
		if sealed && seals != 1 {
			r.failf("%d calls were the first to seal", seals)
		}
		rest, counted := w.Rest(), w.Taken(w.Used())
		if copies == 0 && uint64(len(taken)) != counted {
			r.failf("miscounted: %d numbers were taken, and the window says %d", len(taken), counted)
		}
		for range rest {
			if !sealed && r.unnoticed() {
				break
			}
			if count(1) == sealed {
				r.failf("served: %t, with %d left; sealed: %t", !sealed, w.Rest(), sealed)
			}
		}
	}
}
