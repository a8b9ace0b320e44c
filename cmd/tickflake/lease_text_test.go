package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/tickflake/tickflake/lease"
)

// TestFarLimits: the list marks a limit that no right clock has left, and neither a reservation nor the fleet's floor.
func TestFarLimits(t *testing.T) {
	now := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	for _, test := range []struct {
		state lease.State
		until time.Duration
		want  string
	}{
		{lease.Released, 3 * time.Minute, "-"},
		{lease.Released, 3*time.Minute + 1, "was ahead?"},
		{lease.Expired, time.Hour, "was ahead?"},
		{lease.Reserved, time.Hour, "-"},
		{lease.Moved, time.Hour, "-"},
		{lease.Held, time.Hour, "±10s"},
	} {
		h := lease.Holding{State: test.state, Limit: now.Add(test.until), Window: time.Minute}
		row := holdingOf(h, now)
		assert.Equal(t, test.want, row.clock(), "%s %s", test.state, test.until)
		row.floor = h.Limit.Add(-3 * time.Minute)
		assert.NotEqual(t, "was ahead?", row.clock(), "%s %s", test.state, test.until)
	}
}
