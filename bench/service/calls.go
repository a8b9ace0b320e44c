package service

import (
	"context"
	"runtime"
	"slices"
	"time"

	"github.com/tickflake/tickflake/bench/measure"
	"github.com/tickflake/tickflake/bench/report"
	"github.com/tickflake/tickflake/client"
	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/integration/program"
	"github.com/tickflake/tickflake/snowflake"
)

// The pace of calls: so many every millisecond, one million per second.
const (
	burst     = 1000
	burstEach = time.Millisecond
)

// paced makes loads of one goroutine's calls for one ID at the pace, of a generator in this
// process and of a client of the server, whose base that is.
func paced(ctx context.Context, server *program.Server, box time.Duration, open *measure.Closers) (library, ours *measure.Load) {
	library = &measure.Load{Row: libraryRow, Group: report.Ours}
	ours = &measure.Load{Row: clientRow, Group: report.Ours, Base: library}
	wide := snowflake.Default()
	wide.NodeBits, wide.SequenceBits = 4, 18
	var g *generator.Generator
	if g, library.Err = generator.New(generator.WithNode(1), generator.WithLayout(wide)); library.Err == nil {
		open.Add(g.Close)
		library.Turn = func(context.Context) (measure.Figures, error) {
			return pace(box, func() error { _, err := g.NextContext(ctx); return err }, func() uint64 { return 0 })
		}
	}
	var ids *client.Client
	if ids, ours.Err = client.Open(ctx, []string{server.GRPC}); ours.Err == nil {
		open.Add(ids.Close)
		next, waits := func() error { _, err := ids.Next(ctx); return err }, func() uint64 { return ids.Stats().Waits }
		ours.Turn = func(context.Context) (measure.Figures, error) {
			if _, err := pace(box, next, waits); err != nil { // until the client knows the pace
				return nil, err
			}
			return pace(box, next, waits)
		}
	}
	return library, ours
}

// pace makes bursts of calls for about so long, one at the beginning of each millisecond. A burst
// that is late follows at once. "ns" is the time of a call: the median of the bursts, because one
// in which a call waits for the server shows the wait. "allocs" is per call, and "local" the share
// of the calls, in percent, that have not waited for a server.
func pace(box time.Duration, next func() error, waits func() uint64) (measure.Figures, error) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	waited, began := waits(), time.Now()
	took := make([]float64, max(int(box/burstEach), 1))
	for i := range took {
		time.Sleep(time.Until(began.Add(time.Duration(i) * burstEach)))
		at := time.Now()
		for range burst {
			if err := next(); err != nil {
				return nil, err
			}
		}
		took[i] = float64(time.Since(at).Nanoseconds()) / burst
	}
	runtime.ReadMemStats(&after)
	n := float64(burst * len(took))
	slices.Sort(took)
	return measure.Figures{"ns": took[len(took)/2], "allocs": float64(after.Mallocs-before.Mallocs) / n, "local": 100 * (1 - float64(waits()-waited)/n)}, nil
}
