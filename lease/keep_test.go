package lease_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/internal/grant"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/monoclock/clocktest"
	"github.com/tickflake/tickflake/stores/storetest"
	"github.com/tickflake/tickflake/strategies"
)

// TestWritesPerWindow: an extension is one write, and there is one in a third of a window, whatever the
// clock does.
func TestWritesPerWindow(t *testing.T) {
	for name, fault := range map[string]func(*clocktest.Virtual){
		"steady":           func(*clocktest.Virtual) {},
		"stands":           func(c *clocktest.Virtual) { c.Freeze(time.Hour) },
		"half":             func(c *clocktest.Virtual) { c.Slew(0.5, time.Hour) },
		"before the epoch": func(c *clocktest.Virtual) { c.Step(-20 * 365 * 24 * time.Hour) },
		"steps ahead":      func(c *clocktest.Virtual) { c.Step(time.Hour) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newRig(t)
			k := w.claim(nil)
			gen := must(generator.New(generator.WithLease(k), generator.WithStrategy(strategies.BorrowUpTo(100*365*24*time.Hour))))
			fault(w.clock)
			w.keep(k, 20*period, func() { must(gen.Next()) })
			require.InDelta(t, 3*20, w.calls[storetest.OpSwap], 2, "%v", w.calls)
			require.Equal(t, []int{1, 1}, []int{w.calls[storetest.OpList], w.calls[storetest.OpRead]}, "of the claim")
		})
	}
}

// TestFirstExtensionsAreSpread: processes that start at once do not extend at once, and none does later
// than after a third of a window.
func TestFirstExtensionsAreSpread(t *testing.T) {
	w := newRig(t)
	tenths := map[time.Duration]int{}
	for range 200 {
		k := w.claim(nil)
		due := first(k.Poll(t.Context()))
		require.LessOrEqual(t, due, third)
		tenths[min(due*10/third, 9)]++
	}
	for tenth := range time.Duration(10) {
		require.Greater(t, tenths[tenth], 5, "tenth %d: %v", tenth, tenths)
	}
}

// TestTriesWhileTheStoreIsAway: the last try comes just before the grant ends; then they are urgent,
// also if a step of the clock ends it, and callers do not make them more frequent.
func TestTriesWhileTheStoreIsAway(t *testing.T) {
	for _, length := range []time.Duration{5 * time.Second, period, time.Hour} {
		for _, step := range []time.Duration{0, 2 * time.Hour} {
			w := newRig(t)
			c := w.client()
			k := w.claim(c, lease.WithWindow(length))
			gen := w.generator(k)
			_, limit := k.Granted()
			last := noon
			for c.rules = away(); w.clock.Wall().Before(limit); w.clock.Advance(first(k.Poll(t.Context()))) {
				if last = w.clock.Wall(); step != 0 && k.Err() != nil {
					w.clock.Step(step)
				}
			}
			require.True(t, step != 0 || limit.Sub(last) < length/50 && w.trips() < 20, "%s before, %v", limit.Sub(last), w.calls)
			clear(w.calls)
			begin := w.clock.Elapsed()
			for range 10_000 {
				require.ErrorIs(t, second(gen.Next()), generator.ErrNotGranted)
				select {
				case <-k.Window().More(): // the goroutine would look
					require.LessOrEqual(t, first(k.Poll(t.Context())), grant.Urgent)
				default:
				}
				w.clock.Advance(10 * time.Millisecond)
			}
			require.LessOrEqual(t, w.trips(), 2*int((w.clock.Elapsed()-begin)/min(length/4, grant.Urgent)))
			c.rules = nil
			w.clock.Advance(grant.Urgent)
			k.Poll(t.Context())
			must(gen.Next())
		}
	}
}

// TestWishOfAnOutage: a tick far ahead that a call has wanted while the store was away is not granted when it is back.
func TestWishOfAnOutage(t *testing.T) {
	w := newRig(t)
	c := w.client()
	k := w.claim(c)
	far := k.Held().Limit + uint64(20*time.Hour/time.Millisecond)
	c.rules = away()
	k.Window().Want(far)
	w.keep(k, third, func() {})
	c.rules = nil
	w.keep(k, period, func() {})
	require.LessOrEqual(t, k.Stats().Remaining, period)
	k.Window().Want(far)
	w.keep(k, time.Second, func() {})
	require.Greater(t, k.Stats().Remaining, 19*time.Hour, "else it is")
}

// TestLoss has a keeper find that its cell is another's. The log and the error say why. It uses the rest of
// its grant up, and claims another number, or ends if the number was pinned.
func TestLoss(t *testing.T) {
	rows := map[string]string{
		"another name of the write": "claim k bits:0; 15s; write 0; poll k; err k; stats k Conflicts:0 Extensions:1",
		"damaged":                   "claim x bits:1 pin:1; claim k bits:1; close x; 15s; write 0 rubbish; poll k; log 1 'its cell is damaged'; next k; err k; holds k 1",
		"damaged, pinned": `claim k pin:0; 15s; write 0 rubbish; poll k; next k; err k = damaged 'node number 0 cannot be read'
			stats k Conflicts:0 WentBack:0; close k = not-released`,
		"and the next claim lands late": `claim x bits:1 pin:1; claim k bits:1 window:3s; close x; claim s bits:1 pin:0; fate k swap delayed 1+1
			2s; poll k; deliver; 1s; calls; poll k; node k 1; calls 1`, // it is adopted, and not extended at once
	}
	for name, test := range map[string]struct{ happens, log, free, pinned string }{
		"taken": {"claim s bits:1 pin:0 owner:successor", `another process took it" node=0 "ours until"=2029-06-01T12:00:30.000Z holder=successor`,
			"", "node number 0 is held by successor: "},
		"given back": {"release 0", `another process took and released it, or an operator released it" node=0`,
			"", "node number 0 is held by another process: "},
		"a clone's": {"clone k c; poll c", "a copy of this process", "", "node number 0 is held by "},
	} {
		found := "15s; " + test.happens + "; poll k; stats k Conflicts:1 WentBack:0; log 1 'lease: lost, " + test.log + "'; next k;"
		rows[name] = "claim x bits:1 pin:1; claim k bits:1; close x;" + found + "err k " + test.free
		if test.free == "" {
			rows[name] += "; holds k 1; stats k Claims:2"
		}
		rows[name+", pinned"] = "claim k bits:1 pin:0;" + found + "err k = '" + test.pinned + `'
			calls; keep k 14s; next k; keep k 1m; next k = lost held; calls 0
			log 1 'lease: grant ended'`
	}
	scripts(t, rows)
}

// TestGoesOverWithoutAGap: the grant of a lost number is used up before the next one, if that begins ahead
// of the clock; one that was never used is released as it was.
func TestGoesOverWithoutAGap(t *testing.T) {
	const lost = `step 3s; claim x bits:1 pin:0; close x; step -3s; claim k bits:1 window:6s; next k
		claim s bits:1 pin:1; 2s; poll k; holds k 0; node k 1; next k;`
	scripts(t, map[string]string{
		"used up":       lost + "keep k 990ms; node k 1; next k; keep k 10ms; node k 0; next k; keep k 1s; next k",
		"closed before": lost + "close k; holding 0 released 3s",
		"no time left": `step 9s; claim x bits:1 pin:0; close x; step -9s; claim k bits:1 window:6s; next k
			claim s bits:1 pin:1; 2s; poll k; keep k 3.99s; node k 1; next k; keep k 10ms; node k 0; next k = any`,
		"no generator yet": "step 3s; claim x bits:1 pin:0; close x; step -3s; claim k bits:1 window:6s; claim s bits:1 pin:1; 2s; poll k; node k 0",
	})
}

// TestTroubleIsLogged: the log has a line when the kind of the errors changes, when the grant ends, and
// when it is over, and not for each failure.
func TestTroubleIsLogged(t *testing.T) {
	scripts(t, map[string]string{
		"the store fails": `claim k; next k; 10s
			fails k passing; poll k; 9s; fails k refused; poll k; 9s; fails k passing; poll k; fails k refused; keep k 3m
			log 4 'lease: not extended yet'; log 3 'kind=permanent'; log 2 'kind=transient'; log 1 'lease: grant ended'
			err k = 'store refuses since 2029-06-01T12:00:'; next k = ungranted refused
			fails k overloaded; keep k 9s; err k = 'this process gets too little processor time since '
			fails k none; keep k 30s; err k; next k; log 1 'lease: recovered'`,
		"the store answers, and too late": `claim k timeout:1m; on k swap { 1m }; 10s; poll k; log 1 'lease: grant ended'
			log 1 'err="extending the grant took 1m0s, and the window is 30s: choose a longer window"'`,
		"the clock is stepped meanwhile": `claim k timeout:1m; next k; on k swap { 26ms; step 1h }; 10s; poll k; log 1 'lease: grant ended'
			log 1 'err="the clock went ahead by 1h0m0.026s within 26ms, past the grant: IDs go on with'; poll k; next k`,
		"the clock of a test jumps": "claim k; on k swap { 1h }; 10s; poll k; stats k Pauses:0; log 0 resumed; log 0 'processor time'", // no process was stopped
		"a write of an outage lands late": `claim k; fate k swap lost; fate k any away 99; 10s; poll k; keep k 50s; log 1 'lease: grant ended'
			heal k; keep k 30s; next k; log 1 'lease: recovered'; log 1 'lease: grant ended'
			fails k passing; keep k 1m; log 2 'lease: grant ended'`,
	})
}

// TestWentBack: a process that held more than the store knows takes its grant back, says so, raises the
// cell, and goes on above all limits that it saw.
func TestWentBack(t *testing.T) {
	rows := map[string]string{}
	for name, test := range map[string]struct{ before, after, meanwhile, says string }{
		"restored":          {after: "snapshot s", says: "and its limit is 2029-06-01T12:00:30.000Z (tick "},
		"emptied":           {before: "snapshot s", says: "and its cell is gone: "},
		"taken meanwhile":   {after: "snapshot s", meanwhile: "claim n bits:0 pin:0", says: "another process was granted the time from 2029-06-01T12:00:40"},
		"pinned":            {after: "snapshot s; close k; claim k bits:0 pin:0", says: ""},
		"pinned, and taken": {after: "snapshot s; close k; claim k bits:0 pin:0", meanwhile: "claim n bits:0 pin:0", says: ""},
	} {
		rows[name] = test.before + "; claim k bits:0;" + test.after + "; next k; 10s; poll k; 10s; poll k; 10s; poll k; 10s; poll k; back s;" + test.meanwhile + `
			10s; poll k; stats k WentBack:1 Remaining:0s; log 1 level=ERROR; log 1 kind=loss
			err k = went-back '` + test.says + `'; next k = ungranted went-back
			1s; poll k; err k; granted k 1m10s 1m40s; log 1 'lease: recovered'`
	}
	scripts(t, rows)
}

// TestReadOfAnOlderState: it looks as if the store went back, and nothing is issued until another read,
// which tells that it did not. Or no read tells: then the store is named as the cause, and asked again soon.
func TestReadOfAnOlderState(t *testing.T) {
	const begins = `claim k pin:0; remember 0; 15s; poll k; 15s; shows k; fate k swap away;`
	const suspects = `log 1 'level=WARN msg="lease: node number 0 was granted to this process up to 2029-06-01T12:00:45.000Z, and its limit is 2029-06-01T12:00:30.000Z (tick ';`
	const trusts = `next k; stats k WentBack:0; log 1 'level=INFO msg="lease: the store had answered with an older state, and has all writes" node=0';`
	const away = begins + "fate k read away 1+1; poll k;" + suspects + "next k = ungranted store;"
	scripts(t, map[string]string{
		"the next read tells":        begins + "poll k;" + suspects + trusts,
		"the store goes away before": away + "heal k; 1s; poll k;" + trusts + "err k",
		"and another has it now":     away + "claim s pin:0; heal k; 1s; poll k;" + trusts + "err k = lost",
		"no read tells": `claim k pin:0; remember 0; 10s; poll k; claim s pin:0; shows k each; 10s; poll k
			err k = store !conflict 'the store answered with an older state, or went back'; calls; 1s; poll k; calls 16`,
		"no read shows the writes of others": `claim k pin:0; remember 0; claim s pin:0; shows k each; 10s; poll k
			err k = store !conflict 'the store shows a cell and does not extend it, 8 times in a row: it answers reads that are out of date'`,
	})
}

// TestDamagedCells cost their numbers, are left as they are, and are logged once, and no more than 64.
func TestDamagedCells(t *testing.T) {
	many := ""
	for node := range 128 {
		many += fmt.Sprintf("write %d rubbish;", node)
	}
	scripts(t, map[string]string{
		"one": `write 0 rubbish; same 0 { claim k bits:7 locks; node k 1; stats k Failures:1; close k; log 1 level=ERROR
			claim k bits:7 locks; log 2 level=ERROR }`, // of each keeper
		"all":                     many + "claim k bits:7 = 'no free node number: 128 of 128'; log 64 level=ERROR",
		"not even for the engine": "client k; fails k damaged; claim k pin:1 = damaged",
		"written by a newer version": `claim o bits:1 pin:0; write 1 '{"format":2}'; same 1 { claim x bits:1 pin:1 = damaged 'node number 1: ' 'its format is 2, and this process reads format 1: upgrade this process'
			claim x bits:1 = 'no free node number'; reserve 1 1 1h bits:1 = damaged upgrade; release 1 = damaged 'node number 1: '; holding 1 damaged }
			write layout '{"format":2}'; claim x bits:1 = damaged 'cell of the fleet: ' upgrade; reserve 1 1 1h bits:1 = damaged upgrade; 15s; poll o; err o`, // it keeps what it has
	})
}

// stopping is a clock of a process that is stopped in its next wait.
type stopping struct{ wait *atomic.Int64 }

func (stopping) Now() time.Time { return time.Now() }
func (s stopping) After(d time.Duration) <-chan time.Time {
	return time.After(d + time.Duration(s.wait.Swap(0)))
}

// TestResumed stops a process. It says so once if its grant has ended meanwhile, and does not blame the store.
func TestResumed(t *testing.T) {
	const resumed = `level=WARN msg="lease: resumed, 4m0s after its grant ended" node=0 at=`
	const stop = 4*time.Minute + lease.DefaultLocalWindow*2/3
	for name, test := range map[string]struct {
		wait, before, after time.Duration // for so long it is stopped: in a wait, before and after an operation is carried out
		away                bool          // the store, from then on
		want                string        // in the log
	}{
		"in a wait":                      {wait: stop, want: resumed},
		"in a wait, the store goes away": {wait: stop, away: true, want: "processor time, and woke 4m2s late: "},
		"in an operation":                {after: stop, want: resumed},
		"in an operation that fails":     {before: stop, away: true, want: "processor time, and woke 4m0s late: "},
		"not until its grant ends":       {wait: time.Second},
		"for a moment":                   {wait: 100 * time.Millisecond, away: true, want: "store does not answer: swap node/0000000: "},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				store, log := storetest.NewMemory().Locking(), &record{}
				var gone atomic.Bool
				var wait, before, after atomic.Int64
				store.Before = func(context.Context, storetest.Op) storetest.Fault {
					time.Sleep(time.Duration(before.Swap(0)))
					if gone.Load() {
						return storetest.Unavailable
					}
					return storetest.None
				}
				store.After = func(context.Context, storetest.Op) { time.Sleep(time.Duration(after.Swap(0))) }
				wait.Store(int64(test.wait))
				k := must(lease.Claim(t.Context(), store, lease.WithClock(stopping{&wait}), log.option()))
				before.Store(int64(test.before))
				after.Store(int64(test.after))
				gone.Store(test.away)
				time.Sleep(lease.DefaultLocalWindow/3 + stop)
				synctest.Wait()
				assert.Contains(t, log.String(), test.want)
				pauses := 0
				if test.wait+test.before+test.after == stop {
					pauses = 1
				}
				assert.EqualValues(t, pauses, k.Stats().Pauses)
				assert.Equal(t, pauses, log.count(resumed), "%s", log)
				assert.Equal(t, test.away, strings.Contains(log.String(), "lease: grant ended"))
				if test.away {
					time.Sleep(lease.DefaultLocalWindow)
					synctest.Wait()
					assert.ErrorContains(t, k.Err(), "store does not answer since", "later failures are the store's")
				}
				gone.Store(false)
				require.NoError(t, k.Close())
			})
		})
	}
}
