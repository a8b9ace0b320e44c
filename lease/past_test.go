package lease_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/internal/cell"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/storetest"
)

// TestGivePast: what is given to the past, what is refused and why, and what cells say then. Each row begins with a fleet
// of 8 numbers; its words are
//
//	give FROM TO [unused] [bucket=D] [lane=N], retire FROM TO, reserve FROM TO
//	claim N      a process claims the number and releases it
//	delete N     an operator deletes its cell
//	draw N       a process draws a lane of it
//	stale        the next read of a definition is of the time before it
//	lose         a write is carried out, and its answer lost; the next act tries again
//	= STATES     the states of the numbers, a letter each: . never written, p past, r retired, x released, R reserved
//	! TEXT       the act before failed, with that text
func TestGivePast(t *testing.T) {
	for name, row := range map[string]struct {
		floor  time.Duration
		script string
	}{
		"given, and again":   {0, "give 6 7; = ......pp; give 6 7; = ......pp; give 5 7; = .....ppp"},
		"one was held":       {0, "claim 3; give 2 4; ! node number 3: its cell was written before: IDs may have been issued with it: of the 8 of this store 7 were never used, such as; = ...x...."},
		"all were held":      {0, "claim 0; claim 1; claim 2; claim 3; claim 4; claim 5; claim 6; claim 7; give 7 7; ! so were all 8 of this store: give numbers to the past when a fleet is created"},
		"reserved":           {0, "reserve 3 3; give 3 3; ! its cell was written before; = ...R...."},
		"outside":            {0, "give 7 8; ! want a range within 0 to 7"},
		"a floor":            {time.Hour, "give 6 7; ! the fleet has a floor: below it, another store may have issued IDs with it: if no ID was ever issued with it, say so: --unused; give 6 7 unused; = ......pp"},
		"not claimed":        {0, "give 6 7; claim 7; ! node number 7 was given to the past, for good: use another number; = ......pp"},
		"other lanes":        {0, "give 6 6; give 7 7 lane=8; ! all past numbers of a store have the same; give 7 7 bucket=1h; ! all past numbers of a store have the same; = ......p."},
		"bad lanes":          {0, "give 6 6 lane=3; ! lane of 3 slots: want a power of two; give 6 6 lane=8192; ! from 1 to the 4096 slots; give 6 6 bucket=1ns; ! bucket 1ns: want a multiple of the tick; = ........"},
		"retired":            {0, "give 6 7; retire 6 6; = ......rp; retire 6 6; = ......rp; give 6 6; ! its cell was written before; give 5 5; ! was retired, or its cell deleted; give 5 5 unused; = .....prp"},
		"retired, unknown":   {0, "retire 7 7; = .......r; claim 7; ! given to the past; claim 3; retire 3 3; ! was not given to the past"},
		"raised":             {0, "give 6 7; reserve 0 7; = RRRRRRrr; reserve 0 7; = RRRRRRrr; give 5 5; ! its cell was written before"},
		"its cell deleted":   {0, "give 7 7; draw 7; delete 7; = ........; give 7 7; ! was retired, or its cell deleted; = ........"},
		"the first act ends": {0, "lose; give 6 7; ! cannot be reached; give 6 7; = ......pp"},
		"a stale read":       {0, "lose; give 6 7; ! cannot be reached; stale; give 6 7; = ......pp"},
		"the next one":       {0, "lose; lose; give 6 7; ! cannot be reached; give 6 7; = ......pp"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				m, f := storetest.NewMemory(), lease.Fleet{Layout: smallLayout(3), From: 0, To: 7}
				f.Layout.SequenceBits = 12
				if row.floor > 0 {
					f.Floor = time.Now().Add(-row.floor)
				}
				require.NoError(t, lease.SetFleet(t.Context(), m, f))
				lose, writes, stale := 0, 0, false
				old := func(s stores.Store) stores.Store { return staleLanes{s, &stale} }
				m.Before = func(_ context.Context, op storetest.Op) storetest.Fault {
					if op.Kind == storetest.OpSwap {
						writes++
					}
					if lose > 0 && op.Kind == storetest.OpSwap {
						if lose--; lose == 0 {
							return storetest.ReplyLost
						}
					}
					return storetest.None
				}
				var failed error
				for act := range strings.SplitSeq(row.script, "; ") {
					verb, rest, _ := strings.Cut(act, " ")
					if verb == "!" {
						require.ErrorContains(t, failed, rest)
						failed = nil
						continue
					}
					require.NoError(t, failed, act)
					var from, to int64
					_, _ = fmt.Sscan(rest, &from, &to)
					switch verb {
					case "=":
						require.Equal(t, rest, states(t, m, 8))
					case "stale":
						stale = true
					case "lose":
						lose++
					case "give":
						p := lease.Past{From: from, To: to, Unused: strings.Contains(rest, "unused")}
						for _, word := range strings.Fields(rest) {
							if name, value, _ := strings.Cut(word, "="); name == "lane" {
								p.Lane = must(strconv.ParseInt(value, 10, 64))
							} else if name == "bucket" {
								p.Bucket = must(time.ParseDuration(value))
							}
						}
						before := writes
						looked := lease.CheckPast(t.Context(), m, p, lease.WithLayout(f.Layout))
						require.Equal(t, before, writes, "a look writes nothing")
						failed = lease.GivePast(t.Context(), old(m), p, lease.WithLayout(f.Layout))
						if looked != nil {
							require.Equal(t, looked, failed)
							require.Equal(t, before, writes, "nor does what is refused")
						}
					case "retire":
						before := writes
						looked := lease.CheckPast(t.Context(), m, lease.Past{From: from, To: to, Retired: true})
						require.Equal(t, before, writes)
						failed = lease.RetirePast(t.Context(), m, from, to)
						require.Equal(t, looked, failed)
					case "reserve":
						failed = lease.Reserve(t.Context(), m, from, to, time.Now().Add(time.Hour), lease.WithLayout(f.Layout))
					case "claim":
						var k *lease.Keeper
						if k, failed = lease.Claim(polled(t.Context()), m, lease.WithLayout(f.Layout), lease.WithNode(from)); failed == nil {
							require.NoError(t, k.Close())
						} else {
							require.ErrorIs(t, failed, lease.ErrHeld)
							require.ErrorIs(t, failed, stores.Permanent)
						}
					case "draw":
						lanes := must(cell.NewLanes(f.Layout, 24*time.Hour, 16)).Cell()
						lanes.Write, lanes.Writes, lanes.Next, lanes.Most = "w", 1, 1, 1
						failed = second(m.Swap(t.Context(), cell.LaneKey(from, 7), 0, lanes.Encode()))
					case "delete":
						kept := storetest.NewMemory()
						for _, c := range must(m.List(t.Context(), "", "z", 100)) {
							if c.Key != cell.NodeKey(from) {
								must(kept.Swap(t.Context(), c.Key, 0, c.Value))
							}
						}
						m = kept
					}
				}
				require.NoError(t, failed)
			})
		})
	}
}

// staleLanes reads no definition of lanes once if *now.
type staleLanes struct {
	stores.Store
	now *bool
}

func (s staleLanes) Read(ctx context.Context, key string) (stores.Cell, error) {
	if _, ok := cell.PastOf(key); ok && *s.now {
		*s.now = false
		return stores.Cell{Key: key}, nil
	}
	return s.Store.Read(ctx, key)
}

// states are those of the numbers of a store.
func states(t *testing.T, s stores.Store, n int) string {
	t.Helper()
	text := []byte(strings.Repeat(".", n))
	for _, h := range must(lease.List(t.Context(), s)) {
		text[h.Node] = map[lease.State]byte{lease.OfPast: 'p', lease.Retired: 'r', lease.Released: 'x', lease.Reserved: 'R'}[h.State]
		if h.State == lease.OfPast {
			require.ErrorIs(t, lease.ForceRelease(t.Context(), s, h.Node), lease.ErrHeld)
		}
	}
	return string(text)
}

// TestPastIsNoWitness: the limits of past numbers, at the end of time, tell a claim nothing of clocks, and one that finds
// no other number says so.
func TestPastIsNoWitness(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		layout := smallLayout(2)
		require.NoError(t, lease.GivePast(t.Context(), r.cells, lease.Past{From: 1, To: 3, Lane: 1}, lease.WithLayout(layout)))
		wider := layout
		wider.TimeBits++
		k := r.claim(r.client(), lease.WithLayout(wider), lease.WithStrictFleetCheck())
		require.Zero(t, k.Node())
		_, err := r.try(r.client(), lease.WithLayout(wider))
		full, ok := errors.AsType[*lease.NoFreeNodeError](err)
		require.True(t, ok, err)
		require.EqualValues(t, 4, full.Held)
		require.NotContains(t, r.log.String(), "WARN")
	})
}
