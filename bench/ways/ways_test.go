package ways

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/bench/measure"
	"github.com/tickflake/tickflake/bench/results"
	"github.com/tickflake/tickflake/bench/servers"
	"github.com/tickflake/tickflake/snowflake"
)

func quick(t *testing.T, budget time.Duration) *measure.Run {
	return &measure.Run{Quick: true, Budget: budget, Rand: rand.New(rand.NewPCG(1, 2)),
		Progress: func(done, of int, what string) {
			assert.LessOrEqual(t, done, of)
			assert.NotEmpty(t, what)
		}}
}

func check(t *testing.T, s results.Section) {
	s.ID = "ways"
	require.NoError(t, (&results.Report{Schema: results.Schema, Sections: []results.Section{s}}).Check())
}

// On real servers, where they are installed.
func TestAllWays(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs six servers")
	}
	defer func(n int) { callers = n }(callers)
	callers = 50
	section := Sections()[0].Measure(t.Context(), quick(t, time.Second)) // so it does the least
	check(t, section)
	if os.Getenv("TICKFLAKE_REQUIRE_SERVERS") == "1" {
		require.Empty(t, section.Skipped, section.Notes)
		require.NotContains(t, strings.Join(section.Notes, "\n"), "does not run here")
	}
	if section.Skipped != "" {
		t.Skip(section.Skipped, section.Notes)
	}
	table := section.Table("ways")
	require.Len(t, table.Rows, len(list()))
	for _, row := range table.Rows {
		if len(row.Cells[0].Samples) == 0 {
			assert.Contains(t, row.Note, "is not installed", row.Name)
			continue
		}
		for i := range 3 {
			assert.GreaterOrEqual(t, len(row.Cells[i].Samples), 2, row.Name)
			assert.Greater(t, row.Cells[i].Median(), 0.0, row.Name)
		}
		if row.Group != results.Floor {
			assert.Contains(t, row.Cells[3].Text, "none of ", row.Name)
			assert.Equal(t, results.Good, row.Cells[3].Mark, row.Name)
		}
	}
	for _, row := range section.Table("crowd").Rows {
		if len(table.Cell(row.Name, "1").Samples) > 0 {
			assert.Greater(t, row.Cells[0].Median(), 0.0, row.Name)
		}
	}
	assert.Regexp(t, `tickflake takes [0-9.]+ [nµm]?s per ID`, verdict(section))
	assert.NotContains(t, verdict(section), "issued IDs twice")
	for _, note := range section.Notes {
		assert.NotContains(t, note, "failed")
	}
}

// pretend is servers of which none is asked.
func pretend() []*servers.Server {
	r := make([]*servers.Server, len(wanted))
	for i, w := range wanted {
		r[i] = &servers.Server{Kind: w.Kind, Version: "1.0"}
	}
	return r
}

func fake(name string, next func(client int) func(context.Context) (int64, error)) way {
	return way{name: name, group: results.Peers, needs: []place{postgres},
		open: func(_ context.Context, _ []*servers.Server, number int) (client, error) {
			return client{next: next(number), close: func() error { return nil }}, nil
		}}
}

// good counts, for all clients.
func good() way {
	w, _ := counting()
	return w
}

func counting() (way, *atomic.Int64) {
	last := new(atomic.Int64)
	return fake("good", func(int) func(context.Context) (int64, error) {
		return func(context.Context) (int64, error) { return last.Add(1), nil }
	}), last
}

// Each client counts by itself, so that the second repeats the first.
func TestRepeatedIDsAreFound(t *testing.T) {
	bad := fake("bad", func(int) func(context.Context) (int64, error) {
		var last atomic.Int64
		return func(context.Context) (int64, error) { return last.Add(1), nil }
	})
	good, last := counting()
	section := measureOn(t.Context(), quick(t, 10*time.Millisecond), time.Now(), pretend(), []way{good, bad})
	section.Tables[0].Base = "" // tickflake is not among them
	check(t, section)
	cell := section.Tables[0].Cell("bad", "twice")
	assert.Equal(t, results.Bad, cell.Mark)
	assert.Regexp(t, `^[\d,]+ of [\d,]+$`, cell.Text)
	cell = section.Tables[0].Cell("good", "twice")
	assert.Equal(t, results.Good, cell.Mark)
	assert.Equal(t, "none of "+results.Figure(float64(last.Load())), cell.Text, "all are looked at")
}

func TestRepeats(t *testing.T) {
	assert.Zero(t, repeats(nil))
	assert.Zero(t, repeats([]int64{3, 1, 2}))
	assert.Equal(t, 3, repeats([]int64{5, 1, 5, 2, 1, 5}))
}

func TestWaysThatFail(t *testing.T) {
	broken := errors.New("disk full")
	var calls atomic.Int64
	soon := fake("fails soon", func(int) func(context.Context) (int64, error) {
		return func(context.Context) (int64, error) {
			if n := calls.Add(1); n < 5 {
				return n, nil
			}
			return 0, broken
		}
	})
	never := good()
	never.name = "cannot be opened"
	never.open = func(context.Context, []*servers.Server, int) (client, error) { return client{}, broken }
	missing := good()
	missing.name, missing.needs = "has no server", []place{zooKeeper}
	r := pretend()
	r[zooKeeper].Err = errors.New("zookeeper is not installed")

	section := measureOn(t.Context(), quick(t, 10*time.Millisecond), time.Now(), r, []way{good(), soon, never, missing})
	table, notes := section.Tables[0], strings.Join(section.Notes, "\n")
	assert.NotEmpty(t, table.Cell("good", "1").Samples)
	for _, name := range []string{"fails soon", "cannot be opened", "has no server"} {
		assert.Empty(t, table.Cell(name, "1").Samples, name)
		assert.Contains(t, noteOf(table, name), "not measured", name)
	}
	assert.Contains(t, noteOf(table, "fails soon"), "disk full")
	assert.Contains(t, noteOf(table, "cannot be opened"), "open client 1: disk full")
	assert.Contains(t, notes, "ZooKeeper does not run here, so its ways are not measured: zookeeper is not installed.")
}

func noteOf(t results.Table, row string) string {
	return t.Rows[slices.IndexFunc(t.Rows, func(r results.Row) bool { return r.Name == row })].Note
}

func TestNoServers(t *testing.T) {
	r := pretend()
	for _, s := range r {
		s.Err = errors.New("it is not installed")
	}
	section := measureOn(t.Context(), quick(t, time.Minute), time.Now(), r, list())
	check(t, section)
	assert.NotEmpty(t, section.Skipped)
	assert.Empty(t, section.Tables)
	assert.Contains(t, section.Notes, "MariaDB does not run here, so its ways are not measured: it is not installed.")
}

func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var calls atomic.Int64
	stops := fake("stops", func(int) func(context.Context) (int64, error) {
		return func(ctx context.Context) (int64, error) {
			n := calls.Add(1)
			if n == 400_000 {
				cancel()
			}
			return n, ctx.Err()
		}
	})
	run := quick(t, time.Hour)
	section := measureOn(ctx, run, time.Now(), pretend(), []way{good(), stops})
	assert.NotEmpty(t, section.Tables[0].Cell("stops", "1").Samples, "what there was")
	assert.NotContains(t, noteOf(section.Tables[0], "stops"), "not measured")
}

// A way is faster than tickflake if more than chance says so.
func TestVerdict(t *testing.T) {
	section := func(ours, theirs []float64, twice results.Mark) results.Section {
		return results.Section{Tables: []results.Table{{ID: "ways", Columns: []results.Column{{ID: "1", Better: results.Less}, {ID: "twice"}}, Rows: []results.Row{
			{Name: aloneName, Group: results.Ours, Cells: []results.Cell{{Samples: ours}, {}}},
			{Name: "counter", Group: results.Peers, Cells: []results.Cell{{Samples: theirs}, {Mark: twice}}},
		}}}}
	}
	const start = "tickflake takes 7 µs per ID"
	ours := []float64{5, 6, 7, 8, 9}
	assert.Equal(t, start+"; faster: counter.", verdict(section(ours, []float64{1, 2, 3, 4, 4.5}, results.Good)))
	assert.Equal(t, start+", and no other way is measurably faster.", verdict(section(ours, []float64{4, 5.5, 6.5, 7.5, 9.5}, results.Good)))
	assert.Contains(t, verdict(section(ours, nil, results.Bad)), "; counter issued IDs twice.")
	assert.Empty(t, verdict(section(nil, []float64{1}, results.Good)))
}

// A generator at its ceiling takes what the ceiling says, and not less because a slice
// begins with the rest of a tick.
func TestSlicesAreWholeTicks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const tick = 1 << 12
		require.EqualValues(t, tick, 1<<snowflake.Default().SequenceBits)
		s := &subject{way: fake("capped", func(int) func(context.Context) (int64, error) {
			n := int64(0)
			return func(context.Context) (int64, error) {
				if n++; n%tick == 0 {
					time.Sleep(time.Millisecond) // virtual
				}
				return n, nil
			}
		})}
		for _, run := range []*measure.Run{quick(t, time.Millisecond), {Budget: time.Millisecond, Rand: rand.New(rand.NewPCG(1, 2))}} {
			s.open(t.Context(), pretend())
			measureAll(t.Context(), run, time.Now(), []*subject{s})
			for _, clients := range clientCounts {
				require.NotEmpty(t, s.perID[clients])
				for _, us := range s.perID[clients] {
					assert.InEpsilon(t, 1000.0/tick, us, 1e-9)
				}
			}
		}
	})
}
