package count

// few is window.Numbers in a few lines: what one process hands out, as one step each. Its own
// tests and the simulation of callers at every atomic operation tie the two together.
type few struct {
	used, to uint8 // the present range is [used, to),
	pf, pt   uint8 // the queued one [pf, pt)
	sealed   bool
}

// count takes n numbers in a row. The rest of a range that has too few is given up.
func (w *few) count(n uint8) (first uint8, ok bool) {
	switch {
	case w.sealed:
		return 0, false
	case w.used+n > w.to && w.pt-w.pf < n:
		return 0, false
	case w.used+n > w.to:
		w.used, w.to, w.pf, w.pt = w.pf, w.pt, 0, 0
	}
	w.used += n
	return w.used - n, true
}

// queue puts a range in behind the others.
func (w *few) queue(from, to uint8) {
	switch {
	case w.sealed:
	case w.pt > w.pf && from == w.pt:
		w.pt = to
	case w.pt > w.pf || w.used == w.to && from != w.to:
		*w = few{used: max(w.used, from), to: to} // it replaces both
	case from == w.to:
		w.to = to
	default:
		w.pf, w.pt = from, to
	}
}

// revoke takes back what was not taken.
func (w *few) revoke() {
	if !w.sealed {
		w.to, w.pf, w.pt = w.used, 0, 0
	}
}

// has are the numbers that the window would hand out.
func (w *few) has() uint16 {
	if w.sealed {
		return 0
	}
	return bits(w.used, w.to) | bits(w.pf, w.pt)
}

// rest is how many numbers are left.
func (w *few) rest() uint8 { return w.to - w.used + w.pt - w.pf }
