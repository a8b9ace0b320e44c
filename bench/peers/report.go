package peers

import (
	"cmp"
	"context"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tickflake/tickflake/generator/generatortest"
)

// DefaultLimit is the real time in which a process must answer. Those that answer
// do so in a fraction of a second.
const DefaultLimit = 5 * time.Second

// Report is what the peers did under the faults.
type Report struct {
	Limit time.Duration // the real time in which a process had to answer
	Peers []PeerReport
}

// PeerReport is what one peer did.
type PeerReport struct {
	Peer
	Version string
	Results []Outcome // as the catalogue
}

// Outcome is what a peer did under a fault.
//
// While several callers run at once, it cannot be told who waits for what. So for a
// script with several, LongestStall and Waited are those of another run of it, with
// one.
type Outcome struct {
	generatortest.Result
	// Waited is the true time for which calls waited in all, not counting the first
	// tick of each: so long does one wait for the next tick where all IDs of this one
	// were issued, and no ID is lost by that. What a call that asks for several may
	// wait without a loss is as many ticks as hold them.
	Waited time.Duration
}

// Result returns what the peer did under a fault, if it was run.
func (p PeerReport) Result(fault string) (Outcome, bool) {
	i := slices.IndexFunc(p.Results, func(r Outcome) bool { return r.Fault == fault })
	if i < 0 {
		return Outcome{}, false
	}
	return p.Results[i], true
}

// Options says how [Run] does its work. The zero Options serve.
type Options struct {
	// Limit is the real time in which a process must answer, and is then ended. 0 is
	// DefaultLimit.
	Limit time.Duration
	// Progress, if not nil, is told what has been done, by one goroutine at a time.
	Progress func(done, of int, what string)
}

// Named returns the peers of the list whose names contain any of the words, or all
// if there are no words.
func Named(words ...string) []Peer {
	return slices.DeleteFunc(List(), func(p Peer) bool {
		return len(words) > 0 && !slices.ContainsFunc(words, func(word string) bool { return strings.Contains(p.Name, word) })
	})
}

// Run puts peers through the catalogue. Its program must call [Serve] first. When ctx
// ends, what was not run by then is skipped with that reason.
func Run(ctx context.Context, list []Peer, options Options) Report {
	if os.Getenv(askedFor) != "" {
		panic("peers: Run was called before Serve") // or each process would start more
	}
	r := Report{Limit: cmp.Or(options.Limit, DefaultLimit)}
	catalogue := generatortest.Catalogue()
	var early, late []func() (what string) // those that may use up the limit begin first
	for _, p := range list {
		r.Peers = append(r.Peers, PeerReport{Peer: p, Version: p.version()})
	}
	for i := range r.Peers {
		p := &r.Peers[i]
		p.Results = make([]Outcome, len(catalogue))
		for k, s := range catalogue {
			run := func() string {
				p.Results[k] = p.put(ctx, s, r.Limit)
				return p.Name + ", " + s.Fault
			}
			if p.Driven == ByBubble {
				early = append(early, run)
			} else {
				late = append(late, run)
			}
		}
	}
	inTurn(append(early, late...), options.Progress)
	return r
}

// inTurn runs functions in their order, several at a time.
func inTurn(runs []func() string, progress func(done, of int, what string)) {
	var next atomic.Int64
	var mu sync.Mutex // guards done, and calls of progress
	var done int
	var all sync.WaitGroup
	for range max(2, runtime.GOMAXPROCS(0)) {
		all.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= len(runs) {
					return
				}
				what := runs[i]()
				mu.Lock()
				if done++; progress != nil {
					progress(done, len(runs), what)
				}
				mu.Unlock()
			}
		})
	}
	all.Wait()
}

// put puts the peer through one fault.
func (p Peer) put(ctx context.Context, s generatortest.Scenario, limit time.Duration) Outcome {
	instead := p.Instead[s.Fault]
	script := cmp.Or(instead.Script, s.Script.Line())
	l := life{Result: generatortest.Result{Script: script, Skipped: p.excuse(s.Fault)}}
	var err error
	switch {
	case l.Result.Skipped != "":
	case ctx.Err() != nil:
		l.Result.Skipped = Interrupted
	case instead.Second != "":
		l, err = p.lives(ctx, instead, limit)
	case p.Driven == ByBubble:
		if instead.Script == "" {
			if l.Result.Skipped = p.unfit(s.Script); l.Result.Skipped != "" {
				break // no process needs to be started for that
			}
		}
		l, err = p.ask(ctx, script, false, limit)
	default:
		l = p.run(s.Script, false)
		if s.Script.Callers > 1 {
			alone := s.Script
			alone.Callers = 1
			single := p.run(alone, false)
			l.Result.LongestStall, l.Waited = single.Result.LongestStall, single.Waited
		}
	}
	switch {
	case err != nil && ctx.Err() != nil:
		l = life{Result: generatortest.Result{Script: script, Skipped: Interrupted}}
	case err != nil:
		l = life{Result: generatortest.Result{Script: script, Skipped: "cannot be driven: " + err.Error()}}
	}
	l.Result.Fault, l.Result.Name = s.Fault, s.Name
	return Outcome{l.Result, l.Waited}
}

// Interrupted is why a fault was skipped after the end of the context.
const Interrupted = "the run was interrupted"
