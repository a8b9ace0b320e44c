package wire

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"github.com/tickflake/tickflake/bench/measure"
	"github.com/tickflake/tickflake/bench/results"
	"github.com/tickflake/tickflake/client"
	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/internal/rig/servers"
	"github.com/tickflake/tickflake/lease"
)

// Rows of the table of calls.
const (
	libraryRow = "the library's NextContext"
	clientRow  = "the client's Next"
)

// The pace of calls: so many every millisecond, one million per second.
const (
	burst     = 1000
	burstEach = time.Millisecond
)

// calls are one goroutine's calls for one ID, of a generator in this process and of a client
// of the server.
type calls struct {
	err   error
	all   []*kind
	close func() error
}

// kind is one source of IDs, and what was measured of it.
type kind struct {
	name string
	next func(ctx context.Context, n int) error // takes n IDs
	// waits returns how many calls have waited for a server. It is nil for a generator.
	waits func() uint64

	err    error
	ns     []float64 // per call
	allocs []float64 // per call
	local  []float64 // share of the calls that touched no network, in percent
}

func newCalls(ctx context.Context, c *child) *calls {
	s := &calls{close: func() error { return nil }}
	dir, err := servers.Dir()
	if err != nil {
		s.err = err
		return s
	}
	g, err := generator.Open(ctx, filepath.Join(dir, "nodes"), generator.WithLayout(wide()), generator.WithLeaseOptions(lease.WithLogger(slog.New(slog.DiscardHandler))))
	if err != nil {
		s.err = errors.Join(err, os.RemoveAll(dir))
		return s
	}
	ids, err := client.Open(ctx, []string{c.GRPC})
	if err != nil {
		s.err = errors.Join(err, g.Close(), os.RemoveAll(dir))
		return s
	}
	s.close = func() error { return errors.Join(ids.Close(), g.Close(), os.RemoveAll(dir)) }
	s.all = []*kind{
		{name: libraryRow, next: func(ctx context.Context, n int) error {
			for range n {
				if _, err := g.NextContext(ctx); err != nil {
					return err
				}
			}
			return nil
		}},
		{name: clientRow, waits: func() uint64 { return ids.Stats().Waits }, next: func(ctx context.Context, n int) error {
			for range n {
				if _, err := ids.Next(ctx); err != nil {
					return err
				}
			}
			return nil
		}},
	}
	return s
}

// measure makes calls at the pace for about so long, after as many as it takes until the
// client knows the pace.
func (s *calls) measure(ctx context.Context, k *kind, box time.Duration) {
	if k.err != nil || ctx.Err() != nil {
		return
	}
	runtime.GC() // the garbage of other loads
	var warming error
	if k.waits != nil {
		_, warming = paced(ctx, k, box)
	}
	var before, after runtime.MemStats
	var waited uint64
	if k.waits != nil {
		waited = k.waits()
	}
	runtime.ReadMemStats(&before)
	took, err := paced(ctx, k, box)
	runtime.ReadMemStats(&after)
	if ctx.Err() != nil {
		return // and what failed by that is no failure of the calls
	}
	if k.err = errors.Join(warming, err); k.err != nil {
		return
	}
	n := float64(burst) * float64(bursts(box))
	k.ns = append(k.ns, took)
	k.allocs = append(k.allocs, float64(after.Mallocs-before.Mallocs)/n)
	if k.waits != nil {
		k.local = append(k.local, 100*(1-float64(k.waits()-waited)/n))
	}
}

func bursts(box time.Duration) int { return max(int(box/burstEach), 1) }

// paced makes bursts of calls, one at the beginning of each millisecond, and returns the time
// of a call in nanoseconds: the median of the bursts, because one in which a call waits for
// the server shows the wait. A burst that is late follows at once.
func paced(ctx context.Context, k *kind, box time.Duration) (ns float64, err error) {
	began := time.Now()
	took := make([]float64, bursts(box))
	for i := range took {
		time.Sleep(time.Until(began.Add(time.Duration(i) * burstEach)))
		at := time.Now()
		if err := k.next(ctx, burst); err != nil {
			return 0, err
		}
		took[i] = float64(time.Since(at).Nanoseconds()) / burst
	}
	slices.Sort(took)
	return took[len(took)/2], nil
}

func (s *calls) table() results.Table {
	t := results.Table{ID: "service-client", Title: "One ID per call in Go, one million calls per second", RowName: "call", Columns: []results.Column{
		{ID: "ns", Title: "time, median of bursts", Unit: "ns", Better: results.Less},
		{ID: "allocs", Title: "allocations, with those of requests", Unit: "per call", Better: results.Less},
		{ID: "local", Title: "calls that touch no network", Unit: "%", Better: results.More},
	}}
	for _, k := range s.all {
		row := results.Row{Name: k.name, Group: results.Ours, Note: (&subject{err: k.err}).reason(), Cells: []results.Cell{{Samples: k.ns}, {Samples: k.allocs}, {Samples: k.local}}}
		if k.waits == nil {
			row.Cells[2] = results.Cell{Text: "all"}
		}
		t.Rows = append(t.Rows, row)
	}
	if s.err != nil {
		t.Rows = append(t.Rows, results.Row{Name: clientRow, Group: results.Ours, Note: (&subject{err: s.err}).reason(), Cells: make([]results.Cell, 3)})
	}
	return t
}

func (s *calls) targets() []results.Target {
	var library, ours kind
	for _, k := range s.all {
		if k.name == clientRow {
			ours = *k
		} else {
			library = *k
		}
	}
	more := make([]float64, min(len(ours.ns), len(library.ns)))
	for i := range more {
		more[i] = ours.ns[i] - library.ns[i]
	}
	target := func(t results.Target, samples []float64) results.Target {
		t.Got.Samples = samples
		return t.Judge(nil)
	}
	return []results.Target{
		target(results.Target{ID: "service-next", Text: "Next of the client, one million calls per second: at most 10 ns more than the library's", Unit: "ns", Want: 10, AtMost: true}, more),
		target(results.Target{ID: "service-next-allocs", Text: "Next of the client: 0 allocations, in whole ones as Go's benchmarks count them", Want: 0, AtMost: true}, measure.Each(ours.allocs, math.Floor)),
		target(results.Target{ID: "service-next-local", Text: fmt.Sprintf("Next of the client, one million calls per second: at least %g%% touch no network", leastLocal), Unit: "%", Want: leastLocal}, ours.local),
	}
}

// leastLocal is the least share of calls, in percent, that touch no network.
const leastLocal = 99.9
