package clocktest

import (
	"time"

	"github.com/benbjohnson/clock"
)

// Mock is a Mock of github.com/benbjohnson/clock whose time is the true time, and whose Now, Since
// and Until show a faulty wall. It satisfies that package's Clock. Make one with [NewMock]; the zero
// Mock is not usable.
//
// Everything that waits goes by true time, which Add and Set of the embedded Mock move: timers,
// tickers, and the contexts of WithTimeout and WithDeadline. No fault delays, hastens or stops them.
// Every move sleeps a real millisecond to let woken goroutines run, so a Mock is for scenarios of a
// few steps.
//
// A Mock is safe for use by several goroutines at once, except that only one at a time may move the
// time.
type Mock struct {
	*clock.Mock
	faulty
}

var _ clock.Clock = (*Mock)(nil)

// NewMock returns a Mock whose wall and true time stand at start, with nothing wrong. A start before
// 1677-09-21 or after 2262-04-11 counts as that day.
func NewMock(start time.Time) *Mock {
	m := &Mock{Mock: clock.NewMock()}
	start = m.begin(start)
	m.Set(start)
	m.truth = func() int64 { return int64(m.Mock.Now().Sub(start)) } // saturates
	return m
}

// Now returns the wall reading in UTC, without a monotonic part.
func (m *Mock) Now() time.Time { return m.faulty.Now() }

// Since returns the wall reading minus t.
func (m *Mock) Since(t time.Time) time.Duration { return m.Now().Sub(t) }

// Until returns t minus the wall reading.
func (m *Mock) Until(t time.Time) time.Duration { return t.Sub(m.Now()) }
