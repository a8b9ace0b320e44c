package engines

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/integration/servers"
	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/storetest"
)

// testTrips counts the round trips of each call of a store that has no cell yet.
func testTrips(t *testing.T, server *servers.Server, want map[string]int, options ...string) {
	proxy := storetest.NewProxy(t, server.Addr)
	s := Open(t, server.At(proxy.Addr(), append(options, "namespace=trips")...))
	_ = Promises(t, s) // a client of Redis has another connection for this
	took := func(what string, call func() error) {
		t.Helper()
		proxy.Hold(storetest.ToServer)
		defer proxy.Resume()
		done, n := make(chan error, 1), 0
		go func() { done <- call() }()
		for {
			select {
			case err := <-done:
				require.NoError(t, err, what)
				assert.Equal(t, want[what], n, "round trips of %s", what)
				return
			default:
			}
			if proxy.Held(storetest.ToServer, time.Millisecond) {
				proxy.Pass(storetest.ToServer)
				n++
			}
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
