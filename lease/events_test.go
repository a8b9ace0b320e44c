package lease_test

import (
	"bytes"
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/internal/cell"
	"github.com/tickflake/tickflake/internal/grant"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/monoclock/clocktest"
	"github.com/tickflake/tickflake/stores/storetest"
)

// That calls fail from now on is said once for each grant that ends, with the reason.
func TestEndOfAGrantIsLogged(t *testing.T) {
	clock := clocktest.NewVirtual(noon)
	memory := storetest.NewMemory()
	store := memory.Client()
	away, took := true, time.Duration(0)
	store.Before = func(_ context.Context, op storetest.Op) storetest.Fault {
		clock.Advance(took)
		took = 0
		if away && isSwap(op) && op.Key == cell.NodeKey(5) && clock.Wall().After(noon) {
			return storetest.Unavailable
		}
		return storetest.None
	}
	var log bytes.Buffer
	k := claim(t, store, clock, lease.WithNode(lease.NodeNumber(5)), lease.WithTimeout(time.Minute), logTo(&log))
	ended := func() int { return bytes.Count(log.Bytes(), []byte(`level=ERROR msg="lease: grant ended" node=5 at=`)) }
	live := func(d time.Duration) {
		for ; d > 0; d -= time.Second {
			clock.Advance(time.Second)
			k.Poll(t.Context())
		}
	}
	live(lease.DefaultWindow - time.Second)
	require.Zero(t, ended(), "%s", log.String())
	live(time.Minute)
	require.Equal(t, 1, ended(), "%s", log.String())
	require.Contains(t, log.String(), "store does not answer")

	away = false
	live(time.Minute)
	away = true
	live(time.Minute)
	require.Equal(t, 2, ended())

	// An extension can come too late although the store answers.
	away = false
	live(time.Minute)
	took = time.Minute
	live(time.Minute)
	require.Equal(t, 3, ended())
	require.Contains(t, log.String(), `err="extending the grant took 1m0s, and the window is 30s: choose a longer window"`)

	// One that is lost for good ends as well.
	claim(t, memory.Client(), clock, lease.WithNode(lease.NodeNumber(5)), lease.WithOwner("the successor"))
	live(time.Minute)
	require.Equal(t, 4, ended())
	require.Regexp(t, `grant ended" .* err="node number 5 is held by the successor`, log.String())
}

// Others who are faster, time and again, are no failure of the store.
func TestCollisionsAreNotTheStores(t *testing.T) {
	clock := clocktest.NewVirtual(noon)
	clock.AutoAdvance(true)
	memory := storetest.NewMemory()
	store, collisions := memory.Client(), 0
	store.Before = func(_ context.Context, op storetest.Op) storetest.Fault {
		if isSwap(op) && collisions < 8 {
			collisions++
			claim(t, memory.Client(), clock, lease.WithNode(lease.NodeNumber(nodeOf(op.Key))))
		}
		return storetest.None
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	var log bytes.Buffer
	_, err := lease.Claim(ctx, store, append(quiet(clock), logTo(&log))...)
	require.NoError(t, err)
	require.Contains(t, log.String(), `level=INFO msg="lease: waiting for a node number"`)
	require.NotContains(t, log.String(), "level=WARN")
}

// A store that is back before the grant ends, and be it by the last seconds, is asked in time.
func TestLastTryComesBeforeTheEnd(t *testing.T) {
	for _, window := range []time.Duration{5 * time.Second, lease.DefaultWindow, time.Hour} {
		for range 20 {
			clock, away := clocktest.NewVirtual(noon), true
			store := storetest.NewMemory().Client()
			k := claim(t, store, clock, lease.WithWindow(window))
			store.Before = func(context.Context, storetest.Op) storetest.Fault {
				if away {
					return storetest.Unavailable
				}
				return storetest.None
			}
			_, limit := k.Granted()
			tries := 0
			for end := limit; !end.After(limit); tries++ {
				clock.Advance(first(k.Poll(t.Context())))
				require.True(t, clock.Wall().Before(limit), "the grant of %s has ended", window)
				away = clock.Wall().Add(window / 50).Before(limit)
				k.Poll(t.Context())
				_, end = k.Granted()
			}
			require.Less(t, tries, 10)
		}
	}
}

// While nothing is granted, the store is asked at least every 9 seconds: after a grant has ended,
// and after the clock was set past its end.
func TestEndedGrantIsUrgent(t *testing.T) {
	for _, step := range []time.Duration{0, 2 * time.Hour} {
		clock := clocktest.NewVirtual(noon)
		store := storetest.NewMemory().Client()
		k := claim(t, store, clock, lease.WithWindow(time.Hour))
		store.Before = func(context.Context, storetest.Op) storetest.Fault { return storetest.Unavailable }
		for k.Poll(t.Context()); k.Err() == nil; k.Poll(t.Context()) {
			clock.Advance(time.Minute)
		}
		clock.Step(step)
		for _, limit := k.Granted(); clock.Wall().Before(limit); {
			clock.Advance(first(k.Poll(t.Context())))
		}
		for range 100 {
			next := first(k.Poll(t.Context()))
			require.Positive(t, next)
			require.LessOrEqual(t, next, grant.Urgent)
			clock.Advance(next)
		}
		store.Before = nil
	}
}
