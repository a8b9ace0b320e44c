package spread

import "slices"

// A slot is a place for an ID: the tick times the IDs per tick, plus the number within the
// tick. The IDs of one generator have different slots.
type slot int64

// waste is how the slots of whole ticks were used.
type waste struct {
	ticks   int
	skipped float64 // share of the ticks without an ID
	// Shares of the slots of the ticks with IDs.
	start   float64 // before the first ID of a tick, where its sequence began
	between float64 // between the first ID of a tick and its last
	end     float64 // after the last ID of a tick
}

// all is the share of the slots without an ID.
func (w waste) all() float64 { return w.skipped + (1-w.skipped)*(w.start+w.between+w.end) }

// wasted returns the waste of the ticks between the first and the last one, which are not
// whole. It sorts the slots.
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
	var start, between, end, used slot // used is the number of ticks with IDs
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
