package cases

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/tickflake/tickflake/bench/results"
)

// Word is a word in a cache line of its own.
type Word struct {
	_ [128]byte
	atomic.Uint64
	_ [128]byte
}

// start is the base of the clock readings.
var start = time.Now()

// Floor is the least that an ID can cost: a clock read and an uncontended compare-and-swap.
// The new word depends on the clock reading, as an ID does.
func Floor() Case {
	return floor("floor: clock read + compare-and-swap", func(word *Word) Loop {
		return func(n int) error {
			for range n {
				elapsed := time.Since(start)
				old := word.Load()
				word.CompareAndSwap(old, old+1+uint64(elapsed>>62))
			}
			return nil
		}
	})
}

// SharedFloor is the least that an ID can cost when goroutines share a word: a clock read
// and an atomic addition.
func SharedFloor() Case {
	return floor("floor: clock read + atomic addition", func(word *Word) Loop {
		return func(n int) error {
			for range n {
				elapsed := time.Since(start)
				word.Add(1 + uint64(elapsed>>62))
			}
			return nil
		}
	})
}

// OwnFloor is [Floor] on a word for each loop: loops that share nothing.
func OwnFloor() Case {
	c := Floor()
	c.Name = "floor: clock read + compare-and-swap, a word each"
	c.Open = func(ctx context.Context) (Source, error) {
		return Source{Loop: func() Loop {
			alone, _ := Floor().Open(ctx) // opening a floor does not fail
			return alone.Loop()
		}}, nil
	}
	return c
}

func floor(name string, loop func(*Word) Loop) Case {
	return Case{Name: name, Group: results.Floor, Bits: 64, Open: func(context.Context) (Source, error) {
		shared := loop(new(Word))
		return Source{Loop: func() Loop { return shared }}, nil
	}}
}

// EmptyLoop makes no ID.
func EmptyLoop() Case {
	return Case{Name: "empty loop", Group: results.Floor, Open: func(context.Context) (Source, error) {
		return Source{Loop: func() Loop { return func(int) error { return nil } }}, nil
	}}
}
