package enginetest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/monoclock/clocktest"
	"github.com/tickflake/tickflake/sequence"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/strategies"
)

// Move moves a fleet and two sequences from one store to another while processes issue IDs and
// numbers from both, with clocks that step back. From and To return a store of their own for
// each process.
type Move struct {
	From, To func() stores.Store
	Imported func() // is called after the imports, unless nil
}

// moved records all IDs and numbers of a move.
type moved struct {
	mu     sync.Mutex
	issued map[string]string // by whom
	twice  []string
	count  map[string]int // by process
}

func (m *moved) add(what, by string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if first, ok := m.issued[what]; ok {
		m.twice = append(m.twice, fmt.Sprintf("%s by %s and %s", what, first, by))
	}
	m.issued[what] = by
	m.count[by]++
}

// reach waits until a process has issued so many.
func (m *moved) reach(t testing.TB, n int, by ...string) {
	require.Eventually(t, func() bool {
		m.mu.Lock()
		defer m.mu.Unlock()
		for _, name := range by {
			if m.count[name] < n {
				return false
			}
		}
		return true
	}, time.Minute, time.Millisecond)
}

// enough reports whether a process has issued all that it needs. Those of the first store go
// on until their calls fail.
func (m *moved) enough(by string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return strings.Contains(by, "of store 1") && m.count[by] >= moveEnough
}

const (
	moveNodes   = 2  // bits, so that the new processes have the numbers of the old ones
	moveEnough  = 30 // IDs, and numbers of each sequence, of each process
	moveOfEach  = 3  // processes of the old store, and of the new one
	moveBackMax = 2 * time.Minute
)

var moveSequences = map[string]sequence.Definition{
	"orders":   {Start: 1, MinStep: 5, MaxStep: 50},
	"invoices": {Start: 7, Mode: sequence.Ordered, Stride: sequence.Every(3, 1)},
}

// Run makes the move, and returns the IDs and numbers that were issued twice.
func (m Move) Run(t testing.TB) []string {
	all := &moved{issued: map[string]string{}, count: map[string]int{}}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	begin := time.Date(2029, 6, 1, 12, 0, 0, 0, time.UTC)
	admin, target := m.From(), m.To()
	opened := []stores.Store{admin, target}
	for name, d := range moveSequences {
		require.NoError(t, sequence.Create(ctx, admin, name, d))
	}
	var old, young sync.WaitGroup
	var names [2][]string // of the processes that issue
	start := func(group *sync.WaitGroup, generation int, open func() stores.Store, clockAt time.Time) {
		for i := range moveOfEach {
			by, store := fmt.Sprintf("process %d of store %d", i, generation), open()
			opened = append(opened, store)
			clock := clocktest.NewVirtual(clockAt)
			random := rand.New(rand.NewPCG(uint64(generation), uint64(i)))
			names[generation] = append(names[generation], by)
			group.Go(func() { all.ids(t, ctx, store, clock, random, by) })
			for name, d := range moveSequences {
				by := by + " " + name
				names[generation] = append(names[generation], by)
				group.Go(func() { all.numbers(t, ctx, store, name, d, by) })
			}
		}
	}
	start(&old, 0, m.From, begin)
	all.reach(t, moveEnough, names[0]...)

	// Each step twice, and the export by two operators at once. One that loses every race says to
	// export again.
	export := func() (f lease.Floors, err error) {
		for range 100 {
			if f, err = lease.Export(ctx, admin, "the new store", lease.EvenIfRunning()); err == nil || !stores.KindOf(err).Retryable() {
				break
			}
		}
		return f, err
	}
	again := make(chan lease.Floors)
	go func() {
		f, err := export()
		assert.NoError(t, err)
		again <- f
	}()
	floors, err := export()
	require.NoError(t, err)
	require.Equal(t, floors, <-again)
	require.Len(t, floors.Nodes, moveOfEach)
	for range 2 {
		require.NoError(t, lease.Import(ctx, target, floors))
	}
	for name := range moveSequences {
		floor, err := sequence.Export(ctx, admin, name, "the new store")
		require.NoError(t, err)
		repeated, err := sequence.Export(ctx, admin, name, "another store")
		require.NoError(t, err)
		require.Equal(t, floor, repeated)
		for range 2 {
			require.NoError(t, sequence.Import(ctx, target, floor))
		}
	}
	if m.Imported != nil {
		m.Imported()
	}
	start(&young, 1, m.To, begin) // with clocks behind all that was issued
	young.Wait()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		old.Wait() // each ends with ErrMoved
	}()
	select {
	case <-ended:
	case <-time.After(20 * time.Second):
		t.Errorf("processes of the old store are still granted IDs or numbers")
	}
	cancel()
	<-ended
	for _, store := range opened {
		assert.NoError(t, store.Close())
	}
	return all.twice
}

// ids issues IDs on a clock that runs, and sometimes steps back, until the fleet has moved.
func (m *moved) ids(t testing.TB, ctx context.Context, store stores.Store, clock *clocktest.Virtual, random *rand.Rand, by string) {
	layout := snowflake.Default()
	layout.NodeBits, layout.Name, layout.Parts = moveNodes, "", nil
	var keeper *lease.Keeper
	for keeper == nil && ctx.Err() == nil {
		k, err := lease.Claim(ctx, store, lease.WithLayout(layout), lease.WithClock(clock), lease.WithPolling(),
			lease.WithWindow(500*time.Millisecond), lease.WithLogger(slog.New(slog.DiscardHandler)))
		var full *lease.NoFreeNodeError
		switch {
		case err == nil:
			keeper = k
		case errors.As(err, &full): // the clock is behind the floors
			clock.Advance(100 * time.Millisecond)
		case ctx.Err() == nil && !errors.Is(err, stores.ErrConflict):
			assert.NoError(t, err, by)
			return
		}
	}
	if keeper == nil {
		return
	}
	defer keeper.Close()
	gen, err := generator.New(generator.WithLease(keeper), generator.WithStrategy(strategies.BorrowUpTo(time.Hour)))
	if !assert.NoError(t, err) {
		return
	}
	for back := time.Duration(0); ctx.Err() == nil && !m.enough(by); {
		clock.Advance(time.Millisecond)
		if random.IntN(50) == 0 { // back, and later forth again, or each tick would last for 4096 IDs
			clock.Step(back)
			if back > 0 {
				back = 0
			} else {
				back = time.Duration(random.Int64N(int64(moveBackMax)))
				clock.Step(-back)
			}
		}
		keeper.Poll(ctx)
		id, err := gen.Next()
		switch {
		case err == nil:
			m.add("ID "+id.String(), by)
		case errors.Is(keeper.Err(), lease.ErrMoved):
			return
		}
	}
}

// numbers issues numbers of a sequence until it has moved.
func (m *moved) numbers(t testing.TB, ctx context.Context, store stores.Store, name string, d sequence.Definition, by string) {
	s, err := sequence.Open(ctx, store, name, sequence.WithDefinition(d), sequence.WithLogger(slog.New(slog.DiscardHandler)))
	if errors.Is(err, sequence.ErrMoved) {
		return
	}
	if !assert.NoError(t, err, by) {
		return
	}
	defer s.Close()
	for ctx.Err() == nil && !m.enough(by) {
		n, err := s.Next(ctx)
		switch {
		case err == nil:
			m.add(fmt.Sprintf("number %d of %s", n, name), by)
		case errors.Is(err, sequence.ErrMoved):
			return
		case ctx.Err() == nil && !errors.Is(err, sequence.ErrTimeout):
			assert.NoError(t, err, by)
		}
	}
}
