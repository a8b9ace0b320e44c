package leasetest

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/snowflake"
)

// testFleet has several processes, as far as the store can tell, claim node numbers
// in the same moment, and issue IDs until each has extended its grant a few times, in
// real time. Two are closed and replaced meanwhile.
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
func live(ctx context.Context, store lease.Store, extensions uint64) (ids []snowflake.ID, err error) {
	// The window is short, and the store may be busy: whoever comes to the end of a
	// grant waits, since its context has a deadline.
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
