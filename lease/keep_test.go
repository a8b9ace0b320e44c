package lease_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/internal/cell"
	"github.com/tickflake/tickflake/internal/grant"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/monoclock/clocktest"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/stores"
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
			w := newWorld(t)
			k := w.claim(nil)
			gen, err := generator.New(generator.WithLease(k), generator.WithStrategy(strategies.BorrowUpTo(100*365*24*time.Hour)))
			require.NoError(t, err)
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
	w := newWorld(t)
	tenths := map[time.Duration]int{}
	for range 200 {
		k := w.claim(nil)
		due := first(k.Poll(t.Context()))
		require.LessOrEqual(t, due, third)
		tenths[min(due*10/third, 9)]++
		w.clock.Advance(due)
		k.Poll(t.Context())
		require.EqualValues(t, 1, k.Stats().Extensions)
		w.clock.Advance(-due)
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
			w, gone := newWorld(t), away(false)
			k := w.claim(w.client(gone.fault), lease.WithWindow(length))
			gen := w.generator(k)
			_, limit := k.Granted()
			gone = true
			last := noon
			for {
				w.clock.Advance(first(k.Poll(t.Context())))
				if !w.clock.Wall().Before(limit) {
					break
				}
				last = w.clock.Wall()
				if step != 0 && k.Err() != nil {
					w.clock.Step(step)
					break
				}
			}
			if step == 0 {
				require.Less(t, limit.Sub(last), length/50)
				require.Less(t, w.trips(), 20)
			}
			clear(w.calls)
			begin := w.clock.Elapsed()
			for range 10_000 {
				_, err := gen.Next()
				require.ErrorIs(t, err, generator.ErrNotGranted)
				select {
				case <-k.Window().More(): // the goroutine would look
					require.LessOrEqual(t, first(k.Poll(t.Context())), grant.Urgent)
				default:
				}
				w.clock.Advance(10 * time.Millisecond)
			}
			require.LessOrEqual(t, w.trips(), 2*int((w.clock.Elapsed()-begin)/min(length/4, grant.Urgent)))
			gone = false
			w.clock.Advance(grant.Urgent)
			k.Poll(t.Context())
			must(gen.Next())
		}
	}
}

// TestLoss has a keeper find that its cell is another's. The log and the error say why, and it uses the
// rest of its grant up.
func TestLoss(t *testing.T) {
	release := func(w *world, _ *lease.Keeper) {
		require.NoError(w, lease.ForceRelease(w.Context(), w.cells, 5))
	}
	take := func(w *world, _ *lease.Keeper) {
		w.claim(w.cells.Client(), small(3), pin(5), lease.WithOwner("the successor"))
	}
	for name, test := range map[string]struct {
		happens func(*world, *lease.Keeper)
		log     string
		err     string // of a pinned number, that is lost for good; else it claims another
	}{
		"taken":      {take, `another process took it" node=5 "ours until"=2029-06-01T12:00:30.000Z holder="the successor"`, "node number 5 is held by the successor: "},
		"given back": {release, `another process took and released it, or an operator released it" node=5`, "node number 5 is held by another process: "},
		"reserved":   {func(w *world, k *lease.Keeper) { release(w, k); w.reserveNow(5) }, `an operator reserved it, or moved the fleet`, "start this process again"},
		"damaged":    {func(w *world, _ *lease.Keeper) { w.write(cell.NodeKey(5), []byte("rubbish")) }, "its cell is damaged", "cell of node number 5 cannot be read"},
		"a clone's":  {func(w *world, k *lease.Keeper) { w.clone(k).Poll(w.Context()) }, "a copy of this process's memory wrote to it", "node number 5 is held by "},
		"moved": {func(w *world, _ *lease.Keeper) {
			must(lease.Export(w.Context(), w.cells, "new", lease.EvenIfRunning()))
		}, "an operator reserved it, or moved the fleet to another store", "start this process again"},
		"of a rewrite": {func(w *world, _ *lease.Keeper) { w.write(cell.NodeKey(5), w.cells.Peek(cell.NodeKey(5)).Value) }, "", ""},
	} {
		for _, pinned := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, pinned: %t", name, pinned), func(t *testing.T) {
				w := newWorld(t)
				k := w.claim(nil, small(3), pin(5))
				for !pinned {
					require.NoError(t, k.Close())
					if k = w.claim(nil, small(3)); k.Node() == 5 {
						break
					}
				}
				gen := w.generator(k)
				w.clock.Advance(period / 2)
				test.happens(w, k)
				_, limit := k.Granted()
				clear(w.calls)
				k.Poll(t.Context())
				require.Equal(t, name == "damaged", k.Stats().Failures > 0)
				must(gen.Next()) // what is left of the grant is its own
				require.Zero(t, k.Stats().WentBack)
				if test.log == "" {
					require.NoError(t, k.Err())
					require.Zero(t, k.Stats().Conflicts)
					return
				}
				if pinned {
					require.ErrorContains(t, k.Err(), test.err)
				}
				if name == "damaged" && pinned { // until it can be read
					require.ErrorIs(t, k.Err(), stores.ErrDamaged)
					require.ErrorIs(t, k.Close(), lease.ErrNotReleased)
					return
				}
				require.EqualValues(t, 1, k.Stats().Conflicts)
				require.Equal(t, 1, w.log.count(`msg="lease: lost, `+test.log), "%s", w.log)
				if name == "moved" && !pinned {
					require.ErrorIs(t, k.Err(), lease.ErrMoved)
					return
				}
				if !pinned {
					require.NoError(t, k.Err())
					require.NotEqualValues(t, 5, k.Held().Node)
					return
				}
				calls := w.trips()
				w.keep(k, time.Minute, func() {
					if _, err := gen.Next(); w.clock.Wall().Before(limit) {
						require.NoError(t, err)
					} else {
						require.ErrorIs(t, err, lease.ErrLost)
						require.ErrorIs(t, err, lease.ErrHeld)
					}
				})
				require.Equal(t, calls, w.trips(), "it asks for nothing any more")
				require.Equal(t, 1, w.log.count("lease: grant ended"), "%s", w.log)
			})
		}
	}
}

// reserveNow reserves a number as Export does: also while a grant of it has not ended.
func (w *world) reserveNow(node int64) {
	r := must(cell.DecodeNode(w.cells.Peek(cell.NodeKey(node)).Value))
	r.Reserved, r.Write, r.Last = true, "reserved", r.Names()
	r.Limit += 3600_000
	r.Floor = r.Limit
	w.write(cell.NodeKey(node), r.Encode())
}

// clone is a keeper with a copy of k's memory.
func (w *world) clone(k *lease.Keeper, more ...lease.Option) *lease.Keeper {
	return must(k.Clone(w.client(nil), w.options(append([]lease.Option{lease.WithLayout(k.Layout())}, more...)...)))
}

// TestGoesOverWithoutAGap: the grant of a lost number is used up before the next one, if that begins ahead
// of the clock; one that was never used is released as it was.
func TestGoesOverWithoutAGap(t *testing.T) {
	for name, closes := range map[string]bool{"used up": false, "closed before": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.clock.Step(3 * time.Second) // the others begin ahead
			for node := range int64(3) {
				require.NoError(t, w.claim(nil, small(2), pin(node)).Close())
			}
			ahead := w.holding(0).Limit
			w.clock.Step(-3 * time.Second)
			k := w.claim(nil, small(2), lease.WithWindow(6*time.Second))
			require.EqualValues(t, 3, k.Node())
			gen, err := generator.New(generator.WithLease(k), generator.WithStrategy(strategies.BorrowUpTo(time.Millisecond))) // the change costs the rest of the tick
			require.NoError(t, err)
			w.claim(nil, small(2), pin(3))
			nodes := map[int64]bool{}
			last := snowflake.ID(0)
			w.keep(k, 10*time.Second, func() {
				if closes && k.Held().Node != 3 {
					return
				}
				id := must(gen.Next())
				require.Greater(t, id, last)
				last = id
				nodes[must(gen.Layout().Decode(id)).Node] = true
				if closes && !w.clock.Wall().Before(noon.Add(2*time.Second)) {
					k.Poll(t.Context())
				}
				if closes && k.Held().Node != 3 {
					require.EqualValues(t, 3, k.Node(), "it is held back")
					node := k.Held().Node
					require.NoError(t, gen.Close())
					require.Equal(t, lease.Released, w.holding(node).State)
					require.True(t, w.holding(node).Limit.Equal(ahead), "%s, not %s", w.holding(node).Limit, ahead)
				}
			})
			require.Equal(t, !closes, len(nodes) == 2)
		})
	}
}

// TestTroubleIsLogged: the log has a line when the kind of the errors changes, when the grant ends, and
// when it is over, and not for each failure.
func TestTroubleIsLogged(t *testing.T) {
	w := newWorld(t)
	var fails error
	took := time.Duration(0)
	store := failingAll{w.cells.Client(), func() error {
		w.clock.Advance(took)
		took = 0
		return fails
	}}
	k := w.claim(store, lease.WithTimeout(time.Minute))
	gen := w.generator(k)
	next := third
	fail := func(err error, tries int) {
		fails = err
		for range tries {
			w.clock.Advance(next)
			next = first(k.Poll(t.Context()))
		}
	}
	kinds := func(message string) (kinds []string) {
		for line := range strings.Lines(w.log.String()) {
			if _, after, ok := strings.Cut(line, "kind="); ok && strings.Contains(line, message) {
				kinds = append(kinds, strings.Fields(after)[0])
			}
		}
		return kinds
	}
	gone, refused := stores.Passing.New("connection refused"), stores.Refused.New("use another namespace")
	fail(gone, 1)
	fail(refused, 1)
	fail(gone, 1)
	fail(refused, 20)
	require.Equal(t, []string{"passing", "refused", "passing", "refused"}, kinds("lease: not extended yet"), "%s", w.log)
	require.Equal(t, []string{"refused"}, kinds("lease: grant ended"))
	require.Contains(t, k.Err().Error(), "store refuses since 2029-06-01T12:00:")
	_, err := gen.Next()
	granted, ok := errors.AsType[*generator.GrantError](err)
	require.True(t, ok, "%v", err)
	require.Equal(t, stores.Refused, stores.KindOf(granted))
	fail(stores.ErrOverloaded, 1)
	require.Regexp(t, "^this process gets too little processor time since .*: read node/", k.Err())
	fail(nil, 2)
	require.NoError(t, k.Err())
	must(gen.Next())
	require.Equal(t, 1, w.log.count("lease: recovered"))

	took = time.Minute // an extension can come too late although the store answers
	w.pass(time.Minute, k)
	require.Equal(t, 2, w.log.count("lease: grant ended"))
	require.Equal(t, 1, w.log.count(`err="extending the grant took 1m0s, and the window is 30s: choose a longer window"`), "%s", w.log)
}

// failingAll is a store whose calls fail as a function says.
type failingAll struct {
	stores.Store
	err func() error
}

func (f failingAll) Read(ctx context.Context, key string) (stores.Cell, error) {
	if err := f.err(); err != nil {
		return stores.Cell{}, err
	}
	return f.Store.Read(ctx, key)
}

func (f failingAll) Swap(ctx context.Context, key string, version uint64, value []byte) (uint64, error) {
	if err := f.err(); err != nil {
		return 0, err
	}
	return f.Store.Swap(ctx, key, version, value)
}

// TestWentBack: a process that held more than the store knows takes its grant back, says so, raises the
// cell, and goes on above all limits that it saw.
func TestWentBack(t *testing.T) {
	for name, test := range map[string]struct {
		options []lease.Option
		empty   bool // the store has lost everything
		taken   bool // a newcomer has claimed the number meanwhile
		says    string
	}{
		"restored":          {says: "and its limit is 2029-06-01T12:00:30.000Z (tick "},
		"emptied":           {empty: true, says: "and its cell is gone: "},
		"taken meanwhile":   {taken: true, says: "another process was granted the time from 2029-06-01T12:00:"},
		"pinned":            {options: []lease.Option{pin(5)}},
		"pinned, and taken": {options: []lease.Option{pin(5)}, taken: true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			restore := w.cells.Snapshot()
			k := w.claim(nil, test.options...)
			if !test.empty {
				restore = w.cells.Snapshot()
			}
			gen := w.generator(k)
			for range 4 {
				w.clock.Advance(third)
				k.Poll(t.Context())
			}
			node := k.Node()
			_, limit := k.Granted()
			restore()
			if test.taken {
				w.claim(nil, pin(node))
			}
			w.clock.Advance(third)
			k.Poll(t.Context())
			require.ErrorIs(t, k.Err(), stores.ErrWentBack)
			require.ErrorContains(t, k.Err(), test.says)
			require.EqualValues(t, 1, k.Stats().WentBack)
			require.Equal(t, 1, w.log.count("level=ERROR"), "%s", w.log)
			require.Equal(t, 1, w.log.count("kind=loss"))
			_, err := gen.Next()
			require.ErrorIs(t, err, generator.ErrNotGranted, "what is left of the grant is not used")
			require.ErrorIs(t, err, stores.ErrWentBack)

			w.clock.Advance(time.Second)
			k.Poll(t.Context())
			require.NoError(t, k.Err())
			require.False(t, w.holding(node).Limit.Before(limit), "the cell is raised")
			from, _ := k.Granted()
			require.False(t, from.Before(limit), "%s is before %s", from, limit)
			require.Equal(t, 1, w.log.count("lease: recovered"))
		})
	}
}

// outdated is a store whose next read, or each, shows what a cell was once.
type outdated struct {
	*storetest.Memory
	old  *stores.Cell
	each bool
}

func (s *outdated) Read(ctx context.Context, key string) (stores.Cell, error) {
	c, err := s.Memory.Read(ctx, key)
	if err != nil || s.old == nil {
		return c, err
	}
	c = *s.old
	if !s.each {
		s.old = nil
	}
	return c, nil
}

// TestReadOfAnOlderState: it looks as if the store went back, and nothing is issued until another read,
// which tells that it did not.
func TestReadOfAnOlderState(t *testing.T) {
	for name, test := range map[string]struct{ away, taken bool }{
		"the next read tells":                      {},
		"the store goes away before it":            {away: true},
		"it shows that another has the number now": {away: true, taken: true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			store := &outdated{Memory: w.cells}
			client := w.cells.Client()
			k := w.claim(store, pin(5))
			gen := w.generator(k)
			old := store.Peek(cell.NodeKey(5))
			w.clock.Advance(period / 2)
			k.Poll(t.Context())
			w.clock.Advance(period / 2)
			store.old = &old
			store.Before = func(_ context.Context, op storetest.Op) storetest.Fault {
				if isSwap(op) || test.away && store.old == nil {
					return storetest.Unavailable // and so the cell is read
				}
				return storetest.None
			}
			k.Poll(t.Context())
			require.Equal(t, 1, w.log.count(`level=WARN msg="lease: node number 5 was granted to this process up to 2029-06-01T12:00:45.000Z, and its limit is 2029-06-01T12:00:30.000Z (tick `))
			_, err := gen.Next()
			if test.away {
				require.ErrorIs(t, err, generator.ErrNotGranted)
				require.ErrorIs(t, err, lease.ErrStore)
				if test.taken {
					w.claim(client, pin(5))
				}
				store.Before = nil
				w.clock.Advance(time.Second)
				require.Positive(t, first(k.Poll(t.Context())))
				_, err = gen.Next()
			}
			require.NoError(t, err)
			require.Equal(t, 1, w.log.count(`level=INFO msg="lease: the store had answered with an older state, and has all writes" node=5`))
			require.Zero(t, k.Stats().WentBack)
			require.Equal(t, test.taken, errors.Is(k.Err(), lease.ErrLost))
		})
	}
}

// TestReadsStayOutOfDate: the store is named as the cause, and asked again soon.
func TestReadsStayOutOfDate(t *testing.T) {
	for newer, says := range map[int]string{ // writes of the process that the reads do not show
		1: "the store has answered with an older state, or went back",
		0: "the store shows a cell and does not extend it, 8 times in a row: it answers reads that are out of date",
	} {
		w := newWorld(t)
		store := &outdated{Memory: w.cells, each: true}
		client := w.cells.Client()
		k := w.claim(store, pin(5))
		old := store.Peek(cell.NodeKey(5))
		for range newer {
			w.clock.Advance(third)
			k.Poll(t.Context())
		}
		w.claim(client, pin(5))
		store.old = &old
		w.clock.Advance(third)
		next := first(k.Poll(t.Context()))
		require.ErrorIs(t, k.Err(), lease.ErrStore)
		require.NotErrorIs(t, k.Err(), stores.ErrConflict)
		require.ErrorContains(t, k.Err(), says)
		require.LessOrEqual(t, next, period)
		if newer > 0 {
			require.LessOrEqual(t, next, time.Second)
		}
	}
}

// TestDamagedCells cost their numbers, are left as they are, and are logged once, and no more than 64.
func TestDamagedCells(t *testing.T) {
	for _, damaged := range []int{1, 128} {
		w := newWorld(t)
		for node := range int64(damaged) {
			w.write(cell.NodeKey(node), []byte("somebody else's"))
		}
		store := w.cells.Client().Locking()
		for range 3 {
			k, err := w.try(store, small(7), lease.WithTimeout(time.Minute))
			if damaged == 1 {
				require.NoError(t, err)
				require.EqualValues(t, 1, k.Node())
				require.EqualValues(t, 1, k.Stats().Failures)
				require.NoError(t, k.Close())
			}
		}
		require.Equal(t, 3*min(damaged, 64), w.log.count("level=ERROR"), "for each keeper")
		_, err := w.try(failingAll{w.cells, func() error { return &stores.DamagedError{Key: "k", Problem: "cut off"} }}, small(7), pin(1))
		require.ErrorIs(t, err, stores.ErrDamaged) // a file that the engine itself cannot read
		require.Equal(t, "somebody else's", string(w.cells.Peek(cell.NodeKey(0)).Value))
	}
}

var newerVersions = map[string]struct{ begin, says string }{
	"format": {`{"format":2,`, "its format is 2, and this process reads format 1"},
	"field":  {`{"format":1,"more":{"a":1},`, `its field "more" is unknown to this process`},
}

// TestTwoVersions has a newer version write a cell. The older one says where and which version, leaves the
// cell alone, and goes on with other numbers; with a newer layout it claims none, and keeps what it has.
func TestTwoVersions(t *testing.T) {
	for name, newer := range newerVersions {
		for key, where := range map[string]string{cell.NodeKey(1): "node number 1", cell.LayoutKey: "cell of the layout"} {
			t.Run(name+" "+where, func(t *testing.T) {
				w := newWorld(t)
				old := w.claim(nil, small(2), pin(0))
				require.NoError(t, w.claim(nil, small(2), pin(1)).Close())
				theirs := bytes.Replace(w.cells.Peek(key).Value, []byte(`{"format":1,`), []byte(newer.begin), 1)
				w.write(key, theirs)
				refused := []error{
					second(w.try(nil, small(2), pin(1))),
					lease.Reserve(t.Context(), w.cells, 1, 1, noon.AddDate(1, 0, 0), w.options(small(2))...),
					second(lease.Export(t.Context(), w.cells, "new", lease.EvenIfRunning())),
				}
				if key == cell.LayoutKey {
					refused = append(refused, lease.Import(t.Context(), w.cells, lease.Sealed(lease.Floors{Format: 1, Export: "e", Layout: old.Layout().String()})))
				} else {
					refused = append(refused, lease.ForceRelease(t.Context(), w.cells, 1), w.holding(1).Err)
					require.ElementsMatch(t, []int64{2, 3}, []int64{w.claim(nil, small(2)).Node(), w.claim(nil, small(2)).Node()})
					require.Error(t, second(w.try(nil, small(2))), "all others are held")
				}
				for _, err := range refused {
					require.ErrorIs(t, err, stores.ErrDamaged)
					for _, says := range []string{where, newer.says, "upgrade this process"} {
						require.ErrorContains(t, err, says)
					}
					require.NotContains(t, err.Error(), "delete")
				}
				w.pass(period, old)
				require.NoError(t, old.Err())
				require.Equal(t, theirs, w.cells.Peek(key).Value)
			})
		}
	}
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

// TestClaimLandsLate: a claim of unknown outcome that lands is adopted, and no other is written.
func TestClaimLandsLate(t *testing.T) {
	w, swaps, late := newWorld(t), 0, false
	k := w.claim(w.client(func(op storetest.Op) storetest.Fault {
		if isSwap(op) && late {
			if swaps++; swaps == 2 { // the claim that follows the loss
				return storetest.Delayed
			}
		}
		return storetest.None
	}), lease.WithWindow(3*time.Second))
	w.claim(nil, pin(k.Node()))
	late = true
	w.clock.Advance(2 * time.Second)
	k.Poll(t.Context())
	node := nodeOf(w.cells.Late()[0].Key)
	require.True(t, w.cells.Deliver(0))
	w.clock.Advance(time.Second)
	k.Poll(t.Context())
	require.Equal(t, node, k.Node())
	require.Equal(t, 2, swaps)
}
