package main

import (
	"errors"
	"os"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// reading is one of the clocks of this machine.
type reading struct {
	wall  time.Time
	awake time.Duration // since any instant, without the time that the machine slept
	slept time.Duration // since any instant
}

// readClocks reads the clocks. Scripts set it before main, since they cannot set the clock.
var readClocks = func() reading { return reading{time.Now().Round(0), time.Since(begin), slept()} }

var begin = time.Now()

// furthest is how far a step ahead of the clock is followed: a wild one must not keep the number from everybody.
const furthest = time.Hour

// wallClock is the clock of CMD, which reads the wall clock, and after a step back counts on from its last ID: so this
// one is the highest wall time so far, and while that is ahead, it goes on at half its pace. A step ahead counts at
// once, so the grant ends when it does for CMD.
type wallClock struct {
	last atomic.Pointer[look] // stored by look alone
}

// look is a reading, and the clock then.
type look struct {
	reading
	front time.Time
}

func newWallClock() *wallClock {
	c, r := &wallClock{}, readClocks()
	c.last.Store(&look{r, r.wall})
	return c
}

// Now is the clock. It is at most furthest ahead of the time that has passed since the last look.
func (c *wallClock) Now() time.Time {
	front, _, _ := c.at(readClocks())
	return front
}

// at is the clock at a reading, and how far the wall clock was set ahead since the last look, and how long the machine slept.
func (c *wallClock) at(r reading) (front time.Time, step, slept time.Duration) {
	last := c.last.Load()
	slept = r.slept - last.slept
	passed := r.awake - last.awake + slept
	step = r.wall.Sub(last.wall) - passed
	return latest(r.wall.Add(min(0, furthest-step)), last.front.Add(passed/2)), step, slept
}

// look reads the clocks for the supervisor, which looks often: what has changed since the last look was a step, or sleep.
// It goes on from there, but for a step that is not followed.
func (c *wallClock) look() (wall, front time.Time, step, slept time.Duration) {
	r := readClocks()
	front, step, slept = c.at(r)
	if step <= furthest {
		c.last.Store(&look{r, front})
	}
	return r.wall, front, step, slept
}

// clockSteps receives when the wall clock was set, or the machine has slept, until stop. Without it, the next look
// finds it.
func clockSteps() (steps <-chan struct{}, stop func()) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_REALTIME, unix.TFD_CLOEXEC|unix.TFD_NONBLOCK)
	if err != nil {
		return nil, func() {}
	}
	timer, set := os.NewFile(uintptr(fd), "timer"), make(chan struct{}, 1)
	go func() { // ends with the timer
		for {
			far := unix.ItimerSpec{Value: unix.NsecToTimespec(time.Now().AddDate(1, 0, 0).UnixNano())}
			if unix.TimerfdSettime(fd, unix.TFD_TIMER_ABSTIME|unix.TFD_TIMER_CANCEL_ON_SET, &far, nil) != nil {
				return
			}
			if _, err := timer.Read(make([]byte, 8)); err != nil && !errors.Is(err, unix.ECANCELED) {
				return
			}
			select {
			case set <- struct{}{}:
			default:
			}
		}
	}()
	return set, func() { _ = timer.Close() }
}

// slept is how long this machine has slept since its boot.
func slept() time.Duration {
	var all, awake unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &all) != nil || unix.ClockGettime(unix.CLOCK_MONOTONIC, &awake) != nil {
		return 0
	}
	return time.Duration(all.Nano() - awake.Nano())
}
