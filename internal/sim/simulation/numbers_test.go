//go:build simulate

package simulation

import "github.com/tickflake/tickflake/internal/window"

// numbers has callers count on a window of counted numbers as package sequence does: by Quick, and else under its
// lock, whose holder also queues ranges, revokes and seals.
func numbers(r *run) func() {
	w := window.NewNumbers()
	var (
		locked         bool
		after, revoked uint64 // the end of the last range, and of the last that was revoked
		ranges         []window.Range
		taken          = map[uint64]bool{}
		top            = int64(-1) // the largest number that a call has returned
		sealed         bool
		end            uint64
	)
	queue := func(most int) {
		from := after + pick[uint64](r, 0, 0, 1, 5)
		next := window.Range{From: from, To: from + uint64(1+r.IntN(most))}
		more := next.From + r.Uint64N(next.To-next.From+2) // as early as can be, up to too late
		ranges, after = append(ranges, next), next.To
		r.note("queues %+v, and is to be asked from %d on", next, more)
		w.Queue(next, more)
	}
	seals := r.IntN(4) == 0
	count := func(want uint64) {
		returned, closed, below := top, sealed, revoked
		first, ok := w.Quick(want)
		if !ok {
			r.await(func() bool { return !locked }, forever)
			locked = true
			switch r.IntN(12) {
			case 0:
				w.Revoke()
				revoked = after
			case 1:
				if seals {
					end, _ = w.Seal()
					sealed = true
				}
			case 2, 3:
				queue(12)
			}
			for first, _, ok = w.Count(want); !ok && !sealed; first, _, ok = w.Count(want) {
				queue(4 + int(want))
			}
			locked = false
		}
		r.progress = r.steps
		r.note("counts %d: from %d on, %t", want, first, ok)
		if !ok {
			return
		}
		last, next := first+want-1, first // next is the first number that is not found in a range
		for _, g := range ranges {
			if g.From <= next && next < g.To {
				next = g.To
			}
		}
		switch {
		case closed || sealed && last >= end:
			r.failf("issued after Seal: %d to %d, and the end is %d", first, last, end)
		case int64(first) <= returned:
			r.failf("order: %d, and %d was returned before the call began", first, returned)
		case first < below:
			r.failf("issued after Revoke: %d, and those below %d were revoked", first, below)
		case next <= last:
			r.failf("not granted: %d to %d, of %v", first, last, ranges)
		}
		for n := first; n <= last; n++ {
			if taken[n] {
				r.failf("duplicate: %d, of %d to %d", n, first, last)
			}
			taken[n] = true
		}
		top = max(top, int64(last))
	}
	for range 1 + r.IntN(4) {
		r.spawn("caller", func(*caller) {
			for range 2 + r.IntN(10) {
				count(uint64(1 + r.IntN(pick(r, 1, 3, 8))))
			}
		})
	}
	return func() {
		if counted := w.Taken(w.Used()); uint64(len(taken)) != counted || sealed && w.Used() != end {
			r.failf("miscounted: %d numbers were taken, and the window says %d; sealed at %d, and then %d", len(taken), counted, end, w.Used())
		}
	}
}
