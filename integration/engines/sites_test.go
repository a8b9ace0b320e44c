package engines

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/integration/fleet"
	"github.com/tickflake/tickflake/integration/servers"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/stores"
)

// testSites has a server and a directory as sites of one layout, with processes that are killed and clocks that step, and
// then moves the site of the server to another namespace while its processes run. No ID is issued twice, and none with
// another site's number.
func testSites(t *testing.T, s *servers.Server) {
	var ids fleet.Ledger
	layout := snowflake.Default()
	layout.NodeBits = 3
	start := func(url string, from int64, offset time.Duration) *fleet.Fleet {
		// With a shorter window, the extensions alone are all that a slow disk can write.
		return fleet.For(t, fleet.Config{Keepers: 3, Rate: 400, IDs: &ids, Keeper: fleet.KeeperConfig{Window: 3 * time.Second, Timeout: 10 * time.Second, Offset: offset, From: from, To: from + 3,
			Open: func(ctx context.Context) (stores.Store, error) { return stores.Open(ctx, url) }}})
	}
	here, there, next := s.At(s.Addr, "namespace=here"), t.TempDir(), s.At(s.Addr, "namespace=next")
	for from, url := range map[int64]string{0: here, 4: there} {
		require.NoError(t, lease.SetFleet(Within(t), Open(t, url), lease.Fleet{Layout: layout, From: from, To: from + 3}))
	}
	began := time.Now()
	old, other := start(here, 0, 0), start(there, 4, 0)
	for _, f := range []*fleet.Fleet{old, other} {
		f.Step(-time.Minute, 0)
		f.Step(time.Minute, 2)
		require.NoError(t, f.More(Within(t), 30))
		f.Step(-time.Minute, 2)
		f.Crash(2) // which leaves a number far ahead of the clock, and uses the one that is left
		require.NoError(t, f.More(Within(t), 30))
	}

	admin, away := Open(t, here), Open(t, next)
	var moving lease.Fleet
	for _, step := range []func(ctx context.Context, from, to stores.Store) error{
		func(ctx context.Context, from, _ stores.Store) (err error) {
			moving, err = lease.EndFleet(ctx, from, 0, 3, "the next store")
			return err
		},
		func(ctx context.Context, _, to stores.Store) error { return lease.SetFleet(ctx, to, moving) },
	} {
		for calls := 0; ; calls++ {
			left := calls
			ctx, kill := context.WithCancelCause(Within(t))
			err := step(ctx, &killed{admin, &left, kill}, &killed{away, &left, kill})
			kill(nil)
			if err == nil {
				require.Greater(t, calls, 1)
				break
			}
			require.True(t, errors.Is(err, errKilled) || stores.KindOf(err).Retryable(), err)
		}
	}
	require.NotEmpty(t, moving.Later)
	young := start(next, 0, time.Until(began)) // with clocks at the IDs of before
	Recovered(t, young, "moved")
	require.NoError(t, old.Failed(Within(t), "moved", 3))
	for _, f := range []*fleet.Fleet{old, other, young} {
		f.Verify(t)
	}
}

var errKilled = errors.New("the command was killed")

// killed kills a command in the middle of a call, after some others.
type killed struct {
	stores.Store
	left *int
	kill context.CancelCauseFunc
}

func (k *killed) die() error {
	if *k.left--; *k.left < 0 {
		k.kill(errKilled)
		return errKilled
	}
	return nil
}

func (k *killed) List(ctx context.Context, from, to string, limit int) ([]stores.Cell, error) {
	cells, err := k.Store.List(ctx, from, to, limit)
	return cells, errors.Join(k.die(), err)
}

func (k *killed) Read(ctx context.Context, key string) (stores.Cell, error) {
	cell, err := k.Store.Read(ctx, key)
	return cell, errors.Join(k.die(), err)
}

func (k *killed) Swap(ctx context.Context, key string, version uint64, value []byte) (uint64, error) {
	version, err := k.Store.Swap(ctx, key, version, value)
	return version, errors.Join(k.die(), err)
}
