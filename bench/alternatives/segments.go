package alternatives

import (
	"context"
	"sync"
)

const segmentSize = 1000

// segment is the numbers from next to last that are left of it, or why there is none.
type segment struct {
	next, last int64
	err        error
}

// prefetched hands out the numbers of one segment after the other, to several goroutines, as a
// generator of tickflake does. It reserves the next segment while one is used, until end is called;
// reserve returns the last of n numbers. Each segment is twice as large as the one before, up to
// most, as Leaf does it with segments that last for less than 15 minutes.
func prefetched(reserve func(ctx context.Context, n int64) (last int64, err error), most int64) (next func(context.Context) (int64, error), end func()) {
	reserving, cancel := context.WithCancel(context.Background())
	reserved := make(chan segment)
	go func() {
		defer close(reserved)
		for size := int64(segmentSize); reserving.Err() == nil; size = max(size, min(2*size, most)) {
			last, err := reserve(reserving, size)
			select {
			case reserved <- segment{last - size + 1, last, err}:
			case <-reserving.Done():
			}
		}
	}()
	var mu sync.Mutex
	current := segment{next: 1} // none are left
	next = func(ctx context.Context) (int64, error) {
		mu.Lock()
		defer mu.Unlock()
		if current.next > current.last {
			select {
			case s := <-reserved:
				if s.err != nil {
					return 0, s.err
				}
				current = s
			case <-ctx.Done():
				return 0, ctx.Err()
			}
		}
		current.next++
		return current.next - 1, nil
	}
	return next, func() {
		cancel()
		<-reserved
	}
}
