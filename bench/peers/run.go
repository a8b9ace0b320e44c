package peers

import (
	"cmp"
	"context"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tickflake/tickflake/generator/generatortest"
)

// Interrupted is why a fault was skipped after the end of the context.
const Interrupted = "the run was interrupted"

// Run puts peers through the catalogue, and returns the results of each by fault. A
// process of its own that a peer needs must answer within limit of real time. progress is
// called from one goroutine at a time. When ctx ends, the rest is skipped as
// [Interrupted].
//
// With several callers at once it is unknown who waits for what, so the longest stall of
// such a script is that of another run with one caller.
func Run(ctx context.Context, list []Peer, limit time.Duration, progress func(done, of int, what string)) []map[string]generatortest.Result {
	if os.Getenv(askedFor) != "" {
		panic("peers: Run was called before Serve") // each process would start more
	}
	type cell struct {
		peer     int
		scenario generatortest.Scenario
	}
	var slow, cells []cell // those that may use up the limit begin first
	all := make([]map[string]generatortest.Result, len(list))
	for i, p := range list {
		all[i] = map[string]generatortest.Result{}
		for _, s := range generatortest.Catalogue() {
			if p.Driven == ByBubble {
				slow = append(slow, cell{i, s})
			} else {
				cells = append(cells, cell{i, s})
			}
		}
	}
	cells = append(slow, cells...)
	var next atomic.Int64 // index of the next cell
	var mu sync.Mutex     // guards all, done, and calls of progress
	var done int
	var workers sync.WaitGroup
	for range max(2, runtime.GOMAXPROCS(0)) {
		workers.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= len(cells) {
					return
				}
				c := cells[i]
				got := list[c.peer].put(ctx, c.scenario, limit)
				mu.Lock()
				all[c.peer][c.scenario.Fault] = got
				done++
				progress(done, len(cells), list[c.peer].Name+", "+c.scenario.Fault)
				mu.Unlock()
			}
		})
	}
	workers.Wait()
	return all
}

// put puts the peer through one fault.
func (p Peer) put(ctx context.Context, s generatortest.Scenario, limit time.Duration) generatortest.Result {
	instead := p.Instead[s.Fault]
	l := life{Result: generatortest.Result{Skipped: p.excuse(s.Fault)}}
	var err error
	switch {
	case l.Result.Skipped != "":
	case ctx.Err() != nil:
		l.Result.Skipped = Interrupted
	case instead.Second != "":
		l, err = p.lives(ctx, instead, limit)
	case p.Driven == ByBubble:
		l, err = p.ask(ctx, cmp.Or(instead.Script, s.Script.Line()), false, limit)
	default:
		l = p.run(s.Script, false)
		if s.Script.Callers > 1 {
			alone := s.Script
			alone.Callers = 1
			l.Result.LongestStall = p.run(alone, false).Result.LongestStall
		}
	}
	switch {
	case err != nil && ctx.Err() != nil:
		l.Result = generatortest.Result{Skipped: Interrupted}
	case err != nil:
		l.Result = generatortest.Result{Skipped: "cannot be driven: " + err.Error()}
	}
	l.Result.Fault, l.Result.Name = s.Fault, s.Name
	return l.Result
}
