// Package peers puts other public ID generators through the fault catalogue of package
// generatortest, and tickflake beside them.
//
// You need these names: [List] and [Tickflake] return [Peer] values, [Run] puts them
// through the faults, and [Serve] must come first in the program.
//
// A peer that takes a clock, or a time per call, gets the virtual clock of clocktest and
// meets every fault. One that reads package time runs in a bubble of testing/synctest,
// whose time is virtual but never wrong: it meets exhaustion, the end of time, a clock
// before its epoch, and restarts. A bubble's time passes only when every goroutine in it
// waits, so a peer that spins never leaves its loop. Each bubble is in a process of its
// own, which is ended at a limit of real time. A restart is a new generator with the same
// settings; where the state is in package variables, or the clock steps back between two
// processes, the processes are real.
//
// No peer may issue an ID twice, or one whose time has wrapped. A call may take as long as
// the peer's documentation says, and an ID be as far ahead of the clock; where it says
// nothing, not at all. Order is judged where it is promised whatever the clock does.
package peers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/tickflake/tickflake/generator/generatortest"
	"github.com/tickflake/tickflake/monoclock/clocktest"
)

// Peer is a generator of the list.
type Peer struct {
	Name   string
	Module string // its path; empty for this one
	Driven Driven
	How    string // where the time comes in
	Claim  string // what its documentation promises
	Remark string
	// Ordered says that its documentation promises order, whatever the clock does.
	Ordered bool
	// Instead has other scripts, by the fault whose script cannot drive the peer.
	Instead map[string]Variant
	// Integers says that its IDs are integers of 64 bits.
	Integers bool
	Tick     time.Duration // unit of the time in its IDs

	restarts bool // a new generator is a new process
	ends     bool // it is known when its time ends
	// low returns the lowest byte of an ID, by which programs choose a shard.
	low func(id string) (byte, error)
	// run puts the peer through a script, and keeps the IDs if keep is set. It must be
	// called in a bubble if the peer is driven by one.
	run func(script generatortest.Script, keep bool) life
}

// Driven is how a [Peer] gets its time.
type Driven string

// The ways in which a peer gets its time.
const (
	ByClock  Driven = "supplied clock"
	ByCall   Driven = "time per call"
	ByBubble Driven = "synctest"
)

// Variant is a script in place of one of the catalogue.
type Variant struct {
	Script string
	Second string // the script of a second process, if there is one
	Note   string // how it differs
}

var (
	stepped = Variant{"begin 2026-06-01T12:00:00Z; ids 2000 over 2s", "begin 2026-06-01T12:00:01Z; ids 2000 over 2s",
		"two real processes; the wall was stepped back by 1 s in between"}
	burst = Variant{"begin 2026-06-01T12:00:00Z; ids 1000", "begin 2026-06-01T12:00:00Z; ids 1000",
		"two real processes, started at the same instant; 1000 IDs each"}
	gentleEnd = Variant{"begin end-20ms; ids 100; pass 10ms; ids 100; stream 10; pass 9ms; ids 100; pass 2ms; ids 10; pass 1h; ids 3", "",
		"with fewer IDs than use up a tick, where it spins"}
	young = Variant{"begin 2000-01-02T00:00:00Z; ids 50; pass 1s; ids 50", "",
		"in the year 2000, where a bubble begins"}
)

// life is the outcome of a script.
type life struct {
	Result generatortest.Result `json:"result"`
	IDs    []string             `json:"ids,omitempty"` // of single calls, in order, if they were kept
}

// peer makes a Peer of a subject.
func peer[ID cmp.Ordered](p Peer, s generatortest.Subject[ID]) Peer {
	s.Name = p.Name
	s.SystemTime = p.Driven == ByBubble
	p.Ordered, p.Tick, p.ends = !s.Claim.Unordered, s.Tick, !s.End.IsZero()
	p.run = func(script generatortest.Script, keep bool) life {
		var l life
		var mu sync.Mutex // guards l.IDs
		var start func(clock *clocktest.Virtual) (generatortest.Process[ID], error)
		start = func(clock *clocktest.Virtual) (generatortest.Process[ID], error) {
			process, err := s.New(clock)
			if err != nil || process.Next == nil {
				return process, err
			}
			if p.restarts {
				process.Restart = func() (generatortest.Process[ID], error) { return start(clock) }
			}
			if next := process.Next; keep {
				process.Next = func() (ID, error) {
					id, err := next()
					mu.Lock()
					defer mu.Unlock()
					if err == nil {
						l.IDs = append(l.IDs, fmt.Sprint(id))
					}
					return id, err
				}
			}
			return process, nil
		}
		subject := s
		subject.New = start
		// The suite expects order across a restart, which no peer promises.
		subject.Claim.Unordered = s.Claim.Unordered || slices.ContainsFunc(script.Steps, func(s generatortest.Step) bool {
			return s.Do == generatortest.Restart || s.Do == generatortest.Crash
		})
		l.Result = generatortest.RunScript(subject, script)
		return l
	}
	return p
}

// excuse says why a fault does not apply, where the suite cannot know.
func (p Peer) excuse(fault string) string {
	switch {
	case fault == "F13" && !p.restarts && p.Driven != ByBubble && p.Module != "": // of others
		return "its state is in package variables, so that two processes cannot be stopped and woken side by side"
	case fault == "F17" && !p.ends:
		return "its time ends after 2262, where the clock's time ends"
	}
	return ""
}

// Version is that of the peer's module. It is empty in a test, whose build information
// has no modules.
func (p Peer) Version() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			if m.Path == p.Module {
				return m.Version
			}
		}
	}
	return ""
}

// IDs has the peer issue n IDs in virtual time, one in each period from a whole second on,
// and returns the lowest byte of each. A process that a bubble needs must answer within
// limit of real time.
func (p Peer) IDs(ctx context.Context, n int, period, limit time.Duration) ([]byte, error) {
	text := fmt.Sprintf("begin 2026-06-01T12:00:00Z; ids %d over %s", n, time.Duration(n)*period)
	script, err := generatortest.ParseScript(text)
	if err != nil {
		return nil, err
	}
	var l life
	if p.Driven == ByBubble {
		if l, err = p.ask(ctx, text, true, limit); err != nil {
			return nil, err
		}
	} else {
		l = p.run(script, true)
	}
	if l.Result.Skipped != "" {
		return nil, errors.New(l.Result.Skipped)
	}
	if len(l.IDs) < n { // the suite adds a call at the end
		return nil, fmt.Errorf("%s issued %d IDs of %d: %s", p.Name, len(l.IDs), n, l.Result.Summary())
	}
	low := make([]byte, n)
	for i, id := range l.IDs[:n] {
		if low[i], err = p.low(id); err != nil {
			return nil, fmt.Errorf("%s issued %q: %w", p.Name, id, err)
		}
	}
	return low, nil
}
