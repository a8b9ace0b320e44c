package peers

import (
	"cmp"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tickflake/tickflake/generator/generatortest"
)

// DefaultLimit is the real time in which a process must answer. Those that answer
// do so in a fraction of a second.
const DefaultLimit = 5 * time.Second

// Report is what the peers did under the faults.
type Report struct {
	Limit time.Duration `json:"limitNs"` // the real time in which a process had to answer
	Peers []PeerReport  `json:"peers"`
}

// PeerReport is what one peer did.
type PeerReport struct {
	Peer
	Version string                 `json:"version,omitempty"`
	Results []generatortest.Result `json:"results,omitempty"` // as the catalogue, or empty if it was not run
}

// Run puts the peers whose names contain any of the words, or all of them, through
// the catalogue. Its program must call [Serve] first. A process that does not
// answer within limit is ended.
func Run(limit time.Duration, words ...string) Report {
	if os.Getenv(askedFor) != "" {
		panic("peers: Run was called before Serve") // or each process would start more
	}
	r := Report{Limit: limit}
	for _, p := range List() {
		if len(words) == 0 || slices.ContainsFunc(words, func(word string) bool { return strings.Contains(p.Name, word) }) {
			r.Peers = append(r.Peers, PeerReport{Peer: p, Version: p.version()})
		}
	}
	catalogue := generatortest.Catalogue()
	slots := make(chan struct{}, max(2, runtime.GOMAXPROCS(0)))
	var all sync.WaitGroup
	for i := range r.Peers {
		p := &r.Peers[i]
		if p.run == nil {
			continue
		}
		p.Results = make([]generatortest.Result, len(catalogue))
		for k, s := range catalogue {
			all.Go(func() {
				slots <- struct{}{}
				defer func() { <-slots }()
				p.Results[k] = p.put(s, limit)
			})
		}
	}
	all.Wait()
	return r
}

// put puts the peer through one fault.
func (p Peer) put(s generatortest.Scenario, limit time.Duration) generatortest.Result {
	instead := p.Instead[s.Fault]
	script := cmp.Or(instead.Script, s.Script.Line())
	l := life{Result: generatortest.Result{Script: script, Skipped: p.excuse(s.Fault)}}
	var err error
	switch {
	case l.Result.Skipped != "":
	case instead.Second != "":
		l, err = p.lives(instead, limit)
	case p.Driven == ByBubble:
		l, err = p.ask(script, limit)
	default:
		l = p.run(s.Script)
	}
	if err != nil {
		l.Result = generatortest.Result{Script: script, Skipped: "cannot be driven: " + err.Error()}
	}
	l.Result.Fault, l.Result.Name = s.Fault, s.Name
	return l.Result
}
