package scorecard

import (
	"context"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/bench/measure"
	"github.com/tickflake/tickflake/bench/peers"
	"github.com/tickflake/tickflake/bench/results"
	"github.com/tickflake/tickflake/bench/yours"
	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/generator/generatortest"
	flake "github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/strategies"
)

func TestMain(m *testing.M) {
	yours.Add(yours.Mine())
	peers.Serve()
	os.Exit(m.Run())
}

func run(progress func(done, of int, what string)) *measure.Run {
	return &measure.Run{Quick: true, Budget: 40 * time.Second, Rand: rand.New(rand.NewPCG(1, 2)), Progress: progress}
}

// few are the rows of three strategies and of the peers: generatortest runs all strategies.
func few() (rows []*row, list []peers.Peer) {
	all, names := newRows()
	for i, r := range all {
		if r.strategy == nil || slices.Contains([]string{"Reject()", "Wait()", defaultName}, r.short) {
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
	for _, fault := range []string{"F1", "F16"} {
		c := cell(t, table(t, measured(), "faults-default"), "yours", fault)
		assert.True(t, c.Text != "" && c.Mark != results.Bad, "%s: it waits, so no ID comes twice", fault)
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
