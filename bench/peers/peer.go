package peers

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/tickflake/tickflake/generator/generatortest"
)

// Peer is a generator of the list.
type Peer struct {
	Name   string
	Module string // its path, or empty for this one
	Driven Driven
	How    string // where the time comes in, and in which function that was read
	Claim  string // what its documentation promises, other than order
	Remark string
	// Ordered says that its documentation promises the order of the IDs of one
	// generator, whatever the clock does. Another that is started on the same node
	// number begins anew.
	Ordered bool
	// Instead are the faults for which it is given other scripts.
	Instead map[string]Variant

	// Integers says that its IDs are integers of 64 bits.
	Integers bool
	// Tick is the unit of the time in its IDs, and Ceiling how many IDs its format
	// allows one generator in a second, or 0 if that is more than can be asked for.
	Tick    time.Duration
	Ceiling float64

	// symbol is a function of the module, from which its version can be told.
	symbol any
	// restarts says that a new generator is a new process.
	restarts bool
	ends     bool // it is known when its time ends
	// low returns the lowest byte of an ID, by which programs choose a shard.
	low func(id string) (byte, error)
	// run puts the peer through a script, and keeps the IDs if it is told to. It must
	// be in a bubble if the peer is driven by one.
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

// peer makes a Peer of a subject.
func peer[ID cmp.Ordered](p Peer, s generatortest.Subject[ID]) Peer {
	s.Name = p.Name
	s.SystemTime = p.Driven == ByBubble
	p.Ordered = !s.Claim.Unordered
	p.Tick = s.Tick
	p.ends = !s.End.IsZero()
	p.run = func(script generatortest.Script, keep bool) life {
		w := watch[ID]{new: s.New, tick: s.Tick, perTick: p.perTick(), renew: p.restarts, keep: keep}
		subject := s
		subject.New = w.start
		// The suite expects the order to go on after a restart, which nobody
		// promised.
		subject.Claim.Unordered = s.Claim.Unordered || slices.ContainsFunc(script.Steps, func(s generatortest.Step) bool {
			return s.Do == generatortest.Restart || s.Do == generatortest.Crash
		})
		w.life.Result = generatortest.RunScript(subject, script)
		return w.life
	}
	return p
}

// perTick is how many IDs a tick of the peer holds, or 0 if there is no such number.
func (p Peer) perTick() int { return int(math.Round(p.Ceiling * p.Tick.Seconds())) }

// Variant is what a [Peer] is put through in place of a script of the catalogue.
type Variant struct {
	Script string
	// Second is what another process is put through, which starts on what the first
	// one leaves behind: nothing. It is empty if one process does it all.
	Second string
	Note   string // what is different
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

// excuse says why a fault does not apply, where there is more to say than the
// suite knows.
func (p Peer) excuse(fault string) string {
	switch {
	case fault == "F13" && !p.restarts && p.Driven != ByBubble && p.Module != "": // of others
		return "its state is in package variables, so that two processes cannot be stopped and woken side by side"
	case fault == "F17" && !p.ends:
		return "its time ends after 2262, where the clock's time ends"
	}
	return ""
}
