package chaos_test

import (
	"errors"
	"math"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/benbjohnson/clock"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/monoclock"
	"github.com/tickflake/tickflake/strategies"
)

// noon is when every world begins.
var noon = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

// claim is a strategy and what it promises: the longest that a call may take,
// and the furthest that an ID may be ahead of the clock.
type claim struct {
	name     string
	strategy strategies.Strategy
	wait     time.Duration
	borrow   time.Duration
}

const forever = math.MaxInt64

// claims are the rows of the README's table of strategies.
var claims = []claim{
	{"reject", strategies.Reject(), 0, 0},
	{"wait", strategies.WaitUpTo(5 * time.Millisecond), 5 * time.Millisecond, 0},
	{"wait-forever", strategies.Wait(), forever, 0},
	{"borrow", strategies.BorrowUpTo(time.Second), 0, time.Second},
	{"borrow-then-wait", strategies.Chain(strategies.BorrowUpTo(time.Second), strategies.WaitUpTo(5*time.Second)), 5 * time.Second, time.Second},
	{"default", strategies.Default(), time.Second, 0},
	{"twitter", strategies.Twitter(), forever, 0},
	{"leaf", strategies.Leaf(), forever, 0},
	{"last-timestamp-plus-one", strategies.LastTimestampPlusOne(), 0, 24 * time.Hour},
}

// bends returns the lead of a clock that is behind up to which the strategy gives
// an ID at all.
func (c claim) bends() time.Duration {
	switch c.name {
	case "twitter":
		return 0 // its wait is for an exhausted sequence
	case "leaf":
		return 5 * time.Millisecond // and so is the longer of its waits
	}
	return max(c.wait, c.borrow)
}

// faultClock is a benbjohnson mock whose reading can be stepped and frozen while
// time passes for those who wait. Read as a generator's clock it is a raw wall
// clock; as a monoclock's source, its wall is stepped and its elapsed time not.
type faultClock struct {
	*clock.Mock // elapsed time since noon

	mu     sync.Mutex
	offset time.Duration // of the wall
	frozen *time.Time    // the mock's time at which both clocks stand still
	missed time.Duration // time that passed while they did
	asked  time.Duration // of the last wait
}

func newFaultClock() *faultClock {
	mock := clock.NewMock()
	mock.Set(noon)
	return &faultClock{Mock: mock}
}

func (c *faultClock) Now() time.Time {
	now := c.Mock.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.frozen != nil {
		now = *c.frozen
	}
	return now.Add(c.offset - c.missed)
}

// After must not hold mu while it calls the mock, which sleeps when it fires a
// timer that is due.
func (c *faultClock) After(d time.Duration) <-chan time.Time {
	c.mu.Lock()
	c.asked = d
	c.mu.Unlock()
	return c.Mock.After(d)
}

func (c *faultClock) Wall() time.Time { return c.Now() }

func (c *faultClock) Elapsed() time.Duration {
	now := c.Mock.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.frozen != nil {
		now = *c.frozen
	}
	return now.Sub(noon) - c.missed
}

func (c *faultClock) step(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.offset += d
}

// freeze stops both clocks while time passes for those who wait; thaw lets them
// go on from where they stopped.
func (c *faultClock) freeze() {
	now := c.Mock.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.frozen = &now
}

func (c *faultClock) thaw() {
	now := c.Mock.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.missed += now.Sub(*c.frozen)
	c.frozen = nil
}

// world is one generator on one faulty clock, and the watch kept on it.
type world struct {
	*testing.T
	claim
	clock *faultClock
	gen   *generator.Generator
	raw   bool // the generator reads the wall; otherwise a monoclock

	issued map[generator.ID]bool
	last   generator.ID
}

// layout holds 16 IDs per millisecond, so that a few use up a tick.
func layout() generator.Layout {
	l := generator.DefaultLayout()
	l.SequenceBits = 4
	return l
}

// inEveryWorld runs scenario as a subtest for every claim, on the raw wall clock
// ("raw") and on a monoclock ("mono"). Its time passes only as the scenario says.
func inEveryWorld(t *testing.T, scenario func(w *world)) {
	for _, raw := range []bool{true, false} {
		t.Run(map[bool]string{true: "raw", false: "mono"}[raw], func(t *testing.T) {
			for _, c := range claims {
				t.Run(c.name, func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						fault := newFaultClock()
						w := &world{T: t, claim: c, clock: fault, raw: raw, issued: map[generator.ID]bool{}}
						var read generator.Clock = fault
						if !raw {
							read = monoclock.New(monoclock.WithSource(fault))
						}
						var err error
						w.gen, err = generator.New(generator.WithClock(read), generator.WithStrategy(c.strategy), generator.WithLayout(layout()))
						require.NoError(t, err)
						scenario(w)
					})
				})
			}
		})
	}
}

// next makes one call, lets time pass for as long as it waits, and holds it to
// the invariants. It returns how long the call took, and its error.
func (w *world) next() (stall time.Duration, err error) {
	w.Helper()
	var id generator.ID
	done := make(chan struct{})
	go func() {
		defer close(done)
		id, err = w.gen.Next()
	}()
	for {
		synctest.Wait()
		select {
		case <-done:
			assert.LessOrEqual(w, stall, w.wait, "the call outlasted its bound")
			if err != nil {
				w.checkError(err)
			} else {
				w.checkID(id)
			}
			return stall, err
		default:
			w.clock.mu.Lock()
			asked := w.clock.asked
			w.clock.mu.Unlock()
			require.Positive(w, asked, "the call hangs, and waits for no time")
			w.clock.Add(asked)
			stall += asked
		}
	}
}

func (w *world) checkID(id generator.ID) {
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
	assert.LessOrEqual(w, d.Time.Sub(now), w.borrow, "the ID is too far ahead of the clock")
}

func (w *world) checkError(err error) {
	w.Helper()
	var lead *generator.LeadError
	if assert.ErrorAs(w, err, &lead) {
		assert.Positive(w, lead.Lead)
		assert.ErrorContains(w, err, lead.Lead.String())
		assert.True(w, errors.Is(err, generator.ErrBehind) != errors.Is(err, generator.ErrExhausted))
	}
}

// served makes n calls that must succeed without a wait; one that waits shows as
// a deadlock, since nobody lets time pass.
func (w *world) served(n int) {
	w.Helper()
	w.clock.asked = 0
	for range n {
		id, err := w.gen.Next()
		require.NoError(w, err)
		w.checkID(id)
	}
	require.Zero(w, w.clock.asked, "a call waited")
}
