//go:build unix

package service

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/monoclock/clocktest"
	"github.com/tickflake/tickflake/sequence"
	"github.com/tickflake/tickflake/service"
	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/storetest"
)

// cuttable is a store that can be cut off.
type cuttable struct {
	store     stores.Store
	cut, mend func()
}

// inMemory is a store whose operations fail, or whose writes arrive without an answer.
func inMemory(testing.TB) cuttable {
	var down atomic.Bool
	var n atomic.Int64
	m := storetest.NewMemory()
	m.Before = func(context.Context, storetest.Op) storetest.Fault {
		switch {
		case !down.Load():
			return storetest.None
		case n.Add(1)%2 == 0:
			return storetest.ReplyLost
		}
		return storetest.Unavailable
	}
	return cuttable{m, func() { down.Store(true) }, func() { down.Store(false) }}
}

// The store is cut off under load, and comes back. IDs go on while the grant lasts, and the
// numbers of a segment while it lasts. Then calls are refused: LOADING, 503 and UNAVAILABLE.
// Afterwards all go on by themselves, and nothing is issued twice.
func TestStoreIsCutOff(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(testing.TB) cuttable{"memory": inMemory, "Redis": behindProxy} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testStoreIsCutOff(t, open(t))
		})
	}
}

// window is the length of a grant, in virtual time. An outage of two thirds of it has no effect.
const window = 12 * time.Second

// refusedAfter is the time for a request.
const refusedAfter = 150 * time.Millisecond

func testStoreIsCutOff(t *testing.T, s cuttable) {
	clock := clocktest.NewVirtual(time.Date(2026, 3, 29, 1, 0, 0, 0, time.UTC))
	k, err := lease.Claim(t.Context(), s.store, lease.WithWindow(window), lease.WithLogger(quiet()), lease.WithTimeout(patience), lease.WithClock(clock), lease.WithPolling())
	require.NoError(t, err)
	g, err := generator.New(generator.WithLease(k))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, g.Close()) })
	// pass lets a twelfth of the window pass.
	pass := func() {
		clock.Advance(window / 12)
		k.Poll(t.Context())
	}
	server := serveHere(t, service.Config{Generator: g, Store: s.store, Create: created, Timeout: refusedAfter,
		Sequences: []sequence.Option{sequence.WithLogger(quiet()), sequence.WithTimeout(patience)}})
	var l ledger
	all := map[string]caller{}
	for name, open := range callers {
		all[name] = open(server.addresses)
		t.Cleanup(all[name].close)
	}
	take := func(name string) error {
		ids, err := all[name].ids(t.Context(), 3)
		l.addIDs(ids...)
		return err
	}
	count := func(name, sequence string) error {
		begin := now()
		n, err := all[name].number(t.Context(), sequence)
		if err == nil {
			l.addNumber(sequence, taken{n, begin, now()})
		}
		return err
	}
	// together calls f for all protocols at once, since each call that is refused takes a while.
	together := func(f func(name string)) {
		var calling sync.WaitGroup
		for name := range all {
			calling.Go(func() { f(name) })
		}
		calling.Wait()
	}
	served := func() {
		together(func(name string) {
			assert.NoError(t, take(name), name)
			assert.NoError(t, eventually(t.Context(), func() error { return count(name, invoices) }), name)
			assert.NoError(t, eventually(t.Context(), func() error { return count(name, tickets) }), name)
		})
	}
	// refused reports that the call is refused as one that can be repeated elsewhere.
	refused := func(err error, what string) {
		r, ok := errors.AsType[*refusal](err)
		if assert.True(t, ok, "%s: %v", what, err) {
			assert.False(t, r.busy, "%s: %s", what, r.text)
		}
	}
	served()
	require.NoError(t, server.Ready())
	s.cut()
	for range 8 { // two thirds of the window
		for name := range all {
			require.NoError(t, take(name), "%s, IDs after the cut", name)
		}
		pass()
	}
	together(func(name string) { refused(count(name, invoices), name+", ordered sequence") })
	for range 5 {
		pass() // and the window is over
	}
	assert.NoError(t, eventually(t.Context(), func() error {
		if count("raw RESP", tickets) == nil {
			return errors.New("the numbers of a segment never end")
		}
		return nil
	}))
	together(func(name string) {
		refused(take(name), name+", IDs")
		refused(count(name, tickets), name+", segmented sequence")
	})
	assert.Error(t, server.Ready())
	s.mend()
	require.NoError(t, eventually(t.Context(), func() error { pass(); return server.Ready() }))
	served()
	l.check(t, 8, invoices, tickets)
}

// eventually calls f until it returns nil.
func eventually(ctx context.Context, f func() error) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		err := f()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(time.Millisecond):
		}
	}
}
