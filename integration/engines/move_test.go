package engines

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/integration/fleet"
	"github.com/tickflake/tickflake/integration/servers"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/stores"
)

// testMoves moves a fleet between a server and a directory while processes issue IDs from both, with clocks that
// step back. No ID is issued twice. A sequence needs Read and Swap alone, so its moves are proved on memory.
func testMoves(t *testing.T, s *servers.Server) {
	here, away := t.TempDir(), t.TempDir()
	for name, urls := range map[string][2]string{
		"moved here": {here, s.At(s.Addr, "namespace=here")},
		"moved away": {s.At(s.Addr, "namespace=away"), away},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testMove(t, urls[0], urls[1])
		})
	}
}

// testMove moves between the stores of two URLs.
func testMove(t *testing.T, from, to string) {
	const processes = 3
	var ids fleet.Ledger
	start := func(url string, offset time.Duration) *Fleet {
		// With a shorter window, the extensions alone are all that a slow disk can write.
		return StartFleet(t, FleetConfig{Processes: processes, Window: 3 * time.Second, Timeout: 10 * time.Second, Offset: offset, IDs: &ids,
			Open: func(ctx context.Context) (stores.Store, error) { return stores.Open(ctx, url) }})
	}
	admin := Open(t, from)
	began, old := time.Now(), start(from, 0)
	old.Step(-time.Minute, 0)
	old.WaitIssued(t, 30)
	// Each may be called again, as it may lose its races with the fleet, and a disk may be slow.
	again := func(step func(context.Context) error) {
		Until(t, func(ctx context.Context) error {
			err := step(ctx)
			require.True(t, stores.KindOf(err).Retryable(), err)
			return err
		})
	}
	var floors lease.Floors
	again(func(ctx context.Context) (err error) {
		floors, err = lease.Export(ctx, admin, "the new store", lease.EvenIfRunning())
		return err
	})
	require.Len(t, floors.Nodes, processes)
	next := Open(t, to)
	again(func(ctx context.Context) error { return lease.Import(ctx, next, floors) })
	young := start(to, time.Until(began)) // with clocks at the IDs of before
	young.WaitRecovered(t, "moved")
	old.WaitFailed(t, lease.ErrMoved, processes)
	old.Check(t)
	young.Check(t)
}
