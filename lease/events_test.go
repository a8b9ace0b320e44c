package lease_test

import (
	"bytes"
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/internal/protocol"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/monoclock/clocktest"
	"github.com/tickflake/tickflake/stores/storetest"
)

// That calls fail from now on is said once for each grant that ends, with the reason.
func TestEndOfAGrantIsLogged(t *testing.T) {
	clock := clocktest.NewVirtual(noon)
	memory := storetest.NewMemory()
	store := memory.Client()
	away := true
	store.Before = func(_ context.Context, op storetest.Op) storetest.Fault {
		if away && isSwap(op) && op.Key == protocol.NodeKey(5) && clock.Wall().After(noon) {
			return storetest.Unavailable
		}
		return storetest.None
	}
	var log bytes.Buffer
	k := claim(t, store, clock, lease.WithNode(lease.NodeNumber(5)), logTo(&log))
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

	// One that is lost for good ends as well.
	away = false
	live(time.Minute)
	claim(t, memory.Client(), clock, lease.WithNode(lease.NodeNumber(5)), lease.WithOwner("the successor"))
	live(time.Minute)
	require.Equal(t, 3, ended())
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
