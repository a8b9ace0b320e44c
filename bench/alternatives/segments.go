package alternatives

import (
	"context"
	"sync"
)

// reserve reserves n numbers in a server, and returns the last of them.
type reserve func(ctx context.Context, n int64) (last int64, err error)

const segmentSize = 1000

// segments hands out the numbers of one segment after the other. It fetches the next one when a
// segment is used up, or, if it is early, from the moment when a tenth is used. It is safe for use
// by several goroutines, as a generator of tickflake is.
type segments struct {
	fetch reserve
	early bool
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

func newSegments(fetch reserve, early bool, most int64) *segments {
	p := &segments{fetch: fetch, early: early, most: most, fetched: make(chan segment, 1), current: segment{first: 1}, next: 1, size: segmentSize}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	return p
}

func (p *segments) Next(ctx context.Context) (int64, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	used, size := p.next-p.current.first, p.current.last-p.current.first+1
	if !p.asked && (used >= size || p.early && used*10 >= size) {
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
func (p *segments) ask(grow bool) {
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
func (p *segments) Close() {
	p.cancel()
	p.fetches.Wait()
}
