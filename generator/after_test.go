package generator_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/stores/storetest"
	"github.com/tickflake/tickflake/strategies"
)

// TestAfter guards what a seen ID does to a call, and that it does nothing to others.
func TestAfter(t *testing.T) {
	scripts(t, map[string]row{
		"below the next slot":      {"narrow reject", "next 0:0..1; after 0:0 0:2; after 0 0:3; +1ms; after 0:3 1:0"},
		"within the tick":          {"narrow reject", "after 0:2 0:3; next exhausted; +1ms; next 1:0"},
		"of the tick that is over": {"narrow reject", "after 0:3 behind:1ms/0s,seen; next 0:0; +1ms; after 0:3 1:0"},

		"ahead, reject": {"grant:0-100 reject",
			"next 0:0; after 5:3 behind:6ms/0s,seen; wants 0; next 0:1; stats rejections=1 lead=0s maxlead=0s"},
		"ahead, borrow":            {"grant:0-100 borrow:5ms", "after 5:1 5:2; stats lead=5ms maxlead=5ms borrowed=1; after 0:0 5:3"},
		"ahead, borrow too short":  {"grant:0-100 borrow:4ms", "after 5:1 behind:5ms/4ms,seen; next 0:0; stats lead=0s"},
		"ahead, wait":              {"grant:0-100 wait:5ms", "after 5:1 5:2; waits 5ms; stats waits=1 waited=5ms lead=0s; next 5:3"},
		"ahead, wait too short":    {"grant:0-100 wait:4ms", "after 5:1 behind:5ms/4ms,seen; waits; next 0:0"},
		"ahead, borrow, then wait": {"grant:0-100 borrow:2ms,wait:5ms", "after 5:1 5:2; waits 3ms"},
		"ahead, own borrow":        {"grant:0-100 own-borrow", "after 5:1 5:2; decided 1; next 5:3"},
		"ahead, own unknown":       {"grant:0-100 own-unknown", "after 5:1 behind:5ms/1m0s,seen"},
		"of a larger node number":  {"grant:0-100 borrow:9ms", "after 5:3@2 6:0; after 6:2@2 any"},
		"before the epoch":         {"at-epoch borrow:1s", "-1ms; after 0 0:1"},
		"too far before it":        {"at-epoch borrow:1h", "-2h; after 0 behind:2h0m0s/1h0m0s; next behind"},
		"of no layout":             {"short borrow:1h", "after -1 range; after 9223372036854775807 range; next 0:0"},
		"of the end of time":       {"short borrow:1h", "after 3:1 end; next 0:0; +4ms; after 0:0 end"},
		"the largest of all":       {"deep reject", "after 4194303 end; next 0:0"},
		"closed":                   {"grant:0-100 wait", "close; after 0:0 closed"},
		"the context has ended":    {"narrow wait", "cancel; after 0:0 canceled"},

		"beyond the grant": {"grant:0-3 borrow:5ms",
			"after 5:1 ungranted:3ms:-3ms; asked; wants 5; next 0:0; grant 1 0 6; after 5:1 5:2"},
		"beyond the grant, and the bound": {"grant:0-3 borrow:4ms", "after 5:1 behind; wants 0"},
		"beyond the grant, by a wait":     {"grant:0-3 wait:5ms", "after 5:1 ungranted:3ms:7ms+10ms; waits 2*5ms; asked; next ungranted"},
		"the grant comes": {"machine grant:0-3 borrow:5ms,wait:1s",
			"go after 5:1; back -; gate true; next 0:0; asked; wants 5; grant 1 0 6; back 5:2; wants 0"},
		"the grant does not come":                      {"machine grant:0-3 borrow:5ms,wait:1s", "go after 5:1; back -; wants 5; sleep 1s; back ungranted; wants 0"},
		"the keeper fails, and the call does not wait": {"grant:0-3 borrow:5ms", "fail away; after 5:1 ungranted; wants 0"},

		"a wait holds no call up": {"machine grant:0-5000 wait:10s",
			"go after 2000:1; go after 1:1; back 2*-; gate true; next 0:0..3; took 0s; sleep 1s; next 1000:0; back - 1:2; sleep 1s; back 2000:2; next 2000:3"},
		"a wait leaves the turn to others": {"machine grant:0-100 wait:1s",
			"go after 1:2; +500us; batch 4 4 0:0 0:3; go next; back 2*-; sleep 500us; back - 1:0; sleep 500us; back 1:3"},
		"behind the queue": {"machine grant:0-100 wait:1s",
			"batch 4 4 0:0 0:3; go next; +1ms; go after 1:2; back - 1:3; sleep 1ms; back 1:0"},
		"in the queue, as any call": {"machine grant:0-100 wait:1s", "batch 4 4 0:0 0:3; go after 0:1; gate false; sleep 1ms; back 1:0"},
		"until the context ends":    {"machine narrow wait", "deadline 30m; after 3600000:1 deadline:30m0s; took 30m; next any"},
		"until it is closed":        {"machine narrow wait", "go after 3600000:1; close; back closed; took 0s"},
		"until a step forward":      {"machine narrow wait", "go after 3600000:1; +1h; sleep 100ms; back 3600100:0"},
		"the node number becomes a smaller one": {"machine grant:5-100 wait:1s",
			"go after 5:3@0; back -; grant 0 5 100; sleep 5ms; sleep 1ms; back 6:0@0"},
		// The queue gives the call, which sleeps, a slot of the new number, which is not above.
		"the node number becomes a smaller one in its sleep": {"machine grant:5-100 wait:1s",
			"go after 5:0@0; back -; sleep 4ms; grant 0 5 100; +1ms; next 5:1@0; sleep 1ms; back 6:0@0"},
	})
}

// A keeper extends its grant at once to a seen ID that the strategy may borrow, and not for one that it rejects.
func TestAfterExtendsTheGrant(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		k, err := lease.Claim(t.Context(), storetest.NewMemory())
		require.NoError(t, err)
		g, err := generator.New(generator.WithLease(k), generator.WithStrategy(strategies.BorrowUpTo(time.Hour)))
		require.NoError(t, err)
		defer g.Close()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		for ahead, borrowed := range map[time.Duration]bool{30 * time.Minute: true, 2 * time.Hour: false} {
			seen, err := g.Layout().Max(time.Now().Add(ahead))
			require.NoError(t, err)
			_, err = g.NextAfter(ctx, seen)
			assert.Equal(t, borrowed, err == nil, "%v", err)
			assert.Less(t, g.Stats().Remaining, 31*time.Minute)
		}
		synctest.Wait()
		_, limit := k.Granted()
		seen, err := g.Layout().Max(limit.Add(-g.Layout().Tick)) // the IDs above it begin where the grant ends
		require.NoError(t, err)
		_, err = g.NextAfter(ctx, seen)
		assert.NoError(t, err)
	})
}

// Every ID is above that of WithFloor as an integer, whatever the order of the fields and the node of that ID.
func TestFloor(t *testing.T) {
	for _, layout := range []snowflake.Layout{snowflake.Default(), snowflake.Sonyflake()} {
		for _, ahead := range []time.Duration{-time.Hour, -layout.Tick, 0, time.Second, 10*time.Second - layout.Tick} {
			clock := newHandClock()
			seen, err := layout.Max(clock.Now().Add(ahead)) // of the last node, and the last of its tick
			require.NoError(t, err)
			g := newGenerator(t, generator.WithLayout(layout), generator.WithClock(clock), generator.WithFloor(seen), generator.WithStrategy(strategies.BorrowUpTo(time.Minute)))
			assert.Greater(t, mustNext(t, g), seen)
			assert.Equal(t, max(time.Duration(0), ahead+layout.Tick), g.Stats().MaxLead, "no later than it must be")
		}
	}
}
