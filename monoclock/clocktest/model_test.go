package clocktest_test

import (
	"math/rand"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// model is what a clock should show, worked out as simply as can be: time passes
// in quanta, and in each the faults are looked at afresh.
type model struct {
	passed, frozen, slewing time.Duration // frozen and slewing are what is left
	rate                    float64
	leap                    bool
	grain                   time.Duration
	wall, mono              hand
}

// hand is one clock: where it stands, and what it shows.
type hand struct{ at, shows time.Duration }

const quantum = 250 * time.Microsecond

func (m *model) pass(d time.Duration) {
	for range d / quantum {
		if m.frozen == 0 {
			run := quantum
			if m.slewing > 0 {
				run = time.Duration(m.rate * float64(quantum)) // exact: see rates
			}
			m.run(run)
			m.move(&m.mono, m.mono.at+quantum)
		}
		m.frozen = max(m.frozen-quantum, 0)
		m.slewing = max(m.slewing-quantum, 0)
		m.passed += quantum
	}
}

// run lets the wall go on by d. If the second that it reaches is to be repeated, it
// shows that second's beginning instead.
func (m *model) run(d time.Duration) {
	to := m.wall.at + d
	if second := (m.wall.at + time.Second).Truncate(time.Second); m.leap && to >= second {
		m.leap = false
		to -= time.Second
		m.move(&m.wall, second-time.Second)
	}
	m.move(&m.wall, to)
}

// move moves a hand, and its reading if it has passed a multiple of the grain.
func (m *model) move(h *hand, to time.Duration) {
	was := h.at
	h.at = to
	switch {
	case m.grain == 0:
		h.shows = to
	case to < h.shows, to.Truncate(m.grain) > was:
		h.shows = to.Truncate(m.grain)
	}
}

func (m *model) coarse(grain time.Duration) {
	m.grain = grain
	for _, h := range []*hand{&m.wall, &m.mono} {
		if grain == 0 {
			h.shows = h.at
		} else {
			h.shows = max(h.shows, h.at.Truncate(grain))
		}
	}
}

// A clock shows the same as the model, under any faults and for moves of any length.
func TestAgainstModel(t *testing.T) {
	// Quanta at these rates are whole nanoseconds.
	rates := []float64{0, 0.5, 0.75, 1, 1.5, 2, 3.25, 40}
	grains := []time.Duration{0, quantum, 700 * time.Microsecond, 10 * ms, 15600 * time.Microsecond, sec, 1500 * ms}
	seeds := int64(30)
	if testing.Short() {
		seeds = 10
	}
	for seed := range seeds {
		onBoth(t, noon, func(t *testing.T, c subject) {
			random := rand.New(rand.NewSource(seed))
			quanta := func(n int) time.Duration { return time.Duration(random.Intn(n)) * quantum }
			// The wall counts from 1970, the model's too; no step leads to before.
			m := &model{wall: hand{time.Duration(noon.UnixNano()), time.Duration(noon.UnixNano())}}
			for op := range 150 {
				d := time.Duration(random.Int63n(int64(3 * sec)))
				switch kind := random.Intn(12); kind {
				case 0:
					d -= 1500 * ms
					c.Step(d)
					m.move(&m.wall, m.wall.at+d)
				case 1:
					m.rate, m.slewing = rates[random.Intn(len(rates))], quanta(8000)
					c.Slew(m.rate, m.slewing)
				case 2:
					m.frozen = quanta(3000)
					c.Freeze(m.frozen)
				case 3:
					grain := grains[random.Intn(len(grains))]
					c.Coarse(grain)
					m.coarse(grain)
				case 4:
					c.Suspend(d)
					m.run(d)
				case 5:
					c.LeapSecond()
					m.leap = true
				case 6:
					c.Restart()
					m.move(&m.mono, 0)
				default:
					d = quanta(8000)
					c.pass(d)
					m.pass(d)
				}
				require.Equal(t, m.wall.shows, time.Duration(c.Wall().UnixNano()), "wall, seed %d, op %d", seed, op)
				require.Equal(t, m.mono.shows, c.Elapsed(), "elapsed, seed %d, op %d", seed, op)
				require.Equal(t, m.passed, c.Passed(), "passed, seed %d, op %d", seed, op)
			}
		})
	}
}
