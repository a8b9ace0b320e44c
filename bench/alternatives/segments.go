package alternatives

import (
	"context"
	"sync"
)

// reserve reserves n numbers in a server, and returns the last of them.
type reserve func(ctx context.Context, n int64) (last int64, err error)

const segmentSize = 1000

// segment is numbers up to the last.
type segment struct {
	size, last int64
	err        error
}

// numbers hands out the numbers of one segment after the other, to several goroutines, as a
// generator of tickflake does.
func numbers(fetch func(context.Context) segment) func(context.Context) (int64, error) {
	var mu sync.Mutex
	var next int64
	last := int64(-1)
	return func(ctx context.Context) (int64, error) {
		mu.Lock()
		defer mu.Unlock()
		if next > last {
			s := fetch(ctx)
			if s.err != nil {
				return 0, s.err
			}
			next, last = s.last-s.size+1, s.last
		}
		next++
		return next - 1, nil
	}
}

// prefetched fetches the next segment while one is used, until end is called. Each is twice as
// large as the one before, up to most, as Leaf does it with segments that last for less than 15
// minutes.
func prefetched(fetch reserve, most int64) (next func(context.Context) segment, end func()) {
	fetching, cancel := context.WithCancel(context.Background())
	fetched := make(chan segment)
	go func() {
		defer close(fetched)
		for size := int64(segmentSize); fetching.Err() == nil; size = max(size, min(2*size, most)) {
			last, err := fetch(fetching, size)
			select {
			case fetched <- segment{size, last, err}:
			case <-fetching.Done():
			}
		}
	}()
	next = func(ctx context.Context) segment {
		select {
		case s := <-fetched:
			return s
		case <-ctx.Done():
			return segment{err: ctx.Err()}
		}
	}
	return next, func() {
		cancel()
		<-fetched
	}
}
