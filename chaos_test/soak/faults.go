//go:build linux

package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/tickflake/tickflake/stores/storetest"
)

// draw is the random part of a fault.
type draw struct {
	length time.Duration
	offset int64 // of a clock, in nanoseconds
}

// fault is a kind of fault. do makes it, waits, and ends it.
type fault struct {
	name  string
	spare bool // the last server is spared
	do    func(f *fleet, m *member, d draw) error
}

var faults = []fault{
	{"server killed", true, func(_ *fleet, m *member, _ draw) error { return restart(m) }},
	{"server killed, clock stepped", true, func(_ *fleet, m *member, d draw) error {
		m.page.offset.Store(d.offset)
		return restart(m)
	}},
	{"server stopped for a while", false, func(_ *fleet, m *member, d draw) error {
		if err := m.process.Suspend(); err != nil {
			return err
		}
		<-time.After(d.length)
		return m.process.Resume()
	}},
	{"clock stepped", false, func(_ *fleet, m *member, d draw) error { m.page.offset.Store(d.offset); return nil }},
	{"clients cut off, connections closed", false, func(_ *fleet, m *member, d draw) error {
		shut(d.length, m.clients...)
		return nil
	}},
	{"clients cut off, bytes held", false, func(_ *fleet, m *member, d draw) error {
		hold(d.length, m.clients...)
		return nil
	}},
}

// storeFaults are those of a store in a network.
var storeFaults = []fault{
	{"store cut off, connections closed", false, func(_ *fleet, m *member, d draw) error {
		shut(d.length, m.store)
		return nil
	}},
	{"store cut off, bytes held", false, func(_ *fleet, m *member, d draw) error {
		hold(d.length, m.store)
		return nil
	}},
	{"store killed", false, func(f *fleet, _ *member, _ draw) error {
		if err := f.etcd.Kill(); err != nil {
			return err
		}
		return f.etcd.Start()
	}},
}

func restart(m *member) error {
	if err := m.process.Kill(); err != nil {
		return err
	}
	return m.process.Start()
}

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

// kinds are the faults of a fleet on the store.
func (s settings) kinds(store string) []fault {
	kinds := slices.Clone(faults)
	if store == onEtcd {
		kinds = append(kinds, storeFaults...)
	}
	return slices.DeleteFunc(kinds, func(k fault) bool { return !s.only.MatchString(k.name) })
}

// disturb makes one fault after the other until ctx ends, each kind equally often. It returns
// when the last fault is over.
func (f *fleet) disturb(ctx context.Context) {
	random := rand.New(rand.NewPCG(f.seed, uint64(len(f.name))))
	kinds := f.kinds(f.name)
	for {
		for _, k := range random.Perm(len(kinds)) {
			pause := time.Duration(random.Float64() * float64(f.every))
			d := draw{time.Duration(random.Float64() * 2 * float64(f.every)), int64((2*random.Float64() - 1) * float64(f.step))}
			servers := len(f.members)
			if kinds[k].spare {
				servers--
			}
			m := f.members[random.IntN(servers)]
			select {
			case <-ctx.Done():
				return
			case <-time.After(pause):
			}
			if !f.allRun() {
				return
			}
			if err := kinds[k].do(f, m, d); err != nil {
				f.breaks(returns, 1, "server %d, fault %q: %v", m.Index, kinds[k].name, err)
				return
			}
			f.mu.Lock()
			f.faults[kinds[k].name]++
			f.mu.Unlock()
		}
	}
}

// allRun starts servers again that have ended by themselves. It reports false if that fails.
func (f *fleet) allRun() bool {
	for _, m := range f.members {
		if m.alive() {
			continue
		}
		f.ended(m)
		if err := restart(m); err != nil {
			f.breaks(returns, 1, "server %d does not start again: %v", m.Index, err)
			return false
		}
	}
	return true
}

// ended notes that a server has ended by itself.
func (f *fleet) ended(m *member) {
	output := m.process.Output()
	f.breaks(lives, 1, "server %d: %s", m.Index, output[max(0, len(output)-1000):])
}

// total is the number of faults.
func (f *fleet) total() (n int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, count := range f.faults {
		n += count
	}
	return n
}

func (f *fleet) String() string {
	var served, failed int64
	var worst Stall
	for _, w := range f.workers {
		w.mu.Lock()
		served, failed = served+w.count.Served, failed+w.count.Failed
		if s := w.count.worst(); s.Seconds > worst.Seconds {
			worst = s
		}
		w.mu.Unlock()
	}
	return fmt.Sprintf("%s: %d calls, %d faults, %d failed, %d twice, %d out of order, worst stall %.1fs",
		f.name, served, f.total(), failed, f.times(unique), f.times(inOrder), worst.Seconds)
}
