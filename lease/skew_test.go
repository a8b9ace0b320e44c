package lease_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/monoclock/clocktest"
	"github.com/tickflake/tickflake/stores/storetest"
)

var direction = map[bool]string{true: "ahead of", false: "behind"}

// TestSkew starts a process among others, of which some live and some have crashed, with a clock that is
// wrong or not. It looks at the estimate, the warning, and what a strict claim says. The others are asked when
// they have had the time to write, at most three times, and no longer than an extension can wait.
func TestSkew(t *testing.T) {
	for name, test := range map[string]struct {
		living, crashed int
		apart           time.Duration // between two that crashed
		down            time.Duration // since then
		length          time.Duration // the window of the living, if not ours
		skews           []time.Duration
		estimate        bool // there is one
		warns           bool // if it is beyond the limit
		strict          int  // how many a strict claim is refused by, if it is beyond the limit
		option          lease.Option
		away            bool // the store lists no more after the claim
	}{
		"a fleet": {living: 5, skews: []time.Duration{0, 30 * time.Second, -30 * time.Second, 2 * time.Minute, -2 * time.Minute, 10 * time.Hour, -10 * time.Hour},
			estimate: true, warns: true, strict: 5},
		"a neighbour":                {living: 1, skews: []time.Duration{0, time.Hour}, estimate: true, warns: true},
		"two, and we are behind":     {living: 2, skews: []time.Duration{-time.Hour}, estimate: true, warns: true, strict: 2},
		"longer windows":             {living: 3, length: 10 * time.Minute, skews: []time.Duration{0, time.Hour, -time.Hour}, estimate: true, warns: true, strict: 3},
		"a fleet that was stopped":   {crashed: 5, down: 8 * time.Hour, skews: []time.Duration{0}},
		"our number, crashed":        {crashed: 3, apart: time.Second, down: time.Hour, skews: []time.Duration{0}, option: lease.WithNode(0)},
		"a store that lists no more": {living: 1, skews: []time.Duration{time.Hour}, away: true},
		"crashed at different hour":  {living: 3, crashed: 12, apart: time.Minute, skews: []time.Duration{0}, estimate: true},
	} {
		for _, skew := range test.skews {
			for _, strict := range []bool{false, true} {
				t.Run(name+" "+skew.String(), func(t *testing.T) {
					w := newRig(t)
					for node := range int64(test.crashed) {
						w.claim(nil, small(4), lease.WithNode(node))
						w.clock.Advance(test.apart)
					}
					w.clock.Advance(test.down)
					length := max(test.length, period)
					var fleet []*lease.Keeper
					for range test.living {
						fleet = append(fleet, w.claim(nil, small(4), lease.WithWindow(length)))
					}
					w.pass(length, fleet...)
					const limit = lease.DefaultFleetLimit
					ours := clocktest.NewVirtual(w.clock.Wall().Add(skew))
					ours.AutoAdvance(true) // as the check waits; the others live on meanwhile
					lists := 0
					store := w.cells.Client()
					store.Before = func(ctx context.Context, op storetest.Op) storetest.Fault {
						if op.Kind != storetest.OpList {
							return storetest.None
						}
						if lists++; lists == 2 && strict {
							w.pass(max(length, period)/2, fleet...)
						} else if lists > 1 && !strict {
							deadline, ok := ctx.Deadline()
							require.True(t, ok && time.Until(deadline) <= time.Second)
						}
						return map[bool]storetest.Fault{true: storetest.Unavailable}[test.away && lists > 1]
					}
					options := w.options(small(4), lease.WithFleetCheck(limit, strict), lease.WithClock(ours))
					if test.option != nil {
						options = append(options, test.option)
					}
					begin := ours.Elapsed()
					k, err := lease.Claim(polled(t.Context()), store, options...)
					wrong := skew.Abs() > limit
					if wrong && strict && test.strict > 0 {
						require.ErrorIs(t, err, lease.ErrSkew)
						require.ErrorContains(t, err, fmt.Sprintf("%s the fleet, by the grants of %d nodes (limit 1m0s)", direction[skew > 0], test.strict))
						return
					}
					require.NoError(t, err)
					if test.crashed < 3 || test.option != nil {
						require.Equal(t, begin, ours.Elapsed(), "one or two that crashed are no reason to wait")
					}
					if strict {
						return
					}
					ours.AutoAdvance(false)
					warned := func() bool { return w.log.count("the fleet, by the grants of ") > 0 }
					require.False(t, warned(), "%s", w.log)
					if skew.Abs() > length {
						require.Zero(t, k.Stats().Skew, "nobody has written since")
					}
					steps := 6 * length / period
					for range steps { // of a third of our window
						w.pass(third, fleet...)
						ours.Advance(third)
						k.Poll(t.Context())
						k.Poll(t.Context())
					}
					require.EqualValues(t, steps, k.Stats().Extensions)
					if test.away {
						require.Equal(t, []any{1 + 3, uint64(3)}, []any{lists, k.Stats().Failures})
					}
					want := time.Duration(0)
					if test.estimate {
						want = skew
					}
					require.InDelta(t, want, k.Stats().Skew, float64(length/3))
					require.Equal(t, wrong && test.warns, warned(), "%s", w.log)
					require.LessOrEqual(t, lists, 1+3)
				})
			}
		}
	}
}

// ending is a clock that ends a context when it is waited for, and no wait.
type ending struct {
	*clocktest.Virtual
	end func()
}

func (e ending) After(time.Duration) <-chan time.Time { e.end(); return nil }

// TestStrictClaimEnds: its context ends the wait for signs of life, and a store that lists no more ends it.
func TestStrictClaimEnds(t *testing.T) {
	w := newRig(t)
	w.run("claim a; claim b; claim c; claim d; claim e; 8h")
	strict := lease.WithFleetCheck(time.Minute, true)
	ctx, cancel := context.WithCancelCause(t.Context())
	clock := ending{w.clock, func() { cancel(errCause) }}
	_, err := lease.Claim(polled(ctx), w.client(), w.options(strict, lease.WithClock(clock))...)
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, err, lease.ErrSkew)
	require.ErrorIs(t, err, errCause)
	require.ErrorContains(t, err, "no time to see whether the others live")
	store := w.client()
	store.rules = []*rule{{of: "list", skip: 1, n: 1, fate: storetest.Unavailable}}
	w.clock.AutoAdvance(true)
	require.ErrorIs(t, second(w.try(store, strict)), lease.ErrStore)
}
