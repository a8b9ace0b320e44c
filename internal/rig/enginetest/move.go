package enginetest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/internal/rig"
	"github.com/tickflake/tickflake/internal/rig/servers"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/sequence"
	"github.com/tickflake/tickflake/stores"
)

var moveSequences = map[string]sequence.Definition{
	"orders":   {Start: 1, MinStep: 5, MaxStep: 50},
	"invoices": {Start: 7, Mode: sequence.Ordered, Stride: sequence.Every(3, 1)},
}

// TestMoves moves a fleet and two sequences between a server and a directory while processes issue IDs from
// both, with clocks that step back. No ID and no number is issued twice.
func TestMoves(t *testing.T, s *servers.Server) {
	at := func(namespace string) func() stores.Store {
		return func() stores.Store { return Open(t, s.At(s.Addr, "namespace="+namespace)) }
	}
	in := func(path string) func() stores.Store { return func() stores.Store { return Open(t, path) } }
	here, away := t.TempDir(), t.TempDir()
	for name, stores := range map[string][2]func() stores.Store{"moved here": {in(here), at("here")}, "moved away": {at("away"), in(away)}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testMove(t, stores[0], stores[1])
		})
	}
}

// testMove moves between stores, each process with one of its own.
func testMove(t *testing.T, from, to func() stores.Store) {
	const processes, enough = 3, 30
	var ids rig.Ledger
	start := func(open func() stores.Store, offset time.Duration) *Fleet {
		return StartFleet(t, FleetConfig{Processes: processes, Window: time.Second, Timeout: 5 * time.Second, Offset: offset, IDs: &ids,
			Open: func(context.Context) (stores.Store, error) { return open(), nil }})
	}
	ctx, admin, target := t.Context(), from(), to()
	began, old := time.Now(), start(from, 0)
	old.Step(-time.Minute, 0)
	old.WaitIssued(t, enough)
	issued := map[string]*rig.Ledger{}
	take := func(store stores.Store, name string) *sequence.Sequence {
		s, err := sequence.Open(ctx, store, name, sequence.WithDefinition(moveSequences[name]), sequence.WithLogger(slog.New(slog.DiscardHandler)))
		require.NoError(t, err)
		t.Cleanup(func() { _ = s.Close() }) // it may have moved
		for range enough {
			n, err := s.Next(Within(t))
			require.NoError(t, err)
			issued[name].Add(name, 0, 0, n)
		}
		return s
	}
	before := map[string]*sequence.Sequence{}
	for name := range moveSequences {
		issued[name] = new(rig.Ledger)
		before[name] = take(admin, name)
	}

	var floors lease.Floors
	Until(t, func(ctx context.Context) (err error) { // it may lose its races with the fleet
		floors, err = lease.Export(ctx, admin, "the new store", lease.EvenIfRunning())
		return err
	})
	require.Len(t, floors.Nodes, processes)
	for name := range moveSequences {
		floor, err := sequence.Export(ctx, admin, name, "the new store")
		require.NoError(t, err)
		require.NoError(t, sequence.Import(ctx, target, floor))
	}
	require.NoError(t, lease.Import(ctx, target, floors))
	young := start(to, time.Until(began)) // with clocks at the IDs of before
	young.WaitRecovered(t, "moved")
	for name, s := range before {
		take(to(), name)
		Until(t, func(ctx context.Context) error { // it has numbers of before
			n, err := s.Next(ctx)
			if err == nil {
				issued[name].Add(name+", in the old store", 0, 0, n)
			}
			if errors.Is(err, sequence.ErrMoved) {
				return nil
			}
			return fmt.Errorf("%s goes on in the old store: %d, %w", name, n, err)
		})
	}
	old.WaitFailed(t, lease.ErrMoved, processes)
	old.Check(t)
	young.Check(t)
	for _, numbers := range issued {
		_, example := numbers.Twice()
		assert.Empty(t, example, "issued twice")
	}
}
