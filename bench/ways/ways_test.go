package ways

import (
	"context"
	"math/rand/v2"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/bench/measure"
	"github.com/tickflake/tickflake/bench/results"
	"github.com/tickflake/tickflake/internal/rig/servers"
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
