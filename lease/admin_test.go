package lease_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/internal/cell"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/monoclock/clocktest"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/storetest"
)

// at is a clock that differs from the machine's, by which Inspect goes.
func at(d time.Duration) lease.Option {
	return lease.WithClock(clocktest.NewVirtual(time.Now().Add(d)))
}

// TestInspect shows the states of all numbers, and of each. On a Locker the lock says which process is
// alive, and not the time.
func TestInspect(t *testing.T) {
	for name, locks := range map[string]bool{"all hosts": false, "one host": true} {
		t.Run(name, func(t *testing.T) {
			w := newRig(t)
			var store stores.Store = w.cells
			if locks {
				store = w.cells.Locking()
			}
			claim := func(store stores.Store, node int64, ahead time.Duration) *lease.Keeper {
				return w.claim(store, lease.WithNode(node), at(ahead), lease.WithWindow(period), lease.WithOwner(fmt.Sprint("owner ", node)))
			}
			claim(store, 4, 12*time.Minute)
			claim(store, 5, -3*period/2) // the limit is past, by less than a window
			claim(store, 7, -period/2)   // its extension is overdue
			claim(store, 9, 0)
			require.NoError(t, claim(store, 2, 0).Close())
			w.write(cell.NodeKey(3), []byte("rubbish"))
			other := w.cells.Client()
			claim(other.Locking(), 6, -3*period)
			other.Crash()
			for range 2 { // it must not leave a lock behind
				var states []string
				for _, h := range must(lease.List(t.Context(), store)) {
					states = append(states, fmt.Sprint(h.Node, " ", h.State))
					one := must(lease.Inspect(t.Context(), store, h.Node))
					assert.InDelta(t, h.Ahead, one.Ahead, float64(10*time.Second))
					one.Ahead = h.Ahead // it is as of now
					assert.Equal(t, h, one)
					switch {
					case h.Node == 4:
						assert.InDelta(t, 12*time.Minute, h.Ahead, float64(period/6+10*time.Second))
						assert.WithinDuration(t, time.Now().Add(12*time.Minute+period), h.Limit, 10*time.Second)
					case h.Node != 9:
						assert.Zero(t, h.Ahead, "its clock may be right: %d", h.Node)
					}
					if h.State == lease.Damaged {
						require.ErrorIs(t, h.Err, stores.ErrDamaged)
						require.ErrorContains(t, h.Err, "node number 3")
						continue
					}
					assert.Equal(t, []any{period, snowflake.Default().String()}, []any{h.Window, h.Layout.String()})
					assert.Equal(t, h.State == lease.Released, h.Owner == "")
				}
				require.Equal(t, []string{"2 released", "3 damaged", "4 held", "5 held", "6 expired", "7 held", "9 held"}, states)
			}
		})
	}
	assert.Equal(t, "reserved State(9)", fmt.Sprint(lease.Reserved, lease.State(9)))
}

// unlockable is a store whose locks fail, and whose lists lack a damaged cell.
type unlockable struct {
	*storetest.Memory
	err error
}

func (s unlockable) Traits() stores.Traits {
	fail := func(context.Context, string) (func(), error) { return func() {}, s.err }
	return stores.Traits{TryLock: fail}
}

func (s unlockable) List(ctx context.Context, from, to string, limit int) ([]stores.Cell, error) {
	return must(s.Memory.List(ctx, from, to, limit)), &stores.DamagedError{Key: "node/0000008"}
}

// TestInspectFails: on a store that it must not write, the limits tell which numbers are held.
func TestInspectFails(t *testing.T) {
	w := newRig(t)
	w.claim(w.cells, lease.WithNode(7), at(0))
	gone := stores.Transient.New("connection refused")
	for lock, want := range map[error]lease.State{
		stores.Permanent.New("read only"):                                                           lease.Held,
		fmt.Errorf("%w: it is", stores.ErrLocked):                                                   lease.Held,
		fmt.Errorf("lock: %w", &stores.DamagedError{Problem: "its file cannot be used", Err: gone}): lease.Damaged,
	} {
		all, err := lease.List(t.Context(), unlockable{w.cells, lock})
		require.ErrorIs(t, err, stores.ErrDamaged)
		require.Equal(t, want, all[0].State, "%v", lock)
	}
	require.ErrorIs(t, second(lease.List(t.Context(), unlockable{w.cells, gone})), gone)
}

// TestForceRelease: the next holder begins where this one ends, also if this one is alive.
func TestForceRelease(t *testing.T) {
	scripts(t, map[string]string{
		"alive": `claim k pin:7; next k; release 7; holding 7 released 30s; same 7 { release 7 }
			claim o pin:7; granted o 30s 1m0s; next k`,
		"never claimed": "release 7 = never-claimed 'node number 7 was never claimed'",
		"locked": `claim k locks pin:7 owner:seven; same 7 { release 7 locks = held locked seven }
			crash k; release 7 locks; claim k locks pin:7`, // the lock was left to the next
		"damaged":              "write 7 rubbish; same 7 { release 7 = damaged 'node number 7' }",
		"reserved":             "reserve 7 7 1h; same 7 { release 7 = held 'reserved until 2029-06-01T13:00:00' }",
		"it cannot be read":    "client c; fate c read away; release 7 c = store ': read node/0000007: '",
		"it cannot be locked":  "claim k pin:7; client c; fate c lock away; release 7 locks c = store ': lock node/0000007: '",
		"it cannot be written": "claim k pin:7; client c; fate c swap away; same 7 { release 7 c = store ': swap node/0000007: ' }",
		"extended meanwhile":   "claim k pin:7 owner:seven; client c; on c swap { write 7 }; release 7 c = conflict seven; holding 7 held",
	})
}

// TestReserve: whoever knows who is alive, a number that is held is not reserved, and what is reserved is not
// claimed before the date. A later date extends it, an earlier one changes nothing.
func TestReserve(t *testing.T) {
	for _, locks := range []string{"", " locks"} {
		newRig(t).run(strings.ReplaceAll(`claim k bits:2 pin:3 LOCKS; reserve 0 3 4320h0m0.000001s bits:2 LOCKS = held 3
			holding 0 reserved 4320h0m0.001s; holding 2 reserved 4320h0m0.001s
			close k; 1h; claim a bits:2 LOCKS; node a 3; claim b bits:2 LOCKS = '4 of 4 are held or reserved'
			claim b bits:2 pin:1 LOCKS = held 'reserved until 2029-11-28'
			reserve 0 0 5000h bits:2 LOCKS; holding 0 reserved 5000h0m0s; same 0 { reserve 0 0 4320h bits:2 LOCKS }
			close a; reserve 3 3 6000h bits:2 LOCKS; claim b bits:2 LOCKS = '4 of 4 are reserved: wait until 2029-11-28T12:00:00'
			step 4319h0m1s; claim c bits:2 pin:1 window:3s LOCKS; granted c 4320h0m1s 4320h0m4s; holding 1 held`, " LOCKS", locks))
	}
}

func TestReserveRefuses(t *testing.T) {
	scripts(t, map[string]string{
		"no such numbers": "reserve -1 2 1h bits:2 = refused 'want a range within 0 to 3'; reserve 2 1 1h bits:2 = refused; reserve 0 4 1h bits:2 = refused 'want a range'",
		"no such time":    "reserve 0 1 0s bits:2 = refused 'want a time after now'; reserve 0 1 700000h bits:2 = refused 'before the end'",
		"another layout":  "reserve 0 1 1h bits:2; reserve 2 2 1h bits:3 = refused 'the IDs of this store have the layout'",
		// A process that an operator took for dead may issue until the end of its grant.
		"a grant that has not ended": `claim k bits:2 pin:3; release 3; next k; reserve 3 3 1h bits:2 = held 'may be issued until 2029-06-01T12:00:30'
			30s; reserve 3 3 1h bits:2; next k = ungranted`,
		"damaged":        "write 3 rubbish; reserve 3 3 1h bits:2 = damaged 'node number 3'",
		"always written": "claim k bits:2 pin:3; close k; client c; on c swap 99 { write 3 }; reserve 3 3 1h bits:2 c = conflict '8 times in a row'",
	})
}
