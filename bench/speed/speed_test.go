package speed

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/bench/cases"
	"github.com/tickflake/tickflake/bench/measure"
	"github.com/tickflake/tickflake/bench/results"
	"github.com/tickflake/tickflake/bench/yours"
)

func init() { yours.Add(yours.Mine()) }

func newRun(budget time.Duration) *measure.Run {
	return &measure.Run{Quick: true, Budget: budget, Rand: rand.New(rand.NewPCG(1, 2))}
}

func check(t *testing.T, id string, s results.Section) {
	s.ID = id
	require.NoError(t, (&results.Report{Schema: results.Schema, Sections: []results.Section{s}}).Check())
}

// In the least that a section can be given, it fills every cell, that of an added generator
// too, and leaves its targets open.
func TestSectionsFillEveryCell(t *testing.T) {
	for _, section := range Sections() {
		t.Run(section.ID, func(t *testing.T) {
			s := section.Measure(t.Context(), newRun(time.Millisecond))
			check(t, section.ID, s)
			assert.NotEmpty(t, section.About)
			section.Verdict(s) // a run this short may have nothing to say; TestFigures holds its sentences
			require.NotEmpty(t, s.Tables)
			assert.True(t, slices.ContainsFunc(s.Tables[0].Rows, func(r results.Row) bool { return r.Name == "yours" }))
			for _, table := range s.Tables {
				require.NotEmpty(t, table.Rows)
				for _, row := range table.Rows {
					for i, cell := range row.Cells {
						assert.True(t, len(cell.Samples) > 0 || cell.Text != "", "%s, %s, %s is empty", table.ID, row.Name, table.Columns[i].ID)
						assert.NotEqual(t, "failed", cell.Text)
					}
				}
			}
			require.NotEmpty(t, s.Targets)
			for _, target := range s.Targets {
				assert.NotEmpty(t, target.Open, target.ID)
				assert.Equal(t, results.Open, target.State(), target.ID)
			}
		})
	}
}

// Each round takes another source of a case and of its base, and all are closed.
func TestRoundsOfAGridTakeOtherPlaces(t *testing.T) {
	places := map[string][]int{} // in which the rounds were, by case
	closed := map[string]int{}
	counting := func(name string) cases.Case {
		opens := 0
		return cases.Case{Name: name, Open: func(ctx context.Context) (cases.Source, error) {
			place := opens
			opens++
			floor, err := cases.Floor().Open(ctx)
			return cases.Source{
				Loop: func() cases.Loop {
					loop := floor.Loop()
					return func(n int) error {
						places[name] = append(places[name], place)
						return loop(n)
					}
				},
				Close: func() error { closed[name]++; return nil },
			}, err
		}}
	}
	measureGrid(t.Context(), newRun(0), 200*time.Microsecond, []against{{counting("base"), ""}, {counting("case"), "base"}}, []int{1})
	assert.Equal(t, []int{0, 1, 2}, slices.Compact(places["case"]), "of three rounds")
	assert.Equal(t, []int{0, 1, 2}, slices.Compact(places["base"]))
	assert.Equal(t, map[string]int{"base": placements, "case": placements}, closed)
}

func TestWorkOfACase(t *testing.T) {
	all := open(t.Context(), []cases.Case{cases.Bwmarrin(), cases.NextN(128), cases.XID()})
	defer closeAll(all)

	capped := all[0].work(8)
	assert.Equal(t, "bwmarrin/snowflake, 8 goroutines", capped.Name)
	assert.Equal(t, 4096, capped.Unit, "whole ticks")
	assert.Equal(t, 4096+8, capped.LeadIn, "which begin when another is used up")

	bulk := all[1].work(1)
	assert.Equal(t, "NextN(128)", bulk.Name)
	assert.Equal(t, 128, bulk.Unit)
	assert.Zero(t, bulk.LeadIn)

	free := all[2].work(1)
	assert.Zero(t, free.Unit)
	assert.Zero(t, free.LeadIn)
}
