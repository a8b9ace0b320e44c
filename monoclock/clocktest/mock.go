package clocktest

import (
	"context"
	"time"

	"github.com/benbjohnson/clock"
)

// Mock is a faulty clock with timers and tickers: a Mock of
// github.com/benbjohnson/clock whose time is the true time, and whose Now, Since and
// Until show the faulty wall. It satisfies that package's Clock. Make one with
// [NewMock]; the zero Mock is not usable.
//
// Take it for scenarios of a few steps, not for a long run: every Add and Set, and
// every timer that fires, sleeps a real millisecond to let woken goroutines run. That
// sleep guarantees nothing; BlockUntil does.
//
// Timers and tickers go by true time. The times that they and After send on their
// channels are the true time, not the wall reading.
//
// A Mock is safe for use by several goroutines at once, except that only one at a time
// may call Add, Set or WaitForAllTimers.
type Mock struct {
	*clock.Mock
	faulty
}

var _ clock.Clock = (*Mock)(nil)

// NewMock returns a Mock whose wall and true time stand at start, with nothing
// wrong. A start before 1677-09-21 or after 2262-04-11 counts as that day.
func NewMock(start time.Time) *Mock {
	m := &Mock{Mock: clock.NewMock()}
	start = m.begin(start)
	m.Mock.Set(start)
	m.truth = func() int64 { return int64(m.Mock.Now().Sub(start)) } // saturates
	return m
}

// Add lets d of true time pass, and fires the timers that are due on the way. A d < 0
// counts as 0.
func (m *Mock) Add(d time.Duration) { m.Mock.Add(max(d, 0)) }

// Set lets true time pass until it is t, counted from the start, and fires the timers
// that are due on the way. True time does not go back: a t in the past counts as the
// present. To set the wall, call Step.
func (m *Mock) Set(t time.Time) {
	if now := m.Mock.Now(); t.Before(now) {
		t = now
	}
	m.Mock.Set(t)
}

// Now returns the wall reading in UTC, without a monotonic part.
func (m *Mock) Now() time.Time { return m.faulty.Now() }

// Since returns the wall reading minus t.
func (m *Mock) Since(t time.Time) time.Duration { return m.Now().Sub(t) }

// Until returns t minus the wall reading.
func (m *Mock) Until(t time.Time) time.Duration { return t.Sub(m.Now()) }

// After returns a channel that receives once d of true time has passed, or at once
// if d <= 0. The channel is buffered.
func (m *Mock) After(d time.Duration) <-chan time.Time {
	if d <= 0 {
		// The mock's own might fire another timer that is due, and not this one.
		c := make(chan time.Time, 1)
		c <- m.Mock.Now()
		return c
	}
	return m.Timer(d).C
}

// Sleep returns once d of true time has passed.
func (m *Mock) Sleep(d time.Duration) { <-m.After(d) }

// Timer returns a timer that fires once d of true time has passed.
func (m *Mock) Timer(d time.Duration) *clock.Timer {
	return m.remember(d, m.Mock.Timer)
}

// AfterFunc returns a timer that calls f in its own goroutine once d of true time has
// passed, or in the next Add or Set if d <= 0.
func (m *Mock) AfterFunc(d time.Duration, f func()) *clock.Timer {
	return m.remember(d, func(d time.Duration) *clock.Timer { return m.Mock.AfterFunc(d, f) })
}

// WithDeadline returns a context that ends with its parent, or when as much true time
// has passed as the wall now is short of t. Its Deadline is that true time.
func (m *Mock) WithDeadline(parent context.Context, t time.Time) (context.Context, context.CancelFunc) {
	return m.Mock.WithTimeout(parent, m.Until(t))
}

// Ticker returns a ticker that ticks every d of true time.
func (m *Mock) Ticker(d time.Duration) *clock.Ticker {
	t := m.Mock.Ticker(d)
	m.change(func() { m.queue.stops = append(m.queue.stops, t.Stop) })
	return t
}

// Tick returns the channel of a Ticker that only Restart can stop.
func (m *Mock) Tick(d time.Duration) <-chan time.Time { return m.Ticker(d).C }

// remember makes a timer and counts it among the waiters. It holds no lock while it
// makes it, since the mock may sleep there.
func (m *Mock) remember(d time.Duration, timer func(time.Duration) *clock.Timer) *clock.Timer {
	began := int64(m.Passed())
	t := timer(d)
	if d > 0 {
		m.change(func() {
			m.queue.join(waiter{deadline: add(began, int64(d)), stop: func() { t.Stop() }})
		})
	}
	return t
}
