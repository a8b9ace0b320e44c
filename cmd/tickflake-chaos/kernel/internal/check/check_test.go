package check_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/cmd/tickflake-chaos/kernel/internal/check"
	"github.com/tickflake/tickflake/generator/generatortest"
)

// The first duplicate has both of its lines, and a history with every jump of the clock.
func TestTwice(t *testing.T) {
	const ms = 1_000_000
	c := check.New(nil)
	for i, wall := range []time.Duration{1, 2, 3, 30, -500, -499} {
		if i == 4 {
			c.Mark(time.Duration(i) * ms)
		}
		c.Add(time.Duration(i)*ms, check.ID{Text: string(rune('a' + i)), Start: i / 4, Wall: wall * ms})
	}
	c.Add(9*ms, check.ID{Text: "b", Start: 1, Wall: 2 * ms})
	c.Add(9*ms, check.ID{Text: "c", Start: 1, Wall: 2 * ms})
	twice := c.Verdict().Twice
	require.NotNil(t, twice)
	assert.Equal(t, generatortest.Event{ID: "b", At: ms, Wall: 2 * ms}, *twice.First)
	assert.Equal(t, generatortest.Event{ID: "b", Process: 1, At: 9 * ms, Wall: 2 * ms}, twice.Again)
	assert.Equal(t, []generatortest.Event{
		{ID: "a", Wall: ms}, {ID: "d", At: 3 * ms, Wall: 30 * ms}, {Do: "the fault", At: 4 * ms, Wall: 30 * ms}, {ID: "e", Process: 1, At: 4 * ms, Wall: -500 * ms},
	}, twice.History)
}
