// Package clocktest has fake clocks on which the wall clock and the monotonic clock go
// wrong independently. They are for tests of code that must not trust a clock.
//
// You need these names:
//
//   - [NewVirtual]: a clock that spends no real time. Take it first.
//   - [Virtual.Advance]: lets true time pass.
//   - Virtual.Step: makes the wall jump. Slew, Freeze, Coarse, Suspend, LeapSecond and
//     Restart are the other faults.
//   - [Virtual.BlockUntil]: returns when n callers wait for the clock.
//   - [NewMock]: the same faults on a clock of github.com/benbjohnson/clock.
//
// # Three times
//
// Most fake clocks have one time, which the test moves. They cannot show a step of the
// wall clock, because a step would move the timers too. A machine has two clocks, and
// the interesting faults are those in which they part: the wall goes back an hour,
// while the monotonic clock and all timers go on. So there are three times here:
//
//   - True time is the time that really passes. Timers wait for it. Only the test
//     moves it, and it never goes back. Passed returns it.
//   - The wall reading is the result of Now and Wall.
//   - The monotonic reading is the result of Elapsed, and of BootTime with suspends.
//
// Without faults, the three advance together. Each fault is one method:
//
//	                 wall reading              monotonic reading    waiters
//	Step(d)          jumps by d                -                    -
//	Slew(rate, d)    runs at rate, for d       -                    -
//	Freeze(d)        stands still, for d       stands still, for d  -
//	Coarse(g)        in multiples of g         in multiples of g    -
//	Suspend(d)       goes on by d              -, BootTime by d     -
//	LeapSecond()     repeats the next second   -                    -
//	Restart()        -                         begins at zero       are forgotten
//
// A dash means no effect. Faults overlap freely. A fault with a duration lasts for that
// much true time and ends exactly then, even if one move passes the ends of several. No
// input makes a method panic; each method says what it does with a value out of range.
//
// # Waiting without a race
//
// A test of code that waits has two races. The test may move the time before the code
// has begun to wait; then the code waits for a time that has passed, and the test
// hangs. And the test may check the result before the code has continued. A time.Sleep
// in the test hides both until the machine is busy.
//
// Here all code waits by the clock, so the clock knows its waiters. BlockUntil returns
// once n callers wait, which removes the first race. For the second, wait for the next
// thing that the code does: its result on a channel, or BlockUntil again if it waits
// again. Nothing depends on the speed of the machine.
//
//	go func() { done <- codeUnderTest(clock) }()
//	err := clock.BlockUntil(ctx, 1) // it waits
//	clock.Advance(time.Second)      // its deadline passes
//	result := <-done                // it has continued
//
// Two more tools need no second goroutine. With AutoAdvance a caller that waits moves
// the time itself. OnRead calls a function before each reading, to hold a caller
// between two readings or to change the clock at that point.
//
// # Which clock
//
// Take a [Virtual]. Its After and Sleep are all that a generator needs. Take a [Mock] only if the
// code under test wants the Clock of github.com/benbjohnson/clock, with its timers and tickers: a
// Mock sleeps a real millisecond whenever the test moves the time, and has no BlockUntil.
//
// Each is a [github.com/tickflake/tickflake/monoclock.Interface], which serves as a raw
// wall clock, and a [github.com/tickflake/tickflake/monoclock.Source], from which a
// [github.com/tickflake/tickflake/monoclock.Clock] reads the monotonic time.
package clocktest
