//go:build example

package custom

import (
	"sync"
	"time"

	"github.com/tickflake/tickflake/cmd/tickflake-chaos/kernel/peers"
)

// The example waits until the tick of its ID begins.
func init() {
	peers.Add(peers.Integers(peers.Peer{
		Name: "yours", How: "a package of yours", Tick: time.Millisecond, PerTick: 4096, Epoch: time.UnixMilli(0),
		Slot: func(id int64) int64 { return id },
	}, func(clock peers.Clock) (func() (int64, error), error) {
		var mu sync.Mutex
		var last int64
		return func() (int64, error) {
			mu.Lock()
			defer mu.Unlock()
			now := clock.Now()
			last = max(last+1, now.UnixMilli()<<12)
			clock.Sleep(time.UnixMilli(last >> 12).Sub(now))
			return last, nil
		}, nil
	}))
}
