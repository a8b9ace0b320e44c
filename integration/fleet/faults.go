//go:build unix

package fleet

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/tickflake/tickflake/integration/servers"
	"github.com/tickflake/tickflake/stores/storetest"
)

// Draw is the random part of a fault.
type Draw struct {
	Length time.Duration
	Offset time.Duration // of a clock
}

// Fault is a kind of fault of a fleet. Do makes it, waits, and ends it.
type Fault struct {
	Name  string
	Spare bool // Disturb spares the last server, whose memory is compared with that at the start
	Store bool // it needs a store that has a server
	Do    func(f *Fleet, m *Member, d Draw) error
}

// Faults are those of every fleet with networks and with clocks that can be stepped.
var Faults = []Fault{
	{Name: "server killed", Spare: true, Do: func(_ *Fleet, m *Member, _ Draw) error { return restart(m) }},
	{Name: "server killed, clock stepped", Spare: true, Do: func(_ *Fleet, m *Member, d Draw) error {
		m.Clock.Set(d.Offset)
		return restart(m)
	}},
	{Name: "server drained", Spare: true, Do: func(_ *Fleet, m *Member, _ Draw) error { return errors.Join(m.End(), m.Start()) }},
	{Name: "server stopped for a while", Do: func(_ *Fleet, m *Member, d Draw) error {
		if err := m.Suspend(); err != nil {
			return err
		}
		<-time.After(d.Length)
		return m.Resume()
	}},
	{Name: "clock stepped", Do: func(_ *Fleet, m *Member, d Draw) error { m.Clock.Set(d.Offset); return nil }},
	{Name: "clients cut off, connections closed", Do: func(_ *Fleet, m *Member, d Draw) error { shut(d.Length, m.clients...); return nil }},
	{Name: "clients cut off, bytes held", Do: func(_ *Fleet, m *Member, d Draw) error { hold(d.Length, m.clients...); return nil }},
	{Name: "store cut off, connections closed", Store: true, Do: func(_ *Fleet, m *Member, d Draw) error { shut(d.Length, m.store); return nil }},
	{Name: "store cut off, bytes held", Store: true, Do: func(_ *Fleet, m *Member, d Draw) error { hold(d.Length, m.store); return nil }},
	{Name: "store killed", Store: true, Do: func(f *Fleet, _ *Member, _ Draw) error {
		return errors.Join(f.Store.Kill(), f.Store.Process.Start())
	}},
}

func restart(m *Member) error { return errors.Join(m.Kill(), m.Start()) }

// shut closes the connections for a while, and refuses new ones.
func shut(length time.Duration, proxies ...*storetest.Proxy) {
	for _, p := range proxies {
		p.Refuse()
		p.Cut()
	}
	<-time.After(length)
	for _, p := range proxies {
		p.Resume()
	}
}

// hold passes nothing on for a while. All that was held arrives late.
func hold(length time.Duration, proxies ...*storetest.Proxy) {
	for _, p := range proxies {
		p.Hold(storetest.ToServer)
		p.Hold(storetest.ToClient)
	}
	<-time.After(length)
	for _, p := range proxies {
		p.Resume()
	}
}

// FaultsOn returns the faults of a fleet on a store.
func FaultsOn(store servers.Kind) []Fault {
	return slices.DeleteFunc(slices.Clone(Faults), func(k Fault) bool { return k.Store && store == servers.Directory })
}

// Do makes one fault, by its name in Faults.
func (f *Fleet) Do(name string, m *Member, d Draw) error {
	for _, k := range Faults {
		if k.Name == name {
			return f.do(k, m, d)
		}
	}
	return fmt.Errorf("no fault is called %q", name)
}

func (f *Fleet) do(k Fault, m *Member, d Draw) error {
	if err := k.Do(f, m, d); err != nil {
		return fmt.Errorf("server %d, fault %q: %w", m.Index, k.Name, err)
	}
	f.mu.Lock()
	f.faults[k.Name]++
	f.mu.Unlock()
	return nil
}

// Disturbance says which faults are made, and how.
type Disturbance struct {
	Faults []Fault
	Every  time.Duration // the longest pause between two faults, and half of the longest fault
	Step   time.Duration // the largest offset of a clock
	Seed   uint64
}

// Disturb makes one fault after the other until ctx ends, each kind equally often. It returns
// when the last fault is over.
func (f *Fleet) Disturb(ctx context.Context, c Disturbance) {
	random := rand.New(rand.NewPCG(c.Seed, uint64(len(f.Store.Kind))))
	for {
		for _, i := range random.Perm(len(c.Faults)) {
			pause := time.Duration(random.Float64() * float64(c.Every))
			d := Draw{time.Duration(random.Float64() * 2 * float64(c.Every)), time.Duration((2*random.Float64() - 1) * float64(c.Step))}
			members := f.Members
			if c.Faults[i].Spare {
				members = members[:len(members)-1]
			}
			m := members[random.IntN(len(members))]
			Pause(ctx, pause)
			if ctx.Err() != nil || !f.allRun() {
				return
			}
			if err := f.do(c.Faults[i], m, d); err != nil {
				f.Break(Returns, "%v", err)
				return
			}
		}
	}
}

// allRun starts servers again that have ended by themselves. It reports false if that fails.
func (f *Fleet) allRun() bool {
	for _, m := range f.Members {
		if m.Running() {
			continue
		}
		f.hasEnded(m)
		if err := restart(m); err != nil {
			f.Break(Returns, "server %d does not start again: %v", m.Index, err)
			return false
		}
	}
	return true
}

// Disturbed returns how often each fault was made.
func (f *Fleet) Disturbed() map[string]int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.faults)
}
