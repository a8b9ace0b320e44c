// Package clocktest has fake clocks in which wall and monotonic time go wrong
// independently, for tests of whatever must not trust a clock.
//
// # Three times
//
// Most fake clocks have one time, and a test moves it. That cannot show what a
// step of the wall clock does, because the step moves the timers along. A machine
// has two clocks, and the faults worth testing are those in which they part: the
// wall goes back an hour, and the monotonic clock and all timers know nothing of
// it. So there are three times here:
//
//   - True time is what really passes, and what timers wait for. Only the test
//     moves it, and it never goes back. Passed returns it.
//   - The wall reading is what Now and Wall return.
//   - The monotonic reading is what Elapsed returns.
//
// Without faults, the three go together. Each fault is one method:
//
//	                 wall reading              monotonic reading    who waits
//	Step(d)          jumps by d                -                    -
//	Slew(rate, d)    runs at rate, for d       -                    -
//	Freeze(d)        stands still, for d       stands still, for d  -
//	Coarse(g)        in multiples of g         in multiples of g    -
//	Suspend(d)       goes on by d              -                    -
//	LeapSecond()     repeats the next second   -                    -
//	Restart()        -                         begins at zero       is forgotten
//
// A dash is: goes on as if nothing had happened. Faults overlap freely. The ones
// that last, last for true time, and end exactly then, even if one move passes the
// ends of several. No input makes a method panic; each says what it does with
// nonsense.
//
// # Waiting without a race
//
// A test of code that waits has two races. It may move the time before the code
// has begun to wait; then the code waits for a time that has gone, and the test
// hangs. And it may check the result before the code has run on. A time.Sleep in
// the test hides both until the machine is busy.
//
// Here nothing waits but by the clock, so the clock knows who does. BlockUntil
// returns once n wait, and the first race is gone. For the second, wait for what
// the code does next: its result on a channel, or BlockUntil again if it goes on
// to wait. WakeNext wakes exactly one waiter, with the clock at its deadline, so a
// test decides who runs next. Nothing depends on how fast the machine is.
//
//	go func() { done <- codeUnderTest(clock) }()
//	err := clock.BlockUntil(ctx, 1) // it waits
//	clock.Advance(time.Second)      // its time comes
//	result := <-done                // it has run on
//
// Two more tools need no second goroutine. AutoAdvance lets a caller that waits
// move the time itself. OnRead has a function called before each reading, to hold
// a caller between two of them, or to let the clock go wrong right there.
//
// # Which clock
//
// Take a [Virtual]. It spends no real time and serves for millions of steps. It
// has After and Sleep, which is all that a generator needs.
//
// Take a [Mock] if the code under test wants the Clock of
// github.com/benbjohnson/clock, with its timers and tickers. It sleeps a real
// millisecond whenever the test moves the time, so it is for short scenarios.
// (Inside a testing/synctest bubble that millisecond is free.)
//
// Either is a [github.com/tickflake/tickflake/generator.Clock], as which it is a raw wall
// clock, and a [github.com/tickflake/tickflake/monoclock.Source], from which a
// [github.com/tickflake/tickflake/monoclock.Clock] reads the monotonic time.
package clocktest
