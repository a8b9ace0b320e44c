package client

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	tickflakev1 "github.com/tickflake/tickflake/client/api/tickflake/v1"
	"github.com/tickflake/tickflake/snowflake"
)

// answer is the answer of a server.
type answer struct {
	runs      []pending
	ids       int64
	freshness time.Duration // the shortest of the runs
	latency   time.Duration
}

// longestLag bounds how long a server whose clock is behind is not asked.
const longestLag = 2 * time.Second

// take asks a server for up to n IDs, all above seen unless it is 0.
func (c *Client) take(ctx context.Context, s *server, n int64, seen snowflake.ID) (answer, error) {
	c.mu.Lock()
	c.stats.Requests++
	n = min(n, s.maxBatch)
	largest, layout, fingerprint := c.largest(), c.layout, c.fingerprint
	c.mu.Unlock()
	asked := c.now() // the server reads its clock later than this
	response, err := s.stub.Take(ctx, &tickflakev1.TakeRequest{Count: &n, After: int64(seen)})
	if err != nil {
		return answer{}, err
	}
	if response.GetLayoutFingerprint() != fingerprint {
		return answer{}, &failure{server: s.address, kind: ErrLayout, cause: errors.New("its answer has another layout than before")}
	}
	a := answer{latency: time.Duration(c.now() - asked), freshness: math.MaxInt64}
	for _, r := range response.GetRuns() {
		p, freshness, err := checkRun(layout, r, n-a.ids, asked)
		if err != nil {
			return answer{}, &failure{server: s.address, cause: fmt.Errorf("its answer is not valid: %w", err)}
		}
		a.runs = append(a.runs, p)
		a.ids += p.Count
		a.freshness = min(a.freshness, freshness)
	}
	if len(a.runs) == 0 {
		return answer{}, &failure{server: s.address, cause: fmt.Errorf("its answer has none of the %d IDs", n)}
	}
	if a.latency >= a.freshness {
		return answer{}, &failure{server: s.address, cause: fmt.Errorf("its answer took %s, and its IDs are to be used within %s", a.latency, a.freshness)}
	}
	if seen != 0 {
		if first := a.runs[0].First; first <= seen { // as from a server that knows no "after"
			return answer{}, &failure{server: s.address, cause: fmt.Errorf("its answer is not valid: the ID %d is not above %d", first, seen)}
		}
		return a, nil
	}
	// A server issues IDs above those that it issued before. So these are IDs of a server
	// whose clock is behind that of the server before.
	if last := a.runs[len(a.runs)-1].Last(); last <= largest {
		behind := lag(layout, last, largest)
		return answer{}, &failure{server: s.address, after: min(behind, longestLag),
			cause: fmt.Errorf("its IDs are %s behind the last ID, which came from another server: check the clocks of the servers", behind)}
	}
	return a, nil
}

// checkRun checks a run of an answer that may have up to most IDs.
func checkRun(layout *snowflake.Layout, r *tickflakev1.Run, most, asked int64) (pending, time.Duration, error) {
	p := pending{Run: snowflake.Run{First: snowflake.ID(r.GetFirst()), Count: r.GetCount(), Stride: r.GetStride()}}
	freshness := r.GetUseWithin().AsDuration()
	switch {
	case p.Count < 1 || p.Count > most:
		return p, 0, fmt.Errorf("a run has %d IDs, want 1 to %d", p.Count, most)
	case p.First < 1 || p.Stride < 1 || (p.Count-1) > (math.MaxInt64-int64(p.First))/p.Stride:
		return p, 0, fmt.Errorf("a run of %d IDs begins at %d with stride %d, want positive IDs of 63 bits", p.Count, p.First, p.Stride)
	case freshness <= 0:
		return p, 0, fmt.Errorf("the IDs are to be used within %s, want more than 0", freshness)
	}
	first, err := layout.Decode(p.First)
	if err != nil {
		return p, 0, err
	}
	last, err := layout.Decode(p.Last())
	if err != nil {
		return p, 0, err
	}
	if first.Node != last.Node || !first.Time.Equal(last.Time) || last.Sequence-first.Sequence != p.Count-1 {
		return p, 0, fmt.Errorf("the run from %d to %d is not of one node and one tick in the layout %s", p.First, p.Last(), layout)
	}
	p.expires = asked + min(int64(freshness), math.MaxInt64-asked)
	return p, freshness, nil
}

// lag is how far the time in an ID is behind that in another one, and at least a tick.
func lag(layout *snowflake.Layout, id, other snowflake.ID) time.Duration {
	a, errA := layout.Decode(id)
	b, errB := layout.Decode(other)
	if errA != nil || errB != nil {
		return layout.Tick
	}
	return max(b.Time.Sub(a.Time)+layout.Tick, layout.Tick)
}
