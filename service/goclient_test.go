package service_test

import (
	"context"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	tickflake "github.com/tickflake/tickflake/client"
	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/service"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/storetest"
)

const clientToken = "0123456789abcdef"

// member is a server of a fleet, which can be stopped and started again at its address.
type member struct {
	generator *generator.Generator
	store     stores.Store
	address   string
	stop      func()
}

// begin serves gRPC until stop is called, which drains.
func (m *member) begin(t *testing.T) {
	t.Helper()
	l, err := net.Listen("tcp", m.address)
	require.NoError(t, err)
	m.address = l.Addr().String()
	server, err := service.New(service.Config{
		Generator: m.generator, Store: m.store, GRPC: l, Clients: []service.Client{{Name: "test", Token: clientToken, Sequences: []string{"*"}}},
		Create: []service.Create{{Prefix: "orders"}}, Logger: new(logs).logger(),
	})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- server.Run(ctx) }()
	m.stop = sync.OnceFunc(func() {
		cancel()
		assert.NoError(t, <-ended)
	})
	t.Cleanup(m.stop)
}

// fleet starts servers with one store.
func fleet(t *testing.T, members int) (all []*member, addresses []string) {
	store := storetest.NewMemory()
	for node := range members {
		g, err := generator.New(generator.WithNode(int64(node)))
		require.NoError(t, err)
		t.Cleanup(func() { assert.NoError(t, g.Close()) })
		m := &member{generator: g, store: store, address: "127.0.0.1:0"}
		m.begin(t)
		all, addresses = append(all, m), append(addresses, m.address)
	}
	return all, addresses
}

// TestGoClientRollingRestart restarts two servers, one after the other, under load from the Go
// client: no call fails, no ID or number comes twice, and IDs ascend for each caller.
func TestGoClientRollingRestart(t *testing.T) {
	t.Parallel()
	members, addresses := fleet(t, 2)
	c, err := tickflake.Open(t.Context(), addresses, tickflake.WithToken(clientToken), tickflake.WithLogger(new(logs).logger()))
	require.NoError(t, err)
	defer c.Close()

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var callers sync.WaitGroup
	ids, numbers := make([][]snowflake.ID, 4), make([][]int64, 2)
	for i := range ids {
		callers.Go(func() {
			last := snowflake.ID(0)
			for len(ids[i]) < 1_000_000 && ctx.Err() == nil {
				id, err := c.Next(t.Context())
				if err != nil || id <= last {
					t.Errorf("%d after %d: %v", id, last, err)
					return
				}
				last = id
				ids[i] = append(ids[i], id)
				if len(ids[i])%1000 == 0 {
					time.Sleep(10 * time.Millisecond) // the load, and not a wait for something
				}
			}
		})
	}
	for i := range numbers {
		callers.Go(func() {
			for ctx.Err() == nil {
				first, stride, err := c.Numbers(t.Context(), "orders", 2)
				if err != nil {
					t.Errorf("after %d numbers: %v", len(numbers[i]), err)
					return
				}
				numbers[i] = append(numbers[i], first, first+stride)
			}
		})
	}
	for range 2 {
		for node, m := range members {
			at := c.Stats()
			m.stop()
			require.Eventually(t, func() bool {
				now := c.Stats()
				return t.Failed() || now.Issued > at.Issued+20_000 && now.Numbers > at.Numbers+20
			}, 20*time.Second, time.Millisecond, "the other server serves all")
			m.begin(t)
			// The next server is stopped when this one is ready, as in a rolling restart: a
			// client of its own reaches it.
			ready, err := tickflake.Open(t.Context(), []string{m.address}, tickflake.WithToken(clientToken), tickflake.WithLogger(new(logs).logger()))
			require.NoError(t, err)
			id, err := ready.Next(t.Context())
			require.NoError(t, err)
			d, err := ready.Decode(id)
			require.NoError(t, err)
			assert.Equal(t, int64(node), d.Node)
			require.NoError(t, ready.Close())
		}
	}
	cancel()
	callers.Wait()
	seen := map[snowflake.ID]bool{}
	for _, own := range ids {
		assert.NotEmpty(t, own)
		for _, id := range own {
			if seen[id] {
				t.Fatalf("%d comes twice", id)
			}
			seen[id] = true
		}
	}
	counted := map[int64]bool{}
	for _, own := range numbers {
		assert.NotEmpty(t, own)
		for _, n := range own {
			if counted[n] {
				t.Fatalf("number %d comes twice", n)
			}
			counted[n] = true
		}
	}
	s := c.Stats()
	t.Logf("%d IDs, %d numbers, %d requests, %d failures, %d calls waited for %s", len(seen), len(counted), s.Requests, s.Failures, s.Waits, s.Waited)
}

// TestGoClientErrors meets the refusals of the real server.
func TestGoClientErrors(t *testing.T) {
	t.Parallel()
	members, addresses := fleet(t, 1)
	quiet := tickflake.WithLogger(new(logs).logger())
	_, err := tickflake.Open(t.Context(), addresses, quiet)
	require.ErrorIs(t, err, tickflake.ErrDenied)
	_, err = tickflake.Open(t.Context(), addresses, tickflake.WithToken("fedcba9876543210"), quiet)
	require.ErrorIs(t, err, tickflake.ErrDenied)
	assert.NotContains(t, err.Error(), "fedcba9876543210")

	c, err := tickflake.Open(t.Context(), addresses, tickflake.WithToken(clientToken), tickflake.WithTimeout(300*time.Millisecond), quiet)
	require.NoError(t, err)
	defer c.Close()
	layout := c.Layout()
	assert.Equal(t, snowflake.Default().String(), layout.String())
	ids := make([]snowflake.ID, 50_000)
	require.NoError(t, c.NextN(t.Context(), ids))
	for i := range ids[1:] {
		require.Less(t, ids[i], ids[i+1])
	}
	_, err = c.Number(t.Context(), "invoices")
	require.ErrorIs(t, err, tickflake.ErrNotFound)
	_, err = c.Number(t.Context(), "NO NAME")
	require.ErrorIs(t, err, tickflake.ErrRefused)
	_, _, err = c.Numbers(t.Context(), "orders", 1<<40)
	require.ErrorIs(t, err, tickflake.ErrRefused)
	first, stride, err := c.Numbers(t.Context(), "orders", 3)
	require.NoError(t, err)
	next, err := c.Number(t.Context(), "orders")
	require.NoError(t, err)
	assert.Equal(t, first+3*stride, next)

	members[0].stop()
	require.NoError(t, c.Restored(t.Context())) // drops the IDs at hand
	_, err = c.Next(t.Context())
	require.ErrorIs(t, err, tickflake.ErrUnavailable)
	_, err = c.Number(t.Context(), "orders")
	require.ErrorIs(t, err, tickflake.ErrUnavailable)
	members[0].begin(t)
	assert.Eventually(t, func() bool { _, err := c.Next(t.Context()); return err == nil }, 10*time.Second, 10*time.Millisecond)
}
