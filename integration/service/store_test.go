//go:build unix

package service

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/integration/fleet"
	"github.com/tickflake/tickflake/integration/servers"
)

// window is the length of a grant. A grant that was just extended lasts longer than two thirds
// of it.
const window = 6 * time.Second

// poll is the pause of a loop that looks for a change.
const poll = 10 * time.Millisecond

// The store of a server is killed, or stops answering and takes writes late. IDs go on while
// the grant lasts, and the numbers of a segment while it lasts. Then calls are refused: LOADING,
// 503 and UNAVAILABLE. When the store is back all go on by themselves, and nothing is issued
// twice.
func TestStoreIsAway(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ away, back func(*servers.Server) error }{
		"killed":  {func(s *servers.Server) error { return s.Kill() }, func(s *servers.Server) error { return s.Process.Start() }},
		"stopped": {func(s *servers.Server) error { return s.Suspend() }, func(s *servers.Server) error { return s.Resume() }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testStoreIsAway(t, c.away, c.back)
		})
	}
}

func testStoreIsAway(t *testing.T, away, back func(*servers.Server) error) {
	ctx := t.Context()
	store := servers.For(t, servers.Redis, "--save", "", "--appendonly", "yes", "--appendfsync", "always")
	numbers := map[string]*fleet.Ledger{fleet.Ordered: {}, fleet.Segmented: {}}
	for name := range numbers {
		args := append([]string{"sequence", "create", name, "--mode", name, "--store", store.URL}, short[name]...)
		_, err := fleet.Tickflake(ctx, false, args...)
		require.NoError(t, err)
	}
	server, err := fleet.Serve(ctx, fleet.ServeConfig{Store: store.URL, Args: []string{"--window", window.String(), "--request-timeout", "150ms", "--timeout", "1s"}})
	require.NoError(t, err)
	defer func() { assert.NoError(t, server.Close()) }()
	var ids fleet.Ledger
	take := func(name string, c fleet.Caller) error {
		begin := fleet.Now()
		got, err := c.IDs(ctx, 3)
		ids.Add(name, begin, fleet.Now(), got...)
		return err
	}
	count := func(name string, c fleet.Caller, sequence string) error {
		begin := fleet.Now()
		n, err := c.Numbers(ctx, sequence, 1)
		if err == nil {
			numbers[sequence].Add(name, begin, fleet.Now(), n)
		}
		return err
	}
	callers := map[string]fleet.Caller{}
	for _, p := range fleet.Protocols {
		callers[p.Name] = p.Open(p.At(server))
		defer callers[p.Name].Close() //nolint:errcheck // its answers were checked
	}
	// together calls f for all protocols at once, since each call that is refused takes a while.
	together := func(f func(name string, c fleet.Caller)) {
		var calling sync.WaitGroup
		for name, c := range callers {
			calling.Go(func() { f(name, c) })
		}
		calling.Wait()
	}
	served := func() {
		together(func(name string, c fleet.Caller) {
			assert.NoError(t, eventually(ctx, func() error { return take(name, c) }), name)
			assert.NoError(t, eventually(ctx, func() error { return count(name, c, fleet.Ordered) }), name)
			assert.NoError(t, eventually(ctx, func() error { return count(name, c, fleet.Segmented) }), name)
		})
	}
	// refused waits until calls are refused as ones that can be repeated elsewhere.
	refused := func(what string, call func() error) {
		err := eventually(ctx, func() error {
			err := call()
			if err == nil {
				return fmt.Errorf("%s never end", what)
			}
			if r, ok := errors.AsType[*fleet.Refused](err); !ok || r.Busy {
				return fmt.Errorf("%s: %w", what, err)
			}
			return nil
		})
		assert.NoError(t, err)
	}
	ready := func() error { _, err := fleet.Get(ctx, "http://"+server.HTTP+"/readyz"); return err }
	served()
	require.NoError(t, ready())
	began := time.Now()
	require.NoError(t, away(store))
	for time.Since(began) < window/3 { // half of what is left at least
		together(func(name string, c fleet.Caller) {
			err := take(name, c)
			assert.True(t, err == nil || time.Since(began) > window/2, "%s, IDs after %v: %v", name, time.Since(began), err)
		})
		fleet.Pause(ctx, poll)
	}
	together(func(name string, c fleet.Caller) {
		refused("the ordered numbers of "+name, func() error { return count(name, c, fleet.Ordered) })
	})
	together(func(name string, c fleet.Caller) {
		refused("the IDs of "+name, func() error { return take(name, c) })
		refused("the numbers of a segment of "+name, func() error { return count(name, c, fleet.Segmented) })
	})
	assert.Error(t, ready())
	require.NoError(t, back(store))
	require.NoError(t, eventually(ctx, ready))
	served()
	for name, l := range map[string]*fleet.Ledger{"IDs": &ids, fleet.Ordered: numbers[fleet.Ordered], fleet.Segmented: numbers[fleet.Segmented]} {
		n, example := l.Twice()
		assert.Zero(t, n, "%s: %s", name, example)
		got, _ := l.Count()
		t.Logf("%s: %d", name, got)
	}
	n, example := numbers[fleet.Ordered].Disorder(false)
	assert.Zero(t, n, example)
}

// eventually calls f until it returns nil.
func eventually(ctx context.Context, f func() error) error {
	ctx, cancel := context.WithTimeout(ctx, fleet.Patience)
	defer cancel()
	for {
		err := f()
		if err == nil || ctx.Err() != nil {
			return err
		}
		fleet.Pause(ctx, poll)
	}
}
