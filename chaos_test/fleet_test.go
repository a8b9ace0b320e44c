package chaos_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/generator/generatortest"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/lease/leasetest"
	"github.com/tickflake/tickflake/monoclock/clocktest"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/storetest"
)

// TestF14_SkewedFleet has six processes on clocks that may be hours off. They claim
// eight node numbers, issue, stop, step, die and start again. No ID is issued twice,
// however they take each other's numbers; and once their clocks are right, all of them
// work. The lease draws among free cells at random, so a run cannot be repeated
// exactly.
//
// Clocks are off by whole hours, and move by a fiftieth of a second. So a process that
// wrongly starts in a used time meets exactly the used ticks.
func TestF14_SkewedFleet(t *testing.T) {
	for _, c := range table {
		t.Run(c.name, func(t *testing.T) {
			t.Run("memory", func(t *testing.T) {
				f := newFleet(t, c, func(m *storetest.Memory) stores.Store { return m })
				f.churn(rounds())
				for more := 0; more < 9 && f.conflicts == 0; more++ { // it may be drawn in few rounds that nobody's is taken
					f.churn(rounds())
				}
				assert.Positive(t, f.conflicts, "no fast clock ever took the node number of a slow one")
				f.settle()
			})
			// On one host, a lock tells whether a holder lives, so no process takes a number from a live one.
			t.Run("locks", func(t *testing.T) {
				f := newFleet(t, c, func(m *storetest.Memory) stores.Store { return m.Locking() })
				f.churn(rounds())
				assert.Zero(t, f.conflicts)
				f.settle()
			})
		})
	}
}

// rounds is how many rounds find a mutant nearly every time. The processes take turns,
// so the race detector has little to see.
func rounds() int {
	if raceDetector {
		return 500
	}
	return 3000
}

// fleet is some processes and their IDs.
type fleet struct {
	*testing.T
	claim
	cells  *storetest.Memory
	locked func(*storetest.Memory) stores.Store
	random *rand.Rand
	crew   []*member

	issued            map[snowflake.ID]bool
	conflicts, claims uint64
	refused, rejected int
}

// member is a process on a machine of its own, or, without a keeper, the machine.
type member struct {
	clock  *clocktest.Virtual
	store  *storetest.Memory
	keeper *lease.Keeper
	gen    *generator.Generator
	last   snowflake.ID
	still  int // for so many rounds it stands still
}

const fleetNodes = 3 // bits

func fleetLayout() snowflake.Layout {
	l := layout()
	l.NodeBits = fleetNodes
	return l
}

func newFleet(t *testing.T, c claim, locked func(*storetest.Memory) stores.Store) *fleet {
	f := &fleet{T: t, claim: c, cells: storetest.NewMemory(), locked: locked, random: rand.New(rand.NewPCG(14, 14)), issued: map[snowflake.ID]bool{}}
	for range 6 {
		clock := clocktest.NewVirtual(noon.Add(f.hours()))
		clock.AutoAdvance(true)
		f.crew = append(f.crew, &member{clock: clock, store: f.cells.Client()})
	}
	return f
}

// each is the time between two IDs of a process.
const each = 20 * time.Millisecond

// hours is how far a clock is off.
func (f *fleet) hours() time.Duration {
	return time.Duration(f.random.IntN(7)-3) * time.Hour
}

// churn does one random thing in each round.
func (f *fleet) churn(rounds int) {
	for range rounds {
		passes := time.Duration(f.random.IntN(500)) * each
		for _, m := range f.crew {
			m.clock.Advance(passes)
		}
		m := f.crew[f.random.IntN(len(f.crew))]
		if m.keeper == nil {
			f.start(m)
			continue
		}
		if m.still--; m.still > 0 {
			continue
		}
		switch f.random.IntN(20) {
		case 0: // killed
			m.store.Crash()
			f.over(m)
		case 1:
			require.NoError(f, m.gen.Close())
			f.over(m)
		case 2:
			m.clock.Step(f.hours())
		case 3: // for longer than its grant
			m.still = f.random.IntN(8)
		default:
			f.issue(m, 1+f.random.IntN(100))
		}
	}
	f.Logf("%d IDs, %d claims, %d conflicts, no free node number %d times, %d calls failed", len(f.issued), f.claims, f.conflicts, f.refused, f.rejected)
	require.Greater(f, len(f.issued), 1000)
	require.Greater(f, f.claims, uint64(20))
}

// start starts a process on a clock of any kind.
func (f *fleet) start(m *member) {
	kind := generatortest.ClockKinds[f.random.IntN(len(generatortest.ClockKinds))]
	ctx := f.Context()
	if f.random.IntN(8) == 0 { // it waits for one, by its own clock: so long that it takes a living one's
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Minute)
		defer cancel()
	}
	polled := &leasetest.PolledClock{Virtual: m.clock}
	keeper, err := lease.Claim(ctx, f.locked(m.store), lease.WithClock(kind.Of(polled)), lease.WithLayout(fleetLayout()), lease.WithWindow(15*time.Second), lease.WithPolling(), silent)
	if err != nil {
		f.refused++
		require.ErrorAs(f, err, new(*lease.NoFreeNodeError))
		return
	}
	polled.Keep(keeper)
	m.keeper, m.last, m.still = keeper, 0, 0
	m.gen, err = generator.New(generator.WithLease(keeper), generator.WithStrategy(f.strategy))
	require.NoError(f, err)
}

// over counts the IDs of a process that has ended.
func (f *fleet) over(m *member) {
	s := m.keeper.Stats()
	f.conflicts += s.Conflicts
	f.claims += s.Claims
	m.keeper, m.gen = nil, nil
}

// issue lets a process make n calls, and its keeper do its work.
func (f *fleet) issue(m *member, n int) {
	m.keeper.Poll(f.Context())
	for range n {
		m.clock.Advance(each)
		id, err := m.gen.Next()
		if err != nil {
			f.rejected++
			var none *generator.GrantError
			var lead *generator.LeadError
			require.True(f, errors.As(err, &none) || errors.As(err, &lead), err)
			continue
		}
		require.False(f, f.issued[id], "%d twice", id)
		require.Greater(f, id, m.last, "out of order")
		f.issued[id], m.last = true, id
	}
	m.keeper.Poll(f.Context())
}

// settle sets all clocks right, past all grants so far, and lets three windows pass:
// two until the numbers of dead processes count as free, and one to claim.
func (f *fleet) settle() {
	latest := noon
	for node := range int64(1 << fleetNodes) {
		if h, err := lease.InspectNode(f.Context(), f.cells, node); err == nil && h.Limit.After(latest) {
			latest = h.Limit
		}
	}
	for _, m := range f.crew {
		m.clock.Step(latest.Sub(m.clock.Wall()))
		if m.keeper != nil { // a monoclock has not noticed
			m.store.Crash()
			f.over(m)
		}
	}
	for range 45 {
		for _, m := range f.crew {
			m.clock.Advance(time.Second)
			if m.keeper == nil {
				f.start(m)
			} else {
				m.keeper.Poll(f.Context())
			}
		}
	}
	f.rejected = 0
	for range 100 {
		for _, m := range f.crew {
			require.NotNil(f, m.keeper, "no node number")
			f.issue(m, 1)
			m.clock.Advance(time.Second)
		}
	}
	assert.Zero(f, f.rejected, "a call failed though all is well")
}
