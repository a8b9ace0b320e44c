package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// TestWallClock checks the clock of lease exec after what happens to those of the machine between two looks.
func TestWallClock(t *testing.T) {
	for name, test := range map[string]struct {
		wall, awake, slept time.Duration // have gone on
		front, step        time.Duration // the clock, and a step ahead of it
		later              time.Duration // the clock at the next look, a minute later
	}{
		"nothing":             {time.Minute, time.Minute, 0, time.Minute, 0, 2 * time.Minute},
		"a step ahead":        {11 * time.Minute, time.Minute, 0, 11 * time.Minute, 10 * time.Minute, 12 * time.Minute},
		"a step too far":      {time.Minute + 1000*time.Hour, time.Minute, 0, time.Minute + time.Hour, 1000 * time.Hour, 2*time.Minute + time.Hour},
		"a step back":         {-9 * time.Minute, time.Minute, 0, 30 * time.Second, -10 * time.Minute, time.Minute},
		"a small step back":   {50 * time.Second, time.Minute, 0, 50 * time.Second, -10 * time.Second, 110 * time.Second},
		"a sleep":             {5 * time.Hour, time.Minute, 5*time.Hour - time.Minute, 5 * time.Hour, 0, 5*time.Hour + time.Minute},
		"a sleep nobody sees": {11 * time.Minute, time.Minute, 0, 11 * time.Minute, 10 * time.Minute, 12 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			start := time.Unix(1e9, 0)
			now := reading{wall: start, awake: time.Hour, slept: time.Hour}
			real := readClocks
			t.Cleanup(func() { readClocks = real })
			readClocks = func() reading { return now }
			c := newWallClock()
			now = reading{start.Add(test.wall), now.awake + test.awake, now.slept + test.slept}
			assert.Equal(t, test.front, c.Now().Sub(start))
			wall, front, step, slept := c.look()
			assert.Equal(t, []time.Duration{test.wall, test.front, test.step, test.slept}, []time.Duration{wall.Sub(start), front.Sub(start), step, slept})
			now = reading{now.wall.Add(time.Minute), now.awake + time.Minute, now.slept}
			assert.Equal(t, test.later, c.Now().Sub(start))
		})
	}
}
