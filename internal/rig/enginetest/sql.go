package enginetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/internal/rig/servers"
	"github.com/tickflake/tickflake/stores"
)

// TestMadeOnDemand checks that nothing but a write makes the table, and that many may make it at
// once. exists reports whether it is there.
func TestMadeOnDemand(t *testing.T, open func(testing.TB) stores.Store, exists func() bool) {
	all := make([]stores.Store, 8)
	for i := range all {
		all[i] = open(t)
		cells, err := all[i].List(Within(t), "", "\x7f", 1<<30)
		require.NoError(t, err)
		assert.Empty(t, cells)
		cell, err := all[i].Read(Within(t), "node/0000005")
		require.NoError(t, err)
		assert.Equal(t, stores.Cell{Key: "node/0000005"}, cell)
		_, err = all[i].Swap(Within(t), "node/0000005", 7, nil)
		require.ErrorIs(t, err, stores.ErrConflict)
	}
	assert.False(t, exists(), "nothing but a write makes the table")
	var writing sync.WaitGroup
	errs := make([]error, len(all))
	for i, store := range all {
		writing.Go(func() { _, errs[i] = store.Swap(Within(t), fmt.Sprintf("node/%07d", i), 0, []byte("v")) })
	}
	writing.Wait()
	require.NoError(t, errors.Join(errs...))
	cells, err := all[0].List(Within(t), "", "\x7f", 1<<30)
	require.NoError(t, err)
	assert.Len(t, cells, len(all))
}

// TestTrips counts the round trips of a store on one connection, which [Trips] counts in n. want
// has those of each call; nil wants none in particular, but that the calls succeed.
func TestTrips(t *testing.T, s stores.Store, n *atomic.Int64, want map[string]int64) {
	took := func(what string, call func() error) {
		t.Helper()
		before := n.Load()
		require.NoError(t, call(), what)
		if want != nil {
			assert.Equal(t, want[what], n.Load()-before, "round trips of %s", what)
		}
	}
	cell, err := s.Read(Within(t), "node/0000001")
	require.NoError(t, err)
	swap := func() (err error) {
		cell.Version, err = s.Swap(Within(t), cell.Key, cell.Version, []byte("v"))
		return err
	}
	conflict := func() error {
		if _, err := s.Swap(Within(t), cell.Key, 1, nil); !errors.Is(err, stores.ErrConflict) {
			return fmt.Errorf("want a conflict: %w", err)
		}
		return nil
	}
	took("first Swap", swap)
	for range 2 {
		took("Swap", swap)
		took("conflict", conflict)
		took("Read", func() error { _, err := s.Read(Within(t), cell.Key); return err })
		took("List", func() error { _, err := s.List(Within(t), "", "\x7f", 1<<30); return err })
		took("Durability", func() error { _, err := stores.CheckDurability(Within(t), s); return err })
	}
}

// TestDenied checks that a URL whose user, password or settings the server does not take is an
// error with a text, which shows no part of the password. All but "TLS" are refusals, and final.
func TestDenied(t *testing.T, s *servers.Server, urls map[string]string) {
	for url, want := range urls {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		if want == "TLS" { // which a later try may have
			ctx, cancel = context.WithTimeout(t.Context(), time.Second)
		}
		_, err := stores.Open(ctx, url)
		require.ErrorContains(t, err, want)
		if want != "TLS" {
			assert.ErrorIs(t, err, stores.Refused, want)
			assert.NoError(t, ctx.Err(), "it is not waited out")
		}
		cancel()
		text := fmt.Sprintf("%v %+v %q", err, err, err)
		for _, part := range []string{s.Password, strings.Split(s.Password, "/")[0][2:], "wr0ng", "%3A%3F"} {
			assert.NotContains(t, text, part)
		}
	}
}
