//go:build unix

package main

import (
	"errors"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/examples/internal/etcdserver"
	"github.com/tickflake/tickflake/examples/internal/exampletest"
	"github.com/tickflake/tickflake/snowflake"
)

// A worker waits while etcd is away, for longer than its grant lasts, and goes on when
// it is back.
func TestMain(m *testing.M) { exampletest.Main(m) }

func TestEtcdAway(t *testing.T) {
	server, err := etcdserver.New(t.TempDir())
	require.NoError(t, err)
	defer server.Stop()
	worker := exampletest.Start(t, exampletest.Build(t, "./fleet/worker"), "--store", server.URL(), "--window", "6s")
	worker.Await("lease: claimed")
	server.Stop()
	end, err := time.Parse(time.RFC3339, worker.Await(`not extended yet .*"good until"=(\S+)`)[1])
	require.NoError(t, err)
	exampletest.Until(t, func() error { // which is longer than other strategies would wait
		if time.Since(end) < 3*time.Second {
			return errors.New("the grant still lasts")
		}
		return nil
	})
	require.False(t, worker.Ended())
	before := worker.Stdout()
	require.NoError(t, server.Start())
	exampletest.Until(t, func() error {
		if worker.Stdout() == before {
			return errors.New("no ID has come since etcd was away")
		}
		return nil
	})
	worker.Signal(syscall.SIGTERM)
	assert.Equal(t, 0, worker.Wait())

	last := snowflake.ID(0)
	for line := range strings.Lines(worker.Stdout()) {
		id, err := snowflake.Parse(strings.TrimSpace(line))
		require.NoError(t, err)
		require.Greater(t, id, last)
		last = id
	}
	require.NotZero(t, last)
}
