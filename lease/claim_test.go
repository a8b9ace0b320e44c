package lease_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/internal/cell"
	"github.com/tickflake/tickflake/internal/grant"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/monoclock/clocktest"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/stores/storetest"
)

// TestClaimOptions: an option out of range is refused by its name, before a call of the store.
func TestClaimOptions(t *testing.T) {
	hour := snowflake.Layout{Epoch: noon.AddDate(-3, 0, 0), Tick: time.Hour, TimeBits: 30, NodeBits: 4, SequenceBits: 8}
	wide := snowflake.Layout{Epoch: noon.AddDate(-3, 0, 0), Tick: time.Second, TimeBits: 32, NodeBits: 30, SequenceBits: 1}
	at := func(at time.Time) lease.Option { return lease.WithClock(clocktest.NewVirtual(at)) }
	end := snowflake.Default().End()
	for name, test := range map[string]struct {
		refused string // the option, or "" if none is
		options []lease.Option
	}{
		"the shortest window":       {"", []lease.Option{lease.WithWindow(6 * time.Millisecond)}},
		"too short a window":        {"WithWindow", []lease.Option{lease.WithWindow(6*time.Millisecond - 1)}},
		"the longest window":        {"", []lease.Option{lease.WithWindow(366 * 24 * time.Hour)}},
		"too long a window":         {"WithWindow", []lease.Option{lease.WithWindow(366*24*time.Hour + 1)}},
		"ticks of an hour":          {"", []lease.Option{lease.WithLayout(hour)}}, // the default window is made longer
		"few ticks of an hour":      {"WithWindow", []lease.Option{lease.WithLayout(hour), lease.WithWindow(5 * time.Hour)}},
		"no timeout":                {"WithTimeout", []lease.Option{lease.WithTimeout(0)}},
		"the longest owner":         {"", []lease.Option{lease.WithOwner(strings.Repeat("o", 200))}},
		"an owner of long escapes":  {"WithOwner", []lease.Option{lease.WithOwner(string(make([]byte, 200)))}},
		"too long an owner":         {"WithOwner", []lease.Option{lease.WithOwner(strings.Repeat("o", 201))}},
		"no clock":                  {"WithClock", []lease.Option{lease.WithClock(nil)}},
		"no logger":                 {"WithLogger", []lease.Option{lease.WithLogger(nil)}},
		"no option":                 {"Claim", []lease.Option{nil}},
		"no layout":                 {"WithLayout", []lease.Option{lease.WithLayout(snowflake.Layout{})}},
		"at the end of time":        {"WithLayout", []lease.Option{at(end)}},
		"before the epoch":          {"WithClock", []lease.Option{at(snowflake.Default().Epoch.Add(-1))}},
		"a number below zero":       {"WithNode", []lease.Option{lease.WithNode(-1)}},
		"a number above all":        {"WithNode", []lease.Option{lease.WithNode(1024)}},
		"the last number of stores": {"", []lease.Option{lease.WithLayout(wide), lease.WithNode(1<<22 - 1)}}, // whatever the layout has
		"above the last number":     {"WithNode", []lease.Option{lease.WithLayout(wide), lease.WithNode(1 << 22)}},
	} {
		w := newRig(t)
		k, err := w.try(nil, test.options...)
		byItself := lease.CheckOptions(t.Context(), test.options...)
		if test.refused != "" {
			w.refuses(test.refused, err)
			assert.Zero(t, w.trips(), name)
			if !strings.Contains(err.Error(), "2025-01-01") { // the others depend on the time
				w.refuses(test.refused, byItself)
			}
			continue
		}
		require.NoError(t, err, name)
		require.NoError(t, byItself, name)
		require.GreaterOrEqual(t, k.Stats().Window, 6*k.Layout().Tick, name)
		require.NoError(t, k.Close())
	}
	for name, call := range hangCalls {
		if !strings.HasPrefix(name, "Keeper.") {
			newRig(t).refuses(name, call(hanging{Context: t.Context()}))
			newRig(t).refuses(name, call(hanging{t.Context(), (*storetest.Memory)(nil), nil}))
		}
	}
}

// TestClaimCosts: a claim takes few calls, on an empty store and among many processes.
func TestClaimCosts(t *testing.T) {
	w := newRig(t)
	k := w.claim(nil)
	require.LessOrEqual(t, w.trips(), 4, "on an empty store, the layout included")
	value := w.cells.Peek(cell.NodeKey(k.Node())).Value
	for node := range int64(1000) {
		w.write(cell.NodeKey(node), value)
	}
	for range 20 {
		clear(w.calls)
		w.claim(nil)
		require.LessOrEqual(t, w.trips(), 5, "with 1,000 of 1,024 numbers taken")
	}
}

// TestClaimFails has a claim meet what ends it. With a deadline it waits, unless no wait helps.
func TestClaimFails(t *testing.T) {
	ages := string(cell.Node{Holder: "h", Limit: 1, Window: math.MaxUint64, Write: "w", Layout: smallLayout(0).String()}.Encode())
	left := snowflake.Default().End().Sub(noon) - time.Second
	for name, test := range map[string]struct {
		prepare, claim, fails string
		once                  bool
	}{
		"the store is away":      {"client k; fate k read:layout away 99", "", "store 'store does not answer: read layout: '", false},
		"the store refuses":      {"client k; fails k refused", "", "refused 'store refuses: read layout: use another namespace'", true},
		"all numbers are held":   {"claim a bits:0; client k", "bits:0", "'1 of 1 are held'", false},
		"a window of ages":       {"claim a bits:0; write 0 '" + ages + "'; client k", "bits:0", "'1 of 1 are held'", false},
		"the number is held":     {"claim a pin:1 locks owner:red\x1b[31m\u202ehost; client k", "pin:1 locks", "held 'held by red?[31m?host: '", false},
		"the number is reserved": {"reserve 1 1 8760h; client k", "pin:1", "held refused 'is reserved until 2030-06-01'", true},
		"the layout is another":  {"claim a bits:8; client k", "bits:7", "refused 'the IDs of this store have the layout'", true},
		"the fleet is damaged":   {"write layout rubbish; client k", "", "damaged 'cell of the fleet: '", true},
		"the number is damaged":  {"write 1 rubbish; client k", "pin:1", "damaged 'node number 1 cannot be read: '; log 0 level=ERROR", true},
		"no time is left":        {fmt.Sprintf("step %s; claim a bits:0; granted a %[1]s %s; 1ms; client k", left, left+time.Second), "bits:0", "end", true},
	} {
		t.Run(name, func(t *testing.T) {
			newRig(t).run(test.prepare + "; claim k " + test.claim + " = !canceled " + test.fails + "; log 0 'lease: waiting'")
			ends := "!canceled " + test.fails + "; log 0 'lease: waiting'"
			if !test.once {
				ends = "canceled cause " + test.fails + "; log 1 'lease: waiting for a node number'"
			}
			r := newRig(t)
			r.run(strings.Replace(test.prepare, "client k", "client k; on k read:layout 1+3 { cancel }", 1) + "; claim k deadline " + test.claim + " = " + ends)
		})
	}
}

// TestClaimWaits: with a deadline, a claim on a full store gets the first number that is free: two windows
// after the last sign of life, or one after the end of the grant.
func TestClaimWaits(t *testing.T) {
	r := newRig(t)
	r.run("claim a bits:1 window:1m; 1s; claim b bits:1 window:1m; 1s; claim k bits:1 = 'no free node number: 2 of 2 are held or reserved'")
	begin := r.clock.Elapsed()
	r.run("claim c bits:1 deadline; err c")
	require.InDelta(t, 2*time.Minute, r.clock.Elapsed()-begin, float64(grant.Urgent))
}

// TestSameFleet: the names of parts make no other layout; all else does.
func TestSameFleet(t *testing.T) {
	w := newRig(t)
	ours := smallLayout(8)
	w.claim(nil, lease.WithLayout(ours))
	for i, change := range []func(*snowflake.Layout){
		func(l *snowflake.Layout) { l.Parts = []snowflake.Part{{Name: "a", Bits: 3}, {Name: "b", Bits: 5}} },
		func(l *snowflake.Layout) { l.TimeBits-- }, func(l *snowflake.Layout) { l.NodeBits-- }, func(l *snowflake.Layout) { l.SequenceBits-- }, func(l *snowflake.Layout) { l.Tick *= 2 },
		func(l *snowflake.Layout) { l.Epoch = l.Epoch.Add(time.Second) }, func(l *snowflake.Layout) { l.Order = snowflake.TimeSequenceNode },
	} {
		other := smallLayout(8)
		change(&other)
		_, err := w.try(nil, lease.WithLayout(other))
		mismatch, _ := errors.AsType[*lease.LayoutMismatchError](err)
		require.Equal(t, i > 0, mismatch != nil)
		require.True(t, i == 0 || assert.ObjectsAreEqual(&lease.LayoutMismatchError{Ours: other, Theirs: ours}, mismatch), "%v", err)
	}
}

// TestLocks: on a Locker the lock holds a number, however long its process is silent, and a claim that fails
// after it gives it back.
func TestLocks(t *testing.T) {
	scripts(t, map[string]string{
		"held":                            "claim k locks pin:1; 1h; claim o locks pin:1 = held locked; close k; claim o locks pin:1",
		"another is faster":               "client k; on k swap:node { claim o pin:7 }; claim k pin:7 = held conflict !store",
		"others are faster, all the time": "client k; on k swap:node 99 { write it }; claim k = conflict '8 times in a row: many processes claim at once'",
	})
	other := "'" + string(cell.Node{Limit: 7, Write: "w", Layout: smallLayout(9).String()}.Encode()) + "'"
	for _, fails := range []string{
		"fate k read:node away 1+1", "fate k swap:node away 9", "fate k swap:node away 9; fate k read:node away 1+2",
		"on k read:node 1+1 { write 1 rubbish }", "on k read:node 1+1 { write 1 " + other + " }",
	} {
		r := newRig(t)
		r.run("client k; " + fails + "; claim k locks pin:1 = !held")
		unlock, err := r.cells.Client().Locking().Traits().TryLock(t.Context(), cell.NodeKey(1))
		require.NoError(t, err, fails)
		unlock()
	}
}

// lateTimer is a context whose timer is late: its deadline has passed, and it has not ended.
type lateTimer struct{ context.Context }

func (lateTimer) Deadline() (time.Time, bool) { return time.Unix(0, 0), true }

// TestReasonAtALateDeadline: a claim that gives up says why it waited, and not that its last try was
// interrupted, as a store does that knows by the clock that the deadline has passed.
func TestReasonAtALateDeadline(t *testing.T) {
	r := newRig(t)
	r.run("claim o locks pin:7; client k; fate k any away 9999999+4")
	ctx, cancel := context.WithTimeout(t.Context(), time.Second) // only a claim that waits for its end takes so long
	defer cancel()
	r.clock.AutoAdvance(true)
	_, err := lease.Claim(polled(lateTimer{ctx}), locker{r.members["k"].via}, r.options(lease.WithNode(7))...)
	require.ErrorIs(t, err, lease.ErrHeld)
	require.ErrorIs(t, err, context.DeadlineExceeded)
}
