package cases

import (
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// patience is how long the first goroutines wait for others to be there: a free
// processor takes one up in less, and one that is not free must not count.
const patience = 100 * time.Microsecond

// Together runs the loops at the same time, each in a goroutine, with n IDs between
// them. None begins before as many are there as there are processors, unless these are
// busy with something else.
func Together(loops ...Loop) Loop {
	if len(loops) == 1 {
		return loops[0]
	}
	return func(n int) error {
		var done sync.WaitGroup
		var there atomic.Int64
		wanted := int64(min(len(loops), runtime.GOMAXPROCS(0)))
		errs := make([]error, len(loops))
		for i, loop := range loops {
			share := n/len(loops) + btoi(i < n%len(loops))
			done.Go(func() {
				there.Add(1)
				for began := time.Now(); there.Load() < wanted && time.Since(began) < patience; {
				}
				errs[i] = loop(share)
			})
		}
		done.Wait()
		return errors.Join(errs...)
	}
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// Loops returns loops of the source for so many goroutines.
func (s Source) Loops(goroutines int) []Loop {
	loops := make([]Loop, goroutines)
	for i := range loops {
		loops[i] = s.Loop()
	}
	return loops
}
