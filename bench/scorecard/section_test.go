package scorecard

import (
	"context"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/bench/measure"
	"github.com/tickflake/tickflake/bench/peers"
	"github.com/tickflake/tickflake/bench/results"
	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/generator/generatortest"
	flake "github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/strategies"
)

func TestMain(m *testing.M) {
	peers.Serve()
	os.Exit(m.Run())
}

func run(progress func(done, of int, what string)) *measure.Run {
	return &measure.Run{Quick: true, Budget: 40 * time.Second, Rand: rand.New(rand.NewPCG(1, 2)), Progress: progress}
}

// few are all rows, or with the race detector, which makes them twenty times as slow,
// those of three strategies and of the peers.
func few() (rows []*row, list []peers.Peer) {
	all, names := newRows()
	for i, r := range all {
		if !raceDetector || r.strategy == nil || slices.Contains([]string{"Reject()", "Wait()", defaultName}, r.short) {
			rows, list = append(rows, r), append(list, names[i])
		}
	}
	return rows, list
}

func TestRows(t *testing.T) {
	rows, list := newRows()
	require.Len(t, rows, 9*3+len(peers.List()))
	for i, r := range rows {
		assert.Contains(t, list[i].Name, r.short)
		assert.Contains(t, list[i].Name, string(r.setting))
	}
	require.Len(t, Sections(), 1)
	assert.Equal(t, "faults", Sections()[0].ID)
}

// measured is the section, measured once.
var measured = sync.OnceValue(func() results.Section {
	rows, list := few()
	return measureRows(context.Background(), run(func(done, of int, _ string) {
		if done > of {
			panic("more is done than there is")
		}
	}), rows, list)
})

func table(t *testing.T, s results.Section, id string) results.Table {
	t.Helper()
	i := slices.IndexFunc(s.Tables, func(t results.Table) bool { return t.ID == id })
	require.GreaterOrEqual(t, i, 0, "no table %s", id)
	return s.Tables[i]
}

func cell(t *testing.T, table results.Table, row, column string) results.Cell {
	t.Helper()
	r := slices.IndexFunc(table.Rows, func(r results.Row) bool { return r.Name == row })
	c := slices.IndexFunc(table.Columns, func(c results.Column) bool { return c.ID == column })
	require.True(t, r >= 0 && c >= 0, "no cell %s %s", row, column)
	return table.Rows[r].Cells[c]
}

// Every generator has a cell for every fault, and a reason for each fault not run.
func TestCard(t *testing.T) {
	s := measured()
	card := table(t, s, "faults-card")
	rows, _ := few()
	require.Len(t, card.Rows, len(rows))
	require.Len(t, card.Columns, 16)
	how := table(t, s, "faults-how")
	for k, c := range card.Columns {
		assert.Equal(t, generatortest.Catalogue()[k].Fault, c.ID)
	}
	for _, r := range card.Rows {
		require.Len(t, r.Cells, 16, r.Name)
		for k, c := range r.Cells {
			require.NotEmpty(t, c.Text, "%s %s", r.Name, card.Columns[k].ID)
			assert.Equal(t, c.Mark == results.Bad, strings.HasPrefix(c.Text, "✗ "), c.Text)
			assert.Equal(t, c.Mark == results.Good, strings.HasPrefix(c.Text, "✓"), c.Text)
			if c.Text == notRun && r.Group == results.Peers {
				assert.Contains(t, cell(t, how, r.Name, "none").Text, card.Columns[k].ID, r.Name)
			}
		}
	}
	assert.Empty(t, cell(t, how, "tickflake, lease", "none").Text, "all is run")
}

// The quantities are those that package generatortest finds.
func TestQuantities(t *testing.T) {
	s := measured()
	subject := generatortest.Tickflake(strategies.Default(), generatortest.Raw, generator.WithLayout(flake.Default()))
	const name = "tickflake Default(), raw clock"
	sample := func(quantity, fault string) float64 {
		c := cell(t, table(t, s, "faults-"+quantity), name, fault)
		require.Len(t, c.Samples, 1, "%s %s", quantity, fault)
		return c.Samples[0]
	}
	for _, scenario := range generatortest.Catalogue() {
		switch scenario.Fault {
		case "F11", "F12", "F13", "F16": // a new generator is started, or callers take turns as they like
			continue
		}
		want := generatortest.RunScript(subject, scenario.Script)
		assert.Equal(t, want.LongestStall.Seconds(), sample("stall", scenario.Fault), scenario.Fault)
		assert.EqualValues(t, want.Errors, sample("errors", scenario.Fault), scenario.Fault)
		assert.Equal(t, max(0, want.LargestLead).Seconds(), sample("lead", scenario.Fault), scenario.Fault)
		assert.EqualValues(t, want.Duplicates, sample("duplicates", scenario.Fault), scenario.Fault)
		assert.EqualValues(t, want.Disorder, sample("order", scenario.Fault), scenario.Fault)
	}
	assert.Equal(t, "1 ms", cell(t, table(t, s, "faults-stall"), name, "F16").Text, "of one caller, who waits for the next tick")
}

func TestSummary(t *testing.T) {
	s := measured()
	s.ID = "faults"
	require.NoError(t, (&results.Report{Schema: results.Schema, Sections: []results.Section{s}}).Check())
	for _, r := range table(t, s, "faults-summary").Rows {
		all := 0.0
		for _, c := range r.Cells {
			all += c.Samples[0]
		}
		assert.EqualValues(t, 16, all, r.Name)
	}
}

// When the context ends, the missing cells are soon shown as not run.
func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	rows, list := few()
	s := measureRows(ctx, run(func(done, of int, _ string) {
		if done == 60 { // of those that have processes of their own, and a few more
			cancel()
		}
	}), rows, list)
	card := table(t, s, "faults-card")
	missing, there := 0, 0
	for _, r := range card.Rows {
		for _, c := range r.Cells {
			if c.Text == notRun {
				missing++
			} else {
				there++
			}
		}
	}
	assert.Positive(t, there)
	assert.Greater(t, missing, 16*len(card.Rows)/2)
	assert.Contains(t, cell(t, table(t, s, "faults-how"), "segmentio/ksuid", "none").Text, peers.Interrupted)
	cancel()
	nothing := Sections()[0].Measure(ctx, run(func(int, int, string) {}))
	for _, r := range table(t, nothing, "faults-card").Rows {
		for _, c := range r.Cells {
			require.Equal(t, results.Cell{Text: notRun}, c, r.Name)
		}
	}
	assert.Empty(t, verdict(nothing), "nothing is known")
}
