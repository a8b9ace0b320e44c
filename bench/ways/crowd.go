package ways

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tickflake/tickflake/bench/measure"
	"github.com/tickflake/tickflake/bench/results"
)

// callers is how many goroutines make a crowd. A test has fewer: each waits for its turn.
var callers = 1000

// rush has a crowd call a client, and returns its IDs, and how many per second it got during
// box, or until the first if that takes longer, after a lead-in of a quarter of box. Calls
// that wait at the end are waited for, and do not count.
func (c client) rush(ctx context.Context, box time.Duration) (ids []int64, rate float64, err error) {
	var counts, over atomic.Bool
	news := make(chan struct{}, 1) // a call counts, or has failed
	var group sync.WaitGroup
	type caller struct {
		ids     []int64
		counted int
		err     error
	}
	all := make([]caller, callers)
	for i := range all {
		group.Go(func() {
			mine := &all[i]
			for mine.err == nil && !over.Load() {
				var id int64
				if id, mine.err = c.next(ctx); mine.err == nil {
					mine.ids = append(mine.ids, id)
					if !counts.Load() || over.Load() {
						continue
					}
					mine.counted++
				}
				select {
				case news <- struct{}{}:
				default:
				}
			}
		})
	}
	pause(ctx, box/4)
	counts.Store(true)
	began := time.Now()
	pause(ctx, box)
	select {
	case <-news:
	case <-ctx.Done():
	}
	over.Store(true)
	took := time.Since(began)
	group.Wait()
	counted := 0
	for i := range all {
		ids = append(ids, all[i].ids...)
		counted += all[i].counted
		if err == nil {
			err = all[i].err
		}
	}
	return ids, float64(counted) / took.Seconds(), err
}

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// crowdTable shows the ways that were called by a crowd.
func crowdTable(subjects []*subject) results.Table {
	t := results.Table{ID: "crowd", Title: fmt.Sprintf("%s callers of one client", results.Figure(float64(callers))), RowName: "way", Columns: []results.Column{
		{ID: "rate", Title: "together", Unit: "IDs/s", Better: results.More},
		{ID: "gain", Title: "× one caller", Better: results.More},
	}, Charts: []results.Chart{{ID: "crowd", Title: "IDs per second, 1,000 callers", Columns: []string{"rate"}, YLabel: "IDs per second", LogY: true}}}
	for _, s := range subjects {
		if s.crowd {
			t.Rows = append(t.Rows, results.Row{Name: s.name, Group: s.group, Cells: []results.Cell{
				{Samples: s.rush}, {Samples: gains(s)},
			}})
		}
	}
	return t
}

// gains returns how many IDs a crowd got in the time that one caller took for one, round by
// round.
func gains(s *subject) []float64 {
	one := s.perID[1]
	out := make([]float64, min(len(s.rush), len(one)))
	for i := range out {
		out[i] = s.rush[i] * one[i] / 1e6
	}
	return out
}

// crowdTargets hold the ordered mode to its speed, against the numbers that each server counts by itself.
func crowdTargets(subjects []*subject) []results.Target {
	find := func(name string) *subject {
		for _, s := range subjects {
			if s.name == name {
				return s
			}
		}
		return &subject{}
	}
	target := func(server, base, text string, want float64) results.Target {
		t := results.Target{ID: "ways-ordered-" + strings.ToLower(server), Unit: "×", Want: want,
			Text: fmt.Sprintf("Ordered sequence in %s, 1,000 callers: at least %s× %s", server, results.Figure(want), text)}
		ours, theirs := find(sequenceName(server, ordered)), find(base)
		return measure.Compare(measure.Samples{Wall: ours.rush, Disturbed: ours.rushed},
			measure.Samples{Wall: measure.Each(theirs.perID[1], func(micros float64) float64 { return 1e6 / micros }), Disturbed: theirs.alone}).Judge(t)
	}
	return []results.Target{
		target("PostgreSQL", postgresSequence, "nextval over as many connections, which is one", 10),
		target("ZooKeeper", sequentialNodes, "sequential nodes that are made one after the other", 300),
	}
}

// measureCrowd has a crowd call the first client, and keeps the rate.
func (s *subject) measureCrowd(ctx context.Context, box time.Duration) {
	if s.err != nil {
		return
	}
	runtime.GC() // the garbage of other ways
	disturbed := measure.WatchStolen()
	ids, rate, err := s.clients[0].rush(ctx, box)
	if err != nil && ctx.Err() == nil {
		s.err = err
	}
	s.ids = append(s.ids, ids...)
	if s.err == nil && ctx.Err() == nil {
		s.rush, s.rushed = append(s.rush, rate), append(s.rushed, disturbed())
	}
}
