package servertest_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/internal/servertest"
	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/storetest"
)

// complaints is a testing.TB that only collects errors.
type complaints struct {
	testing.TB
	all []string
}

func (c *complaints) Error(args ...any)            { c.all = append(c.all, fmt.Sprint(args...)) }
func (c *complaints) Errorf(f string, args ...any) { c.all = append(c.all, fmt.Sprintf(f, args...)) }

func (c *complaints) text() string { return strings.Join(c.all, "\n") }

// A store that fails for a while loses nothing, and neither do crashes and steps.
func TestFleetOnAStoreThatFails(t *testing.T) {
	memory := storetest.NewMemory()
	var mu sync.Mutex
	away := false
	fleet := servertest.StartFleet(t, servertest.FleetConfig{
		Processes: 4, Window: 300 * time.Millisecond,
		Open: func(context.Context) (stores.Store, error) {
			client := memory.Client()
			client.Before = func(context.Context, storetest.Op) storetest.Fault {
				mu.Lock()
				defer mu.Unlock()
				if away {
					return storetest.Unavailable
				}
				return storetest.None
			}
			return client, nil
		},
	})
	set := func(to bool) { mu.Lock(); away = to; mu.Unlock() }
	fleet.WaitIssued(t, 10, time.Minute)
	set(true)
	fleet.Step(-time.Hour)
	fleet.Crash(0)
	fleet.Crash(1)
	require.Eventually(t, func() bool { return fleet.Failed("ErrNotGranted ErrStore") > 0 }, time.Minute, 10*time.Millisecond)
	set(false)
	fleet.Step(2*time.Hour, 2)
	fleet.WaitRecovered(t, 10, time.Minute)
	before := fleet.Issued()
	fleet.WaitIssued(t, 10, time.Minute)
	assert.GreaterOrEqual(t, fleet.Issued(), before+40)

	report := fleet.Close(t)
	report.Check(t)
	assert.NotZero(t, report.Stats.Failures)
	assert.Contains(t, fmt.Sprint(report.Errors), "call: ErrNotGranted ErrStore")
	assert.Contains(t, report.String(), "0 duplicates, 0 in disorder")
	assert.Same(t, report, fleet.Close(t))
}

// Processes with a store of its own each issue IDs twice: of 40, some have the same of 64
// node numbers.
func TestFleetFindsDuplicates(t *testing.T) {
	fleet := servertest.StartFleet(t, servertest.FleetConfig{Processes: 40, Rate: 50,
		Open: func(context.Context) (stores.Store, error) { return storetest.NewMemory(), nil }})
	fleet.WaitIssued(t, 100, time.Minute)
	report := fleet.Close(t)
	require.NotEmpty(t, report.Duplicates)
	d := report.Duplicates[0]
	assert.NotEqual(t, d.First, d.Second)
	c := &complaints{TB: t}
	report.Check(c)
	assert.Contains(t, c.text(), "issued twice: "+d.ID.String())
	assert.Contains(t, c.text(), "number issued twice: 1: by process ")
	c = &complaints{TB: t}
	report.CheckCalls(c)
	assert.Empty(t, c.text())
}

// Check also reports these problems.
func TestFleetReport(t *testing.T) {
	report := &servertest.Report{
		Disorder: []string{"process 1 run 1 issued 7 after 8"},
		Repeated: []string{"7: by process 1 run 1"},
		Slowest:  time.Minute,
		Errors: map[string]int{"call: ErrNotGranted ErrStore": 1, "call: ErrStore": 2, "start: ErrStore": 3, "call: ErrNotGranted ErrLost": 4, "close:": 5,
			"number: ErrStore context": 6, "number: ErrWentBack": 7, "number: ErrExhausted": 8},
		Examples: map[string]string{"call: ErrStore": "A", "call: ErrNotGranted ErrLost": "B", "close:": "C", "number: ErrWentBack": "D", "number: ErrExhausted": "E"},
	}
	report.Stats.WentBack = 2
	c := &complaints{TB: t}
	report.Check(c)
	assert.ElementsMatch(t, []string{
		"in disorder: process 1 run 1 issued 7 after 8", "a call with a limit of 1s took 1m0s",
		"unexpected error: A", "unexpected error: B", "unexpected error: C", "unexpected error: E", "the store went back 2 times",
		"number issued twice: 7: by process 1 run 1", "the store went back: D",
	}, c.all)
}
