package chaos_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/monoclock"
	"github.com/tickflake/tickflake/monoclock/clocktest"
	"github.com/tickflake/tickflake/snowflake"
)

// noon is when every world begins.
var noon = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

// world is one generator on one faulty clock, and the checks of its IDs.
type world struct {
	*testing.T
	claim
	clock *clocktest.Mock
	gen   *generator.Generator
	raw   bool // the generator reads the wall; otherwise a monoclock

	issued map[snowflake.ID]bool
	last   snowflake.ID
}

// layout holds 16 IDs per millisecond, so that a few use up a tick.
func layout() snowflake.Layout {
	l := snowflake.Default()
	l.SequenceBits = 4
	return l
}

// inEveryWorld runs scenario as a subtest for every strategy of the table, on the raw
// wall clock ("raw") and on a monoclock ("mono"). Its time passes only when the
// scenario moves it.
func inEveryWorld(t *testing.T, scenario func(w *world)) {
	for _, c := range table {
		t.Run(c.name, func(t *testing.T) {
			for _, raw := range []bool{true, false} {
				t.Run(map[bool]string{true: "raw", false: "mono"}[raw], func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						fault := clocktest.NewMock(noon)
						w := &world{T: t, claim: c, clock: fault, raw: raw, issued: map[snowflake.ID]bool{}}
						var read monoclock.Interface = fault
						if !raw {
							read = monoclock.New(monoclock.WithSource(fault))
						}
						var err error
						w.gen, err = generator.New(generator.WithNode(0), generator.WithClock(read), generator.WithStrategy(c.strategy), generator.WithLayout(layout()))
						require.NoError(t, err)
						scenario(w)
					})
				})
			}
		})
	}
}

// next makes one call, lets time pass while it waits, and checks the invariants. It
// returns how long the call took, and its error.
func (w *world) next() (stall time.Duration, err error) {
	w.Helper()
	var id snowflake.ID
	done := make(chan struct{})
	go func() {
		defer close(done)
		id, err = w.gen.Next()
	}()
	for {
		synctest.Wait()
		select {
		case <-done:
			assert.LessOrEqual(w, stall, w.wait(), "the call outlasted its bound")
			if err != nil {
				w.checkError(err)
			} else {
				w.checkID(id)
			}
			return stall, err
		default:
			waiting := w.clock.Waiting()
			require.Len(w, waiting, 1, "the call hangs, and waits for no time")
			w.clock.Add(waiting[0])
			stall += waiting[0]
		}
	}
}

func (w *world) checkID(id snowflake.ID) {
	w.Helper()
	require.False(w, w.issued[id], "%d twice", id)
	w.issued[id] = true
	require.Greater(w, id, w.last, "out of order")
	w.last = id
	d, err := w.gen.Layout().Decode(id)
	require.NoError(w, err)
	now := w.clock.Now()
	if !w.raw {
		now = noon.Add(w.clock.Elapsed())
	}
	assert.LessOrEqual(w, d.Time.Sub(now), w.borrow(), "the ID is too far ahead of the clock")
}

func (w *world) checkError(err error) {
	w.Helper()
	var lead *generator.LeadError
	if assert.ErrorAs(w, err, &lead) {
		assert.Positive(w, lead.Lead)
		assert.True(w, errors.Is(err, generator.ErrBehind) != errors.Is(err, generator.ErrExhausted))
	}
}

// served makes n calls that must succeed without a wait. A wait shows as a deadlock,
// since no time passes.
func (w *world) served(n int) {
	w.Helper()
	for range n {
		id, err := w.gen.Next()
		require.NoError(w, err)
		w.checkID(id)
	}
	require.Empty(w, w.clock.Waiting(), "a call waited")
}
