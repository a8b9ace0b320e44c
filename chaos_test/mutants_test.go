package chaos_test

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/tickflake/tickflake/chaos_test/mutants"
	"github.com/tickflake/tickflake/generator/generatortest"
	"github.com/tickflake/tickflake/monoclock/clocktest"
)

// The mutants are the bugs of known generators. Each must be caught, and a sound generator
// must pass everything: the catalogue asks for nothing impossible.
func TestMutantsAreCaught(t *testing.T) {
	for _, m := range mutants.All() {
		t.Run(m.Name, func(t *testing.T) {
			if m.Name == mutants.Control {
				generatortest.Test(t, broken(m.Name))
				return
			}
			if m.Caught == "" {
				t.Skip("its processes run beside each other: the explorer and a real kernel catch it")
			}
			found := map[string]bool{}
			for _, r := range generatortest.Run(broken(m.Name)) {
				for kind := range r.Violated {
					found[r.Fault+" "+string(kind)] = true
				}
			}
			all := slices.Sorted(maps.Keys(found))
			assert.Contains(t, all, m.Caught, m.How)
			t.Logf("%s: caught by %s", m.How, strings.Join(all, ", "))
		})
	}
}

// broken is the mutant with a name: 16 IDs per millisecond, from 2020 on. It waits for the
// next millisecond when one is used up.
func broken(name string) generatortest.Subject[int64] {
	const bits = 4
	all := mutants.All()
	m := all[slices.IndexFunc(all, func(m mutants.Mutant) bool { return m.Name == name })]
	epoch := time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)
	var start func(*clocktest.Virtual, *memory) (generatortest.Process[int64], error)
	start = func(clock *clocktest.Virtual, state *memory) (generatortest.Process[int64], error) {
		next, err := m.Open(mutants.World{Now: clock.Now, Sleep: clock.Sleep, State: state, Tick: time.Millisecond, Bits: bits})
		if clock.Now().Before(epoch) {
			err = errors.New("the clock is before 2020")
		}
		var mu sync.Mutex
		return generatortest.Process[int64]{
			Next: func() (int64, error) {
				if !m.Unlocked {
					mu.Lock()
					defer mu.Unlock()
				}
				return next()
			},
			Restart: func() (generatortest.Process[int64], error) { return start(clock, state) },
		}, err
	}
	return generatortest.Subject[int64]{
		Name:  m.Name,
		New:   func(clock *clocktest.Virtual) (generatortest.Process[int64], error) { return start(clock, &memory{}) },
		Claim: generatortest.Claim{Exhausted: generatortest.Bound{Wait: generatortest.Forever}, Behind: generatortest.Bound{Wait: m.Wait}},
		Time:  func(id int64) time.Time { return time.UnixMilli(id >> bits) },
		Tick:  time.Millisecond,
		Epoch: epoch,
	}
}

// memory is a [mutants.File] in memory. Of the processes that share one, one runs at a time.
type memory struct{ data []byte }

func (f *memory) Read() ([]byte, error)     { return slices.Clone(f.data), nil }
func (f *memory) Replace(data []byte) error { f.data = data; return nil }
func (f *memory) Truncate() error           { f.data = nil; return nil }
func (f *memory) Append(data []byte) error  { f.data = append(f.data, data...); return nil }
