//go:build unix

package main

import (
	"fmt"
	"net/http"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/examples/internal/etcdserver"
	"github.com/tickflake/tickflake/examples/internal/exampletest"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/stores"
)

// When etcd is away for too long, the service says that it is not ready, refuses
// requests, and is not to be restarted; when etcd is back, it goes on by itself.
func TestEtcdAway(t *testing.T) {
	t.Parallel()
	server, err := etcdserver.New(t.TempDir())
	require.NoError(t, err)
	defer server.Stop()
	p := start(t, exampletest.Build(t, "./httpservice"), "--store", server.URL(), "--window", "2s", "--request-timeout", "2s")
	before := p.ids(t, 5)

	server.Stop()
	becomes := func(want int) {
		exampletest.Until(t, func() error {
			status, _, a := p.do(t, "GET", "/readyz", "")
			if status != want {
				return fmt.Errorf("/readyz answers %d: %+v", status, a)
			}
			return nil
		})
	}
	becomes(http.StatusServiceUnavailable)
	status, header, a := p.do(t, "POST", "/id", "")
	assert.Equal(t, http.StatusServiceUnavailable, status)
	assert.Equal(t, "1", header.Get("Retry-After"))
	assert.Equal(t, "the store of node numbers has granted no time", a.Error)
	status, _, _ = p.do(t, "GET", "/livez", "")
	assert.Equal(t, http.StatusOK, status)

	require.NoError(t, server.Start())
	becomes(http.StatusOK)
	assert.Greater(t, p.ids(t, 5)[0], before[4])
	p.Signal(os.Interrupt)
	assert.Equal(t, 0, p.Wait())
	store, err := stores.Open(t.Context(), server.URL())
	require.NoError(t, err)
	defer store.Close() //nolint:errcheck // the test is over
	held, err := lease.Inspect(t.Context(), store)
	require.NoError(t, err)
	require.NotEmpty(t, held)
	for _, h := range held {
		assert.Equal(t, lease.Released, h.State, "node %d", h.Node)
	}
}
