package custom

import (
	"sync"
	"time"
)

// Mine is the example: a generator that waits until the tick of its ID begins.
func Mine() Generator {
	return Generator{Name: "yours", Tick: time.Millisecond, PerTick: 4096, Epoch: time.UnixMilli(0),
		Slot: func(id int64) int64 { return id },
		New: func(clock Clock) (func() (int64, error), error) {
			var mu sync.Mutex
			var last int64
			return func() (int64, error) {
				mu.Lock()
				defer mu.Unlock()
				now := clock.Now()
				last = max(last+1, now.UnixMilli()<<12)
				clock.Sleep(time.UnixMilli(last >> 12).Sub(now)) // until the ID's tick begins
				return last, nil
			}, nil
		}}
}
