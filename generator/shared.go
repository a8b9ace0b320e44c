package generator

import (
	"sync"
	"time"

	"github.com/tickflake/tickflake/internal/window"
	"github.com/tickflake/tickflake/monoclock"
	"github.com/tickflake/tickflake/snowflake"
)

// shared has what all generators of a number have in common that [New] makes with the default clock. It
// outlives them: a new one continues after the IDs of those before it.
var shared = struct {
	sync.Mutex
	numbers map[number]common
}{numbers: map[number]common{}}

type number struct {
	layout string
	node   int64
}

// common is the clock beside the word: two clocks that were set at different times may be far apart, and
// the one behind would find the word ahead of it.
type common struct {
	clock  monoclock.Interface
	window *window.Ticks
}

// share gives c the clock and the window of its number.
func (c *config) share() {
	l := c.layout
	l.Name, l.Parts = "", nil
	key := number{l.String(), c.node}
	shared.Lock()
	defer shared.Unlock()
	all, ok := shared.numbers[key]
	if !ok {
		all = common{c.clock, c.fixed()}
		shared.numbers[key] = all
	}
	c.clock, c.window = all.clock, all.window.Share()
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

// inBubble reports whether the time is that of a bubble of testing/synctest, which is a fake clock: it has
// no monotonic reading.
func inBubble() bool {
	now := time.Now()
	return now == now.Round(0)
}
