package cases

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/tickflake/tickflake/bench/results"
)

// Word is a word that shares its cache line with nothing.
type Word struct {
	_ [128]byte
	atomic.Uint64
	_ [128]byte
}

// start is what the clock is read against.
var start = time.Now()

// Floor is the least that an ID can cost: a clock read and an uncontended
// compare-and-swap. The word depends on the clock's reading, as an ID does.
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

// SharedFloor is the least that an ID can cost when several goroutines share a word: a
// clock read and an atomic addition.
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

func floor(name string, loop func(*Word) Loop) Case {
	return Case{Name: name, Group: results.Floor, Bits: 64, Open: func(context.Context) (Source, error) {
		word := new(Word)
		shared := loop(word)
		return Source{
			Loop: func() Loop { return shared },
			Issue: func() (ID, error) {
				err := shared(1)
				return idOfInt(word.Load()), err
			},
		}, nil
	}}
}
