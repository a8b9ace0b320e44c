package lease_test

import (
	"context"
	"fmt"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/monoclock"
	"github.com/tickflake/tickflake/stores/storetest"
)

// skewed is a clock that is ahead of the machine's.
type skewed time.Duration

func (s skewed) Now() time.Time { return time.Now().Add(time.Duration(s)) }

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
		options         []lease.Option
		away            bool // the store lists no more after the claim
	}{
		"a fleet": {living: 5, skews: []time.Duration{0, 30 * time.Second, -30 * time.Second, 2 * time.Minute, -2 * time.Minute, 10 * time.Hour, -10 * time.Hour},
			estimate: true, warns: true, strict: 5},
		"a neighbour":                {living: 1, skews: []time.Duration{0, time.Hour}, estimate: true, warns: true},
		"two, and we are behind":     {living: 2, skews: []time.Duration{-time.Hour}, estimate: true, warns: true, strict: 2},
		"longer windows":             {living: 3, length: 10 * time.Minute, skews: []time.Duration{0, time.Hour, -time.Hour}, estimate: true, warns: true, strict: 3},
		"a fleet that was stopped":   {crashed: 5, down: 8 * time.Hour, skews: []time.Duration{0}},
		"our number, crashed":        {crashed: 3, apart: time.Second, down: time.Hour, skews: []time.Duration{0}, options: []lease.Option{lease.WithNode(0)}},
		"a store that lists no more": {living: 1, skews: []time.Duration{time.Hour}, away: true},
		"crashed at different hour":  {living: 3, crashed: 12, apart: time.Minute, skews: []time.Duration{0}, estimate: true},
	} {
		for _, skew := range test.skews {
			for _, strict := range []bool{false, true} {
				t.Run(fmt.Sprint(name, " ", skew, " ", strict), func(t *testing.T) {
					bubble(t, func(t *testing.T) {
						store, log, length := storetest.NewMemory(), &record{}, max(test.length, period)
						for node := range int64(test.crashed) {
							must(lease.Claim(polled(t.Context()), store, small(4), lease.WithNode(node), log.option()))
							time.Sleep(test.apart)
						}
						time.Sleep(test.down)
						for range test.living {
							k := must(lease.Claim(t.Context(), store, small(4), lease.WithWindow(length), log.option()))
							defer func() { _ = k.Close() }()
						}
						time.Sleep(length * 11 / 10) // and not as they write
						const limit = time.Minute
						lists, ours := 0, store.Client()
						ours.Before = func(ctx context.Context, op storetest.Op) storetest.Fault {
							if op.Kind != storetest.OpList {
								return storetest.None
							}
							if lists++; lists > 1 && !strict {
								deadline, ok := ctx.Deadline()
								require.True(t, ok && time.Until(deadline) <= time.Second)
							}
							return map[bool]storetest.Fault{true: storetest.Unavailable}[test.away && lists > 1]
						}
						begin := time.Now()
						k, err := lease.Claim(t.Context(), ours, append(test.options, small(4), lease.FleetCheck(limit, strict), lease.WithClock(skewed(skew)), log.option())...)
						wrong := skew.Abs() > limit
						if wrong && strict && test.strict > 0 {
							require.ErrorIs(t, err, lease.ErrSkew)
							require.ErrorContains(t, err, fmt.Sprintf("%s the fleet, by the grants of %d nodes (limit 1m0s)", direction[skew > 0], test.strict))
							return
						}
						require.NoError(t, err)
						defer func() { _ = k.Close() }()
						if test.crashed < 3 || test.options != nil {
							require.Zero(t, time.Since(begin), "one or two that crashed are no reason to wait")
						}
						if strict {
							return
						}
						warned := func() bool { return log.count("the fleet, by the grants of ") > 0 }
						require.False(t, warned(), "%s", log)
						if skew.Abs() > length {
							require.Zero(t, k.Stats().Skew, "nobody has written since")
						}
						for range 40 { // it asks when the others have had the time to write, and not at each step
							k.Window().Ask()
							time.Sleep(length / 20)
						}
						synctest.Wait()
						require.NoError(t, k.Err())
						if test.away {
							require.Equal(t, []any{1 + 3, uint64(3)}, []any{lists, k.Stats().Failures})
						}
						want := time.Duration(0)
						if test.estimate {
							want = skew
						}
						require.InDelta(t, want, k.Stats().Skew, float64(length/3))
						require.Equal(t, wrong && test.warns, warned(), "%s", log)
						require.LessOrEqual(t, lists, 1+3)
					})
				})
			}
		}
	}
}

// TestStrictClaimEnds: its context ends the wait for signs of life, and a store that lists no more ends it. After the
// wait it does not go by what it read before.
func TestStrictClaimEnds(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newRig(t)
		strict := []lease.Option{lease.WithStrictFleetCheck(), w.log.option()}
		for range 5 {
			must(lease.Claim(polled(t.Context()), w.cells, w.log.option()))
		}
		time.Sleep(8 * time.Hour)
		ctx, cancel := context.WithTimeoutCause(t.Context(), period/4, errCause)
		defer cancel()
		_, err := lease.Claim(ctx, w.cells, strict...)
		for _, want := range []error{context.DeadlineExceeded, lease.ErrSkew, errCause} {
			require.ErrorIs(t, err, want)
		}
		require.ErrorContains(t, err, "no time to see whether the others live")
		store := w.client()
		store.rules = []*rule{{of: "list", skip: 1, n: 1, fate: storetest.Unavailable}}
		require.ErrorIs(t, second(lease.Claim(t.Context(), store, strict...)), lease.ErrStore)
		held := must(lease.Claim(t.Context(), w.cells, lease.WithNode(7), w.log.option()))
		time.AfterFunc(period/4, func() { _ = held.Close() })
		k := must(lease.Claim(t.Context(), w.cells, append(strict, lease.WithNode(7))...)) // it was held as the wait began
		require.NoError(t, k.Close())
	})
}

// TestClaimThatMayNotList: the right to list is not needed for a pinned number, unless the check is strict. No list is
// made for a check that is off.
func TestClaimThatMayNotList(t *testing.T) {
	const begin = "claim a; close a; client k; fate k list away 9; claim k pin:7 "
	scripts(t, map[string]string{
		"advice": begin + "; stats k Failures:1; log 0 WARN",
		"strict": begin + "strict = store",
		"off":    begin + "unchecked; stats k Failures:0",
	})
}

// TestWitness: a claim that meets a number whose limit lies far ahead of its clock says so once, unless it lies there
// on purpose, and a strict one ends.
func TestWitness(t *testing.T) {
	const far = 7 * 365 * 24 * time.Hour
	close := func(k *lease.Keeper) { _ = k.Close() }
	for name, test := range map[string]struct {
		before func(*rig)
		by     time.Duration // that our clock is behind what was before
		warns  bool
		ours   []lease.Option
		begins bool // our grant begins there, too
		free   bool // no strict claim is tried: it would wait for the holder, or none is wanted
	}{
		"a release":      {func(w *rig) { close(w.claim(nil)) }, far, true, nil, false, false},
		"a crash":        {func(w *rig) { w.claim(nil) }, far, true, nil, false, true},
		"a longer grant": {func(w *rig) { w.claim(nil, lease.WithWindow(time.Hour)) }, time.Hour, false, nil, false, true},
		"near":           {func(w *rig) { close(w.claim(nil)) }, time.Minute + 2*period - time.Second, false, nil, false, false},
		"not so near":    {func(w *rig) { close(w.claim(nil)) }, time.Minute + 2*period + time.Second, true, nil, false, false},
		"reserved": {func(w *rig) {
			require.NoError(w, lease.Reserve(w.Context(), w.cells, 0, 9, w.clock.Now().Add(time.Hour), w.options()...))
		}, far, false, nil, false, false},
		"moved": {func(w *rig) {
			k := w.claim(nil, lease.WithNode(0))
			close(k)
			must(lease.EndFleet(w.Context(), w.cells, 0, 0, "new", w.options()...))
		}, far, false, nil, false, false},
		"the fleet's floor": {func(w *rig) {
			require.NoError(w, lease.SetFleet(w.Context(), w.cells, lease.Fleet{To: 1023, Floor: w.clock.Now()}, w.options()...))
			close(w.claim(nil))
		}, far, false, nil, false, false},
		"our number":       {func(w *rig) { close(w.claim(nil, lease.WithNode(7))) }, far, true, []lease.Option{lease.WithNode(7)}, true, false},
		"beside ours":      {func(w *rig) { close(w.claim(nil, lease.WithNode(6))) }, far, true, []lease.Option{lease.WithNode(7)}, false, false},
		"the check is off": {func(w *rig) { close(w.claim(nil, small(4))) }, far, true, []lease.Option{small(4), lease.WithFleetLimit(math.MaxInt64)}, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newRig(t)
			w.clock.Step(test.by)
			test.before(w)
			w.clock.Step(-test.by)
			w.log = &record{}
			if !test.free {
				k, err := w.try(nil, append(test.ours, lease.WithFleetLimit(time.Second), lease.WithStrictFleetCheck())...)
				if test.warns {
					require.ErrorIs(t, err, lease.ErrSkew)
					require.ErrorContains(t, err, "this clock is behind, or an earlier one was ahead")
					require.ErrorContains(t, err, "without the strict check", "no reservation takes the limit away")
				} else {
					require.NoError(t, err)
					close(k)
				}
			}
			w.log = &record{}
			k := w.claim(nil, test.ours...)
			w.keep(k, 10*period, func() {})
			if test.begins {
				require.Equal(t, []int{1, 1, 0}, []int{w.log.count("WARN"), w.log.count("the grant begins"), w.log.count("INFO")}, "%s", w.log)
				return
			}
			warns := map[bool]int{true: 1}[test.warns]
			require.Equal(t, []int{warns, warns, 1}, []int{w.log.count("WARN") - w.log.count("before the fleet's floor"), w.log.count("this clock is behind, or"), w.log.count("INFO")}, "%s", w.log)
		})
	}
}

// TestDrift: the log says once that the wall clock has left the clock of the IDs, and once that it is back.
func TestDrift(t *testing.T) {
	for step, says := range map[time.Duration]string{time.Hour: "set ahead", -time.Hour: "set back"} {
		w := newRig(t)
		k := must(lease.Claim(polled(t.Context()), w.cells, lease.WithClock(monoclock.New(monoclock.WithSource(w.clock))), w.log.option()))
		counts := func() []int { return []int{w.log.count(says), w.log.count("agree again"), w.log.count("WARN")} }
		for round := range 2 {
			w.clock.Step(time.Minute)
			w.keep(k, 3*period, func() {})
			require.Equal(t, []int{round, round, round}, counts(), "it is near")
			w.clock.Step(step - time.Minute)
			w.keep(k, 3*period, func() {})
			require.Equal(t, []int{round + 1, round, round + 1}, counts(), "%s", w.log)
			w.clock.Step(-step)
			w.keep(k, 3*period, func() {})
			require.Equal(t, []int{round + 1, round + 1, round + 1}, counts())
		}
	}
}
