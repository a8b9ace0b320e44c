package spread

import "slices"

// A slot is a place for an ID: of ticks that hold so many IDs each, the tick times
// that, plus the number within the tick. All IDs of one generator are of different
// slots, and those of a tick of successive ones.
type slot int64

// waste is what became of the slots of whole ticks.
type waste struct {
	ticks   int
	skipped float64 // share of the ticks that got no ID: nobody was there
	// Shares of the slots of the ticks that got IDs.
	start   float64 // before the first ID of a tick: where its sequence began
	between float64 // between the first ID of a tick and its last
	end     float64 // after the last ID of a tick: it passed while the caller waited, or was late
}

// within is the share of the slots that got no ID though their tick got some.
func (w waste) within() float64 { return w.start + w.between + w.end }

// all is the share of the slots that got no ID.
func (w waste) all() float64 { return w.skipped + (1-w.skipped)*w.within() }

// wasted returns what became of the slots between the first tick that is there whole
// and the last: of the very first and last nobody knows how much of them had passed.
// The slots are sorted for that.
func wasted(slots []slot, perTick slot) waste {
	slices.Sort(slots)
	if len(slots) == 0 {
		return waste{}
	}
	first, last := slots[0]/perTick+1, slots[len(slots)-1]/perTick
	w := waste{ticks: int(last - first)}
	if w.ticks <= 0 {
		return waste{}
	}
	var start, between, end, used slot // used is the ticks that got IDs
	for i := 0; i < len(slots); {
		now, from := slots[i]/perTick, i
		for i < len(slots) && slots[i]/perTick == now {
			i++
		}
		if now < first || now >= last {
			continue
		}
		used++
		lowest, highest := slots[from]%perTick, slots[i-1]%perTick
		start += lowest
		end += perTick - 1 - highest
		between += highest - lowest + 1 - slot(i-from)
	}
	w.skipped = 1 - float64(used)/float64(w.ticks)
	if total := float64(used * perTick); used > 0 {
		w.start, w.between, w.end = float64(start)/total, float64(between)/total, float64(end)/total
	}
	return w
}
