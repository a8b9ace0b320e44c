//go:build unix

package main

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/stores"
)

// natsURL returns the URL of a NATS server that runs until the test ends: a store that
// knows no locks, so that a node number can be taken over.
func natsURL(t *testing.T) string {
	t.Helper()
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, NoSigs: true, NoLog: true, JetStream: true, StoreDir: t.TempDir()})
	require.NoError(t, err)
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	require.True(t, s.ReadyForConnections(time.Minute))
	return s.ClientURL()
}

// A process is stopped for longer than it was granted, another takes its node number
// over, and then it goes on.
func TestStoppedProcessIsTakenOver(t *testing.T) {
	url := natsURL(t)
	store, err := stores.Open(t.Context(), url)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, store.Close()) })
	look := func() lease.Holding {
		h, err := lease.InspectNode(t.Context(), store, 7)
		require.NoError(t, err)
		return h
	}
	all := printed{ids: map[snowflake.ID]string{}}
	flags := []string{"--layout", "41/10/6", "--window", "120ms", "--node", "7", "--store", url}
	frozen, frozenOut, frozenErr := started(t, &all, flags...)
	stop(t, frozen)
	before := look()
	require.Eventually(t, func() bool { return look().Limit.Before(time.Now()) }, 10*time.Second, time.Millisecond, "the window is over")

	other, otherOut, _ := started(t, &all, flags...)
	assert.NotEqual(t, before.Owner, look().Owner)
	resume(t, frozen)
	var wg sync.WaitGroup
	wg.Go(func() { drain(t, &all, otherOut, "other") })
	drain(t, &all, frozenOut, "frozen")
	assert.Equal(t, 1, exitCode(frozen))
	assert.Regexp(t, `^(time=.*\n)*time=.* msg="lease: lost, another process took it" node=7 .*\n(time=.*\n)*tickflake: grant of node 7 ended at .*: node number 7 is held by .*; \d+ of 1000000000 IDs written\n$`, frozenErr.String())
	require.NoError(t, other.Process.Signal(os.Interrupt))
	wg.Wait()
	assert.Equal(t, 130, exitCode(other))
	assert.Equal(t, lease.Released, look().State)
	t.Logf("%d IDs, all different", len(all.ids))
}

// The lease commands on a server, with a fleet of its own.
func TestLeaseOnAServer(t *testing.T) {
	url := natsURL(t)
	all := printed{ids: map[snowflake.ID]string{}}
	run, out, stderr := started(t, &all, "--layout", "41/10/6", "--node", "7", "--store", url+"?namespace=orders")
	go func() { _, _ = io.Copy(io.Discard, out) }()

	store := []string{"--store", url + "?namespace=orders"}
	list := tickflake(append([]string{"lease", "list", "--format", "json"}, store...)...)
	require.Equal(t, result{0, list.out, ""}, list)
	var before holdingJSON
	require.NoError(t, json.Unmarshal([]byte(list.out), &before))
	assert.Equal(t, int64(7), before.Node)
	assert.Equal(t, "held", before.State)
	assert.Contains(t, before.Owner, "process")
	assert.Equal(t, lease.DefaultWindow, before.Window)
	none := tickflake("lease", "list", "--store", url)
	assert.Equal(t, result{0, "NODE  STATE  OWNER  UNTIL  CLOCK\n", ""}, none, "in the namespace by default")

	// Its holder is alive, and that does no harm.
	released := tickflake(append([]string{"lease", "release", "7", "--yes"}, store...)...)
	require.Equal(t, result{0, released.out, ""}, released)
	next := records(t, tickflake(append([]string{"generate", "--layout", "41/10/6", "--node", "7", "--strategy", "borrow:1m", "--format", "json"}, store...)...))
	limit, err := time.Parse(time.RFC3339, before.Until)
	require.NoError(t, err)
	assert.False(t, next[0].Time.Before(limit), "%s begins where the holder's grant ends, at %s", next[0].Time, limit)
	require.NoError(t, run.Process.Signal(os.Interrupt))
	assert.Equal(t, 130, exitCode(run), stderr.String())
}

// A store that goes away for longer than the grant lasts ends the run, with the
// reason, after the time that --timeout allows.
func TestServerGoesAway(t *testing.T) {
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, NoSigs: true, NoLog: true, JetStream: true, StoreDir: t.TempDir()})
	require.NoError(t, err)
	s.Start()
	t.Cleanup(s.Shutdown)
	require.True(t, s.ReadyForConnections(time.Minute))
	var stderr strings.Builder
	out := &eventWriter{failingWriter{1 << 30, nil}, sync.OnceFunc(func() { s.Shutdown(); s.WaitForShutdown() })}
	code := run(context.Background(), []string{"generate", "--count", "1000000000", "--layout", "41/10/6", "--window", "300ms", "--timeout", "2s", "--store", s.ClientURL()}, strings.NewReader(""), out, &stderr)
	assert.Equal(t, 1, code)
	assert.Regexp(t, `(?s)^(time=[^\n]*\n)*time=[^\n]* msg="lease: not extended yet".*\ntickflake: gave up after 2s \(--timeout\): grant of node \d+ ended at .*store does not answer.*IDs written\n$`, stderr.String())
}
