package generator

import (
	"sync"

	"github.com/tickflake/tickflake/internal/window"
	"github.com/tickflake/tickflake/monoclock"
	"github.com/tickflake/tickflake/snowflake"
)

// shared has what all generators of a number have in common that [New] makes with the default clock. It
// outlives them: a new one continues after the IDs of those before it.
var shared = struct {
	sync.Mutex
	numbers map[number]*common
}{numbers: map[number]*common{}}

type number struct {
	layout string
	node   int64
}

// common is the clock beside the word: two clocks that were set at different times may be far apart, and
// the one behind would find the word ahead of it. So a new clock comes only when no generator uses the old one,
// which may have been wrong. The word is for ever.
type common struct {
	clock  monoclock.Interface
	window *window.Ticks
	users  int // generators that are not closed
}

// share gives c the clock and the window of its number, and returns how its generator gives them up.
func (c *config) share() (leave func()) {
	l := c.layout
	l.Name, l.Parts = "", nil
	key := number{l.String(), c.node}
	shared.Lock()
	defer shared.Unlock()
	all, ok := shared.numbers[key]
	if !ok {
		all = &common{window: c.fixed()}
		shared.numbers[key] = all
	}
	if all.users == 0 {
		all.clock = monoclock.New()
	}
	all.users++
	c.clock, c.window = all.clock, all.window.Share()
	return func() {
		shared.Lock()
		defer shared.Unlock()
		all.users--
	}
}

// fixed is a window that has all time of a node number.
func (c *config) fixed() *window.Ticks {
	end := issuingTicks(c.layout)
	w := window.NewTicks(uint8(c.layout.SequenceBits), end)
	w.Grant(window.Range{Node: c.node, To: end}, end)
	return w
}

// issuingTicks is how many ticks a layout has in which IDs are issued.
func issuingTicks(l snowflake.Layout) uint64 {
	return uint64(issuingEnd(l).Sub(l.Epoch)-1)/uint64(l.Tick) + 1
}
