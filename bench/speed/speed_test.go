package speed

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/bench/cases"
	"github.com/tickflake/tickflake/bench/measure"
	"github.com/tickflake/tickflake/bench/results"
)

func newRun(budget time.Duration) *measure.Run {
	return &measure.Run{Quick: true, Budget: budget, Rand: rand.New(rand.NewPCG(1, 2))}
}

func check(t *testing.T, id string, s results.Section) {
	s.ID = id
	require.NoError(t, (&results.Report{Schema: results.Schema, Sections: []results.Section{s}}).Check())
}

// In the least that a section can be given, it fills every cell, and leaves its targets
// open.
func TestSectionsFillEveryCell(t *testing.T) {
	for _, section := range Sections() {
		t.Run(section.ID, func(t *testing.T) {
			s := section.Measure(t.Context(), newRun(time.Millisecond))
			check(t, section.ID, s)
			assert.NotEmpty(t, section.About)
			section.Verdict(s) // a run this short may have nothing to say; TestFigures holds its sentences
			require.NotEmpty(t, s.Tables)
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

func TestSectionsEndWithTheirContext(t *testing.T) {
	for _, section := range Sections() {
		t.Run(section.ID, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			s := section.Measure(ctx, newRun(time.Hour))
			check(t, section.ID, s)
			for _, target := range s.Targets {
				assert.Equal(t, results.Open, target.State())
			}
			assert.Empty(t, section.Verdict(s), "there is nothing to say")
		})
	}
}

// A section is ended in the middle of its work, by a turn of one of its cases.
func TestWhatThereIsIsKept(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	turns := 0
	stop := cases.Case{Name: "stop", Open: func(context.Context) (cases.Source, error) {
		return cases.Source{Loop: func() cases.Loop {
			return func(n int) error {
				if turns++; turns > 100 {
					cancel()
				}
				time.Sleep(time.Duration(n) * time.Microsecond)
				return nil
			}
		}}, nil
	}}
	g := measureGrid(ctx, newRun(time.Hour), 200*time.Microsecond, []against{{stop, ""}, {cases.Floor(), ""}}, []int{1})
	assert.NotEmpty(t, g.samples[0][0].Wall)
	assert.Len(t, g.samples[1][0].Wall, len(g.samples[0][0].Wall))
}

// When it is ended in the middle of a round, it drops that round.
func TestLatencyHasWholeRoundsOnly(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	run := newRun(3 * time.Second)
	run.Progress = func(done, of int, what string) {
		if strings.HasPrefix(what, "round 2") {
			cancel()
		}
	}
	s := measureLatency(ctx, run)
	check(t, "latency", s)
	for _, table := range s.Tables {
		for _, row := range table.Rows {
			assert.Len(t, table.Cell(row.Name, "reached").Samples, 1, "%s, %s", table.ID, row.Name)
		}
	}
}

func TestACaseThatCannotBeOpenedIsShownAsFailed(t *testing.T) {
	broken := cases.Case{Name: "broken", Open: func(context.Context) (cases.Source, error) {
		return cases.Source{}, errors.New("no private address")
	}}
	g := measureGrid(t.Context(), newRun(0), 200*time.Microsecond, []against{{broken, ""}, {cases.Floor(), ""}}, []int{1, 2})
	table := g.table(results.Table{ID: "t"}, "ns", results.Less, func(_ opened, s measure.Samples) results.Cell { return cell(s.Wall, s.Err) })
	assert.Equal(t, "failed", table.Cell("broken", "g1").Text)
	assert.Len(t, table.Cell(cases.Floor().Name, "g2").Samples, 3)
	assert.Equal(t, []string{
		"broken failed after 0 rounds: no private address.",
		"broken, 2 goroutines failed after 0 rounds: no private address.",
	}, g.notes)
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

func TestCloseAllTellsWhatWentWrong(t *testing.T) {
	bad := opened{Case: cases.Case{Name: "bad"}, source: cases.Source{Close: func() error { return errors.New("stuck") }}}
	never := opened{err: errors.New("never opened"), source: cases.Source{Close: func() error { panic("it was not opened") }}}
	assert.Equal(t, []string{"bad could not be closed: stuck."}, closeAll([]opened{bad, never, {}}))
}

func TestProcessorTimeThatIsNotToldIsSaidToBe(t *testing.T) {
	assert.Equal(t, "not measured", cpuCell(nil, measure.Samples{Wall: []float64{1}}).Text)
	assert.Zero(t, cpuCell(nil, measure.Samples{}), "nothing was")
	assert.Equal(t, []float64{2}, cpuCell([]float64{2}, measure.Samples{Wall: []float64{1}, CPU: []float64{2}}).Samples)
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
