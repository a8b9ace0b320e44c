package fleettest

import (
	"maps"
	"time"
)

// Chance is what may go wrong in a run.
type Chance struct {
	Period        int64 // the time by which all others are drawn
	MostProcesses int   // that are started while there are faults
	Room          int   // how many processes there may be when the faults are over

	Length     int64 // how long the faults go on
	FaultEvery int64
	Kinds      []FaultKind
	PStore     uint64 // of 1024: requests that go wrong
	Fates      []Fate
	PPause     uint64 // of 1024 places at which a thread may be held up
	PDie       uint64 // of 4096, likewise
	Latency    int64  // of a way to the store or back, at most
	Stale      bool   // listings are out of date
	PStale     uint64 // of 1024 reads: they are of an older state of the cell (F21)
	Away       int64  // true time until which the store is away

	Skewed, Slews bool // clocks
}

// FaultKind is the kind of a fault of a machine, of its process, or of the store.
type FaultKind uint8

// The faults. A simulation adds its own from OwnFaults on.
const (
	StepSmall FaultKind = iota
	StepLarge
	StepHours
	Slew
	Freeze
	Suspend
	Partition
	Outage
	Kill
	PauseAll
	Zombie
	Shutdown
	Restored   // the memory of a process was, as far as it is told
	faultKinds // those that Draw draws evenly
	Rewind     // the store goes back: in few runs, since then some numbers may be issued twice
	OwnFaults
)

// Draw draws what may go wrong, for a number of machines. The kinds of faults are drawn
// first: where all are at work at once, few of the rarer cases come about. more are kinds
// that are drawn in any case.
func (f *Fleet) Draw(machines int, more ...FaultKind) {
	f.Skewed, f.Slews, f.Stale = f.Often(640), f.Often(512), f.Often(384)
	f.FaultEvery = f.Between(f.Period/8, 2*f.Period) / int64(min(machines, 4))
	for kind := range faultKinds {
		if f.Often(512) {
			f.Kinds = append(f.Kinds, kind)
		}
	}
	if f.Often(64) {
		f.Kinds = append(f.Kinds, Rewind)
	}
	f.Kinds = append(f.Kinds, more...)
	f.Latency = f.Between(2, f.Period/16)
	if f.Often(256) {
		f.Latency = f.Between(2, f.Period)
	}
	if f.Often(768) {
		for _, x := range AllFates() {
			if f.Often(512) {
				f.Fates = append(f.Fates, x)
			}
		}
		if len(f.Fates) > 0 {
			f.PStore = uint64(f.Between(1, 400))
		}
	}
	if f.Often(640) {
		f.PPause = uint64(f.Between(1, 24))
	}
	if f.Often(256) {
		f.PDie = uint64(f.Between(1, 24))
	}
	if machines > 32 {
		f.PPause, f.PDie = min(f.PPause, 2), min(f.PDie, 2)
	}
}

func (f *Fleet) nextFault() {
	if f.Calm {
		return
	}
	f.fault()
	f.At(f.Between(1, 2*f.FaultEvery), f.nextFault)
}

// fault does something to a machine or to all of them.
func (f *Fleet) fault() {
	m := f.Machines[f.Rng.IntN(len(f.Machines))]
	kind := f.Kinds[f.Rng.IntN(len(f.Kinds))]
	f.Tally["faults"]++
	w := f.Period
	alive := m.P != nil && !m.P.Dead
	switch kind {
	case StepSmall:
		m.set(f.Between(-w/4, w/4), m.wallRate, m.elapsedRate)
	case StepLarge:
		m.set(f.Between(-5*w, 5*w), m.wallRate, m.elapsedRate)
	case StepHours:
		m.set(f.Between(-5, 6)*int64(time.Hour)+f.Between(-w, w), m.wallRate, m.elapsedRate)
	case Slew:
		m.set(0, f.rate(), f.rate())
	case Freeze:
		m.set(0, 0, m.elapsedRate)
		f.At(f.Between(0, 4*w), func() { m.set(0, rateOne, m.elapsedRate) })
	case Suspend: // nothing runs, and elapsed time stands still
		d := f.Between(0, 4*w)
		m.set(0, m.wallRate, 0)
		m.stop(d)
		f.At(d, func() { m.set(0, m.wallRate, rateOne) })
	case Partition:
		m.cut = f.Now + f.Between(0, 5*w)
		f.Tracef("machine %d: cut off until %s", m.ID, time.Duration(m.cut))
	case Outage:
		f.Away = f.Now + f.Between(0, 4*w)
		f.Tracef("store: away until %s", time.Duration(f.Away))
	case Kill:
		if alive {
			m.P.Crash("killed")
		}
	case PauseAll:
		m.stop(f.Between(0, 5*w))
	case Zombie: // it is thought dead, replaced, and wakes again
		if alive && len(f.Processes) < f.MostProcesses {
			m.P.Stop(f.Between(0, 6*w))
			f.Tally["zombies"]++
			m.StartLater(f.Between(0, w))
		}
	case Shutdown:
		if alive {
			m.P.Shutdown()
		}
	case Restored:
		if alive && !m.P.Closing && m.P.program.Ready() {
			f.Tally["restores"]++
			m.P.Spawn("restored", m.P.program.Restored)
		}
	case Rewind:
		if f.Store.backup != nil {
			f.Rewind(f.Store.backup)
		}
		f.Store.backup = maps.Clone(f.Store.cells)
	default:
		f.Fault(kind, m)
	}
}

// settle ends all faults. Clocks go on from where they are, which may be hours apart.
func (f *Fleet) settle() {
	f.Calm, f.Stale, f.Away, f.Latency = true, false, 0, f.Period/64+2
	f.CalmSince = f.Now
	f.Tracef("--- the faults are over ---")
	for _, m := range f.Machines {
		m.cut = 0
		m.set(0, rateOne, rateOne)
	}
	for _, o := range f.late {
		f.At(f.Between(0, f.Period/20), o.arrive)
	}
	f.late = nil
	for f.Alive() > f.Room {
		if p := f.Processes[f.Rng.IntN(len(f.Processes))]; !p.Dead {
			p.Crash("one too many")
		}
	}
	for _, m := range f.Machines {
		if m.P == nil || m.P.Dead {
			m.StartLater(f.Between(0, f.Period/10))
		}
	}
	for _, p := range f.Processes {
		if !p.Dead {
			p.stopped = 0
			for _, t := range p.threads {
				t.Wake(f.Between(0, f.Period/20))
			}
		}
	}
}
