package alternatives

import (
	"context"
	"sync"
)

// reserve reserves n numbers in a server, and returns the last of them.
type reserve func(ctx context.Context, n int64) (last int64, err error)

const segmentSize = 1000

// segments hands out the numbers of one segment after the other. It fetches the next one
// when a segment is used up. It is safe for use by several goroutines, as a generator of
// tickflake is.
type segments struct {
	fetch reserve

	mu         sync.Mutex
	next, last int64
}

func newSegments(fetch reserve) *segments { return &segments{fetch: fetch, next: 1} }

func (s *segments) Next(ctx context.Context) (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.next > s.last {
		last, err := s.fetch(ctx, segmentSize)
		if err != nil {
			return 0, err
		}
		s.next, s.last = last-segmentSize+1, last
	}
	s.next++
	return s.next - 1, nil
}

// prefetched hands out the numbers of one segment while it fetches the next, from the
// moment when a tenth of the segment is used. It is safe for use by several goroutines.
type prefetched struct {
	fetch reserve
	// most bounds the size of segments. Each is twice as large as the one before, as
	// Leaf does it with segments that last for less than 15 minutes. 0 keeps the size.
	most int64

	ctx     context.Context // of the fetches
	cancel  context.CancelFunc
	fetches sync.WaitGroup
	fetched chan segment // with room for one

	mu      sync.Mutex
	current segment
	next    int64
	size    int64 // of the segment that was fetched last
	asked   bool  // for the next one
}

type segment struct {
	first, last int64
	err         error
}

func newPrefetched(fetch reserve, most int64) *prefetched {
	p := &prefetched{fetch: fetch, most: most, fetched: make(chan segment, 1), current: segment{first: 1}, next: 1, size: segmentSize}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	return p
}

func (p *prefetched) Next(ctx context.Context) (int64, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	used, size := p.next-p.current.first, p.current.last-p.current.first+1
	if !p.asked && used*10 >= size {
		p.ask(size > 0)
	}
	if p.next > p.current.last {
		select {
		case p.current = <-p.fetched:
		case <-ctx.Done():
			return 0, ctx.Err()
		}
		p.asked, p.next = false, p.current.first
		if err := p.current.err; err != nil {
			p.current = segment{first: 1}
			p.next = 1
			return 0, err
		}
	}
	p.next++
	return p.next - 1, nil
}

// ask has the next segment fetched.
func (p *prefetched) ask(grow bool) {
	if grow && p.size*2 <= p.most {
		p.size *= 2
	}
	p.asked = true
	size := p.size
	p.fetches.Go(func() {
		last, err := p.fetch(p.ctx, size)
		p.fetched <- segment{last - size + 1, last, err}
	})
}

// Close ends a fetch that is under way.
func (p *prefetched) Close() {
	p.cancel()
	p.fetches.Wait()
}
