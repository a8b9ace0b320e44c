package leasetest

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"slices"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/stores"
)

// patience bounds an operation on a store without faults.
const patience = 30 * time.Second

// An opener returns an independent client of the cells of a namespace.
type opener = func(t testing.TB, namespace string) stores.Store

// TestKeepers tests generators on a store: it restarts them, in virtual time,
// with the wall clock stepped back by up to a year; and it runs several processes beside
// each other, in real time. It has the arguments of storetest.TestStore.
func TestKeepers(t *testing.T, open func(t testing.TB, namespace string) stores.Store) {
	t.Run("restart", func(t *testing.T) { testRestart(t, open) })
	t.Run("fleet", func(t *testing.T) { testFleet(t, open) })
}

// fresh returns the name of a namespace that no other test uses.
func fresh() string { return "t" + rand.Text()[:12] }

// testFleet simulates several processes. They claim node numbers at the same moment, and
// issue IDs until each has extended its grant a few times, in real time. Then each is
// closed and replaced once.
func testFleet(t *testing.T, open opener) {
	const members, lives, extensions = 4, 2, 2
	name := fresh()
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	issued := make([][]snowflake.ID, members)
	var group errgroup.Group
	for member := range members {
		store := open(t, name)
		group.Go(func() error {
			for range lives {
				ids, err := live(ctx, store, extensions)
				if err != nil {
					return err
				}
				issued[member] = append(issued[member], ids...)
			}
			return nil
		})
	}
	must(t, group.Wait())
	all := slices.Concat(issued...)
	slices.Sort(all)
	if n := len(slices.Compact(slices.Clone(all))); n != len(all) {
		t.Errorf("%d of %d IDs were issued more than once", len(all)-n, len(all))
	}
}

// live is one process from its start to its end.
func live(ctx context.Context, store stores.Store, extensions uint64) (ids []snowflake.ID, err error) {
	// The window is short, and the store may be busy: at the end of a grant, a call
	// waits, since its context has a deadline.
	keeper, err := lease.Claim(ctx, store, lease.WithWindow(500*time.Millisecond), lease.WithTimeout(patience),
		lease.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		return nil, err
	}
	gen, err := generator.New(generator.WithLease(keeper))
	if err != nil {
		return nil, errors.Join(err, keeper.Close())
	}
	defer func() { err = errors.Join(err, gen.Close()) }()
	for keeper.Stats().Extensions < extensions {
		var batch [64]snowflake.ID
		n, err := gen.NextNContext(ctx, batch[:])
		ids = append(ids, batch[:n]...)
		if err != nil {
			return nil, err
		}
	}
	return ids, nil
}
