package main

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/tickflake/tickflake/bench/cases"
	"github.com/tickflake/tickflake/snowflake"
)

// BenchmarkAlternatives compares ways to advance the one word, each reduced to
// its core: a clock read, the tick, and one slot, on a sequence that never runs
// out. It reports how each stands to a clock read and an atomic addition.
//
//   - cas: load, compare, swap, and again if another was faster. The
//     generator does this.
//   - add: an addition where the word is in the clock's tick, cas elsewhere. An
//     addition past the end of the tick is a slot ahead of the clock that the
//     strategy was not asked about: it is either waited for or lost.
//   - add-blind: an addition before looking. It loses a slot per tick besides.
//   - back-off: cas, but a caller that lost steps aside for longer each time.
//
// On two cores cas, add and add-blind come out alike, within the noise of ±0.1:
// what they all pay for is the cache line's way from core to core. Stepping
// aside for a microsecond gained a sixth here, because one core then issues
// several IDs before the line moves, but in the generator itself, where there is
// more to do between two swaps, it gained nothing that could be told from noise,
// and it is a spin whose right length depends on the machine. The additions gain nothing
// that would pay for what they make of rejected calls.
func BenchmarkAlternatives(b *testing.B) {
	for _, goroutines := range []int{1, 2, 8, 64} {
		floors := loop(b, cases.SharedFloor(), goroutines)
		for _, way := range []struct {
			name string
			next func(*core) uint64
		}{
			{"cas", (*core).cas},
			{"add", (*core).add},
			{"add-blind", (*core).addBlind},
			{"back-off", (*core).backOff},
		} {
			b.Run(fmt.Sprintf("%s/%d", way.name, goroutines), func(b *testing.B) {
				c := &core{base: start.Sub(snowflake.Default().Epoch)}
				nexts := cases.Together(slices.Repeat([]cases.Loop{func(n int) error {
					for range n {
						way.next(c)
					}
					return nil
				}}, goroutines)...)
				b.ReportMetric(ratio(b, nexts, floors), "×floor")
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}

var start = time.Now()

// core is the bare state of a generator with ticks of 1 ms.
type core struct {
	base time.Duration
	free cases.Word
}

const sequenceBits = 22

func (c *core) tick() uint64 {
	return uint64(c.base+time.Since(start)) / uint64(time.Millisecond)
}

// attempt tries once to take the slot after free, or the first of tick.
func (c *core) attempt(tick, free uint64) (slot uint64, ok bool) {
	slot = free
	if fresh := tick << sequenceBits; fresh > free {
		slot = fresh
	}
	return slot, slot>>sequenceBits <= tick && c.free.CompareAndSwap(free, slot+1)
}

func (c *core) cas() uint64 {
	for {
		tick := c.tick()
		for free := c.free.Load(); free>>sequenceBits <= tick; free = c.free.Load() {
			if slot, ok := c.attempt(tick, free); ok {
				return slot
			}
		}
	}
}

func (c *core) add() uint64 {
	for {
		tick := c.tick()
		free := c.free.Load()
		if free>>sequenceBits == tick {
			if slot := c.free.Add(1) - 1; slot>>sequenceBits == tick {
				return slot
			}
		} else if slot, ok := c.attempt(tick, free); ok {
			return slot
		}
	}
}

func (c *core) addBlind() uint64 {
	for {
		tick := c.tick()
		if slot := c.free.Add(1) - 1; slot>>sequenceBits == tick {
			return slot
		}
		if slot, ok := c.attempt(tick, c.free.Load()); ok {
			return slot
		}
	}
}

func (c *core) backOff() uint64 {
	for pause := 3000; ; pause *= 2 {
		tick := c.tick()
		if slot, ok := c.attempt(tick, c.free.Load()); ok {
			return slot
		}
		for range pause {
		}
	}
}
