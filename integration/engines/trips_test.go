package engines

import (
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/integration/servers"
	"github.com/tickflake/tickflake/stores"
)

// counted is a way to a server that counts round trips: what a connection sends when it was answered before.
func counted(t testing.TB, server string) (addr string, n *atomic.Int64) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	n = new(atomic.Int64)
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			back, err := net.Dial("tcp", server)
			if !assert.NoError(t, err) {
				return
			}
			answered := new(atomic.Bool)
			answered.Store(true)
			pass := func(from, to net.Conn, each func()) {
				defer func() { _, _ = from.Close(), to.Close() }()
				for buffer := make([]byte, 1<<16); ; {
					read, err := from.Read(buffer)
					if err != nil {
						return
					}
					each()
					if _, err := to.Write(buffer[:read]); err != nil {
						return
					}
				}
			}
			go pass(client, back, func() {
				if answered.Swap(false) {
					n.Add(1)
				}
			})
			go pass(back, client, func() { answered.Store(true) })
		}
	}()
	return listener.Addr().String(), n
}

// testTrips counts the round trips of each call of a store that has no cell yet.
func testTrips(t *testing.T, server *servers.Server, want map[string]int64, options ...string) {
	addr, n := counted(t, server.Addr)
	s := Open(t, server.At(addr, append(options, "namespace=trips")...))
	_ = Promises(t, s) // a client of Redis has another connection for this
	took := func(what string, call func() error) {
		t.Helper()
		before := n.Load()
		require.NoError(t, call(), what)
		assert.Equal(t, want[what], n.Load()-before, "round trips of %s", what)
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
