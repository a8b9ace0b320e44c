package chaos_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/generator/generatortest"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/monoclock/clocktest"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/storetest"
)

// machine runs one process after another with node number 9, each on the cells that the
// one before left. A caller that waits moves its clock.
type machine struct {
	*testing.T
	claim
	kind  generatortest.ClockKind
	clock *clocktest.Virtual
	open  func() (stores.Store, error)

	store  stores.Store
	keeper *lease.Keeper
	gen    *generator.Generator

	issued map[snowflake.ID]bool
	last   snowflake.ID
}

// grant is the length of a grant.
const grant = 3 * time.Second

// onEveryMachine runs a scenario as a subtest for every strategy of the table, on both
// clocks, with the cells in memory and in files.
func onEveryMachine(t *testing.T, scenario func(m *machine)) {
	for name, stores := range map[string]func() (func() (stores.Store, error), error){
		"memory": func() (func() (stores.Store, error), error) {
			cells := storetest.NewMemory()
			return func() (stores.Store, error) { return cells.Client(), nil }, nil
		},
		"directory": inDirectory(t),
	} {
		for _, c := range table {
			for _, kind := range []generatortest.ClockKind{generatortest.Raw, generatortest.Mono} {
				t.Run(name+"/"+c.name+"/"+string(kind), func(t *testing.T) {
					open, err := stores()
					require.NoError(t, err)
					clock := clocktest.NewVirtual(noon)
					clock.AutoAdvance(true)
					m := &machine{T: t, claim: c, kind: kind, clock: clock, open: open, issued: map[snowflake.ID]bool{}}
					m.start()
					scenario(m)
				})
			}
		}
	}
}

// start starts a process.
func (m *machine) start() {
	m.Helper()
	var err error
	m.store, err = m.open()
	require.NoError(m, err)
	m.keeper, err = claimPolled(m.store, m.clock, m.kind, tenth, lease.WithWindow(grant))
	require.NoError(m, err)
	m.gen, err = generator.New(generator.WithLease(m.keeper), generator.WithStrategy(m.strategy))
	require.NoError(m, err)
}

// end closes the process cleanly.
func (m *machine) end() {
	m.Helper()
	require.NoError(m, m.gen.Close())
}

// crash ends it as kill -9 does.
func (m *machine) crash() {
	if files, ok := m.store.(*files); ok {
		files.Crash()
	}
}

// next makes a call, and returns how long it took.
func (m *machine) next() (id snowflake.ID, stall time.Duration, err error) {
	m.Helper()
	began := m.clock.Passed()
	id, err = m.gen.Next()
	if err == nil {
		require.False(m, m.issued[id], "%d twice", id)
		require.Greater(m, id, m.last, "out of order")
		m.issued[id], m.last = true, id
	}
	return id, m.clock.Passed() - began, err
}

// served makes n calls that must succeed at once.
func (m *machine) served(n int) {
	m.Helper()
	for range n {
		_, stall, err := m.next()
		require.NoError(m, err)
		require.Zero(m, stall)
	}
}

// startsAt checks the strategy's promise for a process that has just started, and whose
// first tick is lead ahead of the clock, on any clock.
func (m *machine) startsAt(lead time.Duration) {
	m.Helper()
	floor := m.clock.Wall().Add(lead)
	id, stall, err := m.next()
	if lead > m.bends() {
		assert.ErrorIs(m, err, generator.ErrBehind)
		var behind *generator.LeadError
		if assert.ErrorAs(m, err, &behind) {
			assert.Equal(m, lead, behind.Lead)
		}
		assert.Zero(m, stall, "rejected at once")
	} else {
		assert.NoError(m, err)
		assert.Equal(m, max(0, lead-m.borrow()), stall, "waits until the rest can be borrowed")
		assert.Equal(m, floor, tickOf(m, id).UTC())
	}
	// When the clock reaches the floor, calls are served.
	m.clock.Advance(floor.Sub(m.clock.Wall()) + time.Millisecond)
	m.served(3)
}

// The process is closed, the wall steps back, the process starts again: it continues
// after the last ID, and the strategy decides about the lead.
func TestF11_RestartAfterStepBack_Exact(t *testing.T) {
	for _, step := range []time.Duration{time.Second, time.Hour, 365 * 24 * time.Hour} {
		t.Run(step.String(), func(t *testing.T) {
			onEveryMachine(t, func(m *machine) {
				m.served(5)
				m.end()
				m.clock.Step(-step)
				m.start()
				m.startsAt(step + time.Millisecond)
			})
		})
	}
}

// The process is killed right after a burst: its grant was 3 s from its first tick on,
// and the next process begins after the grant.
func TestF12_CrashAfterBurst_Exact(t *testing.T) {
	for _, step := range []time.Duration{0, 5 * time.Millisecond, time.Second, time.Hour} {
		t.Run(step.String(), func(t *testing.T) {
			onEveryMachine(t, func(m *machine) {
				m.clock.Advance(2 * grant)
				m.keeper.Poll(m.Context()) // which has it extended
				_, limit := m.keeper.Granted()
				require.Equal(m, m.clock.Wall().Add(grant), limit.UTC())
				m.served(16)
				m.crash()
				m.clock.Step(-step)
				m.start()
				m.startsAt(grant + step)
			})
		})
	}
}

// The process stops for longer than its grant, another takes its node number, the first
// wakes up: the ticks of one end where those of the other begin. Calls of the first fail
// at once, also with a strategy that waits.
func TestF13_PauseAndTakeover_Exact(t *testing.T) {
	onEveryMachine(t, func(m *machine) {
		m.served(5)
		_, limit := m.keeper.Granted()
		first := *m
		m.crash() // its locks, as far as there are any; it lives
		m.start()
		var told error
		served := [2]int{}
		for range 2 * grant / (10 * time.Millisecond) {
			if id, stall, err := first.next(); err == nil {
				served[0]++
				require.Less(m, tickOf(m, id), limit)
				require.NoError(m, told, "it had been told")
			} else if none := (*generator.GrantError)(nil); errors.As(err, &none) {
				told = err
				require.Zero(m, stall)
			}
			first.keeper.Poll(m.Context())
			m.last = 0 // of the other, whose IDs may be later than these
			if id, _, err := m.next(); err == nil {
				served[1]++
				require.GreaterOrEqual(m, tickOf(m, id), limit)
			}
			m.keeper.Poll(m.Context())
			m.clock.Advance(10 * time.Millisecond)
		}
		require.Positive(m, served[0])
		require.Positive(m, served[1])
		assert.ErrorIs(m, told, generator.ErrNotGranted)
		assert.ErrorIs(m, told, lease.ErrLost)
		assert.ErrorIs(m, told, lease.ErrHeld)
		assert.EqualValues(m, 1, first.keeper.Stats().Conflicts)
	})
}
