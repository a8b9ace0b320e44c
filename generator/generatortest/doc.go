// Package generatortest puts a generator of IDs through clock faults: tickflake's, another
// library's, or your own. Paste this test, run it, and then put your generator into it:
//
//	package ids
//
//	import (
//		"testing"
//		"time"
//
//		"github.com/tickflake/tickflake/generator/generatortest"
//	)
//
//	func TestClockFaults(t *testing.T) {
//		generatortest.TestFunc(t, func(now func() time.Time) func() (int64, error) {
//			var last, n int64 // a generator of your own reads the time by now, instead of time.Now
//			return func() (int64, error) {
//				ms := now().UnixMilli()
//				if n++; ms != last {
//					last, n = ms, 0
//				}
//				return ms<<12 | n, nil
//			}
//		})
//	}
//
// Each fault is a subtest. One that fails says which calls returned the same ID, and the least
// script of calls and faults that repeats it. This generator fails in twelve of them:
//
//	--- FAIL: TestClockFaults/F2-step-back-large
//	    duplicate: 7292171059200000, first in step 1, call 1, 0s in; again in step 3, call 11, 10ms in;
//	    script: ids 1 over 1ms; step -10ms; ids 10 over 10ms; in all: 1301 duplicate;
//	    repeat it: go test -v -run '^TestClockFaults$/^F2-step-back-large$' example.com/ids
//
// You need these names:
//
//   - [TestFunc]: what stands above. No ID may come twice, whatever the clock does.
//   - [Test]: also judges order, waits, errors and the time in the IDs, with several callers at once.
//   - [Subject]: the generator, for Test: how to start it on a clock, what it claims, and how to
//     read its IDs. Only Name and New are required; each further field adds checks.
//   - [Claim]: what callers of the generator may rely on.
//   - [Script]: calls and clock faults in order, as text: "ids 5000; step -1s; ids 100".
//   - [Result]: the outcome of a script: the counts, and each broken promise as a [Violation]
//     with its calls.
//   - [Leased]: tickflake's own generator under a lease, as a subject.
//   - [Shrink]: the least script that fails as a result does.
//
// # Test
//
//	func TestMyGenerator(t *testing.T) {
//		generatortest.Test(t, generatortest.Subject[int64]{
//			Name: "mine",
//			New: func(clock *clocktest.Virtual) (generatortest.Process[int64], error) {
//				return generatortest.Process[int64]{Next: mine.New(clock.Now, clock.Sleep).Next}, nil
//			},
//			Claim: generatortest.Claim{Exhausted: generatortest.Bound{Wait: generatortest.Forever}},
//			Time:  func(id int64) time.Time { return mine.Epoch.Add(time.Duration(id>>22) * time.Millisecond) },
//			Tick:  time.Millisecond,
//			Epoch: mine.Epoch,
//		})
//	}
//
// [Run] does the same and returns the results. [RunScript] and [TestScript] take one script: one of
// your own, or one from a bug report, read by [ParseScript]. Each of several callers (the setting
// callers, as in F16) alternates between Next and batches of three.
//
// In F11 to F13 the process ends or stops, and another goes on from what it has kept: a file, a row,
// a lease. They run for a Process with a Restart. A generator that keeps nothing has one that makes a
// fresh generator, and fails these faults. In F13 both go on: the first may fail, but no ID may come twice.
//
// The clock is a [clocktest.Virtual] of monoclock/clocktest. No real time passes: a
// generator that waits for an hour moves the clock by an hour and returns at once. The
// clock ticks in microseconds.
//
// # What a claim is
//
// A [Claim] says what callers may rely on when the clock's tick has no free ID: how long
// a call may wait, and how far ahead of the clock an ID may be. There are two causes.
// Exhausted: the clock is within the tick of the last ID, and that tick's IDs may be used
// up. Behind: the clock is before that tick, because it went back, or because IDs were
// borrowed ahead of it.
//
// A claim binds both ways. A generator that claims to wait up to 5 ms must not wait
// longer, and must not fail where a wait of 5 ms would have helped. The zero Claim means
// that a call never waits and an ID is never ahead: the call fails. [Bound] has examples.
//
// # What is judged
//
// A value at its bound is allowed; a value beyond it is a violation. "The last tick" is the
// latest tick of any ID returned so far. The bound of a call is zero if the clock was past the
// last tick, that of Exhausted if it was in it, and that of Behind if it was before it. The
// larger of these two holds for all calls without Time or Tick, for batches, in scripts with
// slew, freeze, coarse or leap, and until a process that was started on another's state has
// issued an ID.
//
//   - [Duplicate]: an ID was issued before, by any process of the script.
//   - [Disorder]: an ID is not above all IDs that had been returned before its call began, or,
//     with Time, is of an earlier tick. IDs of a batch ascend, and so do IDs of a stream;
//     against other calls only their tick counts. A Subject may claim Unordered.
//   - [Stall]: a call took longer than its bound, in true time; longer than zero if the next
//     tick was too far for the claim to serve, since no wait helps then. With several callers
//     at once it is not measured.
//   - [Lead]: an ID's tick begins further ahead of the clock, at the end of the call, than the
//     bound. This needs Time. For streams and for several callers the larger bound holds.
//   - [Stale]: an ID's tick had ended when its call began. This needs Time and Tick.
//   - [Rejected]: a call failed although the clock was past the last tick, or although
//     the next tick was within the claim for its cause. It needs Time and Tick. A batch
//     is judged only if it issued nothing although the clock was past the last tick.
//     Calls of several callers are judged only for a generator that claims to wait
//     Forever when exhausted and not to borrow then, and not for batches. Not judged: a
//     process that has issued no ID since it was started on another's state, and calls
//     before Epoch or at End. A script with leap does not apply to several callers.
//   - [WrongError]: CheckError does not accept an error; a call returned neither an
//     ID nor an error; a batch was not filled and returned no error; a call ended its
//     goroutine.
//   - [EndOfTime]: an ID is for a time that is not before End, or was issued when the
//     clock was not before End, or while the clock was before Epoch.
//   - [NoStart]: New, Restart or Close failed, or Stream returned nil. New may fail
//     while the clock is before Epoch or not before End, in a script that begins then.
//   - [NoRecovery]: after the last step all faults end, and time passes until the clock
//     is a second past the last tick. (Without Time, or if the last process was started
//     on another's state and has issued nothing, the time of all steps passes, and a minute,
//     and an hour for each start, since a process may have kept time for itself and left it
//     unused.) Then three calls, a second apart, must be served at once.
//
// If the wall jumped in the middle of a call ("step -2ms at read 2"), nobody knows on which side
// of the jump the call read its clock. So Lead, Stale and Rejected are not judged, and Stall by
// the larger bound. With several callers the same holds for all calls until each caller has
// returned its last call of the step.
//
// The three calls of NoRecovery, and one right after the last step, are "the calls after the script";
// they count like the others. After a takeover, calls of the process that was stopped may fail in any
// way, but must not return an ID that was issued before.
//
// # What is not supported
//
//   - A generator that calls time.Now itself cannot be given a wrong clock: have it call a
//     function that [TestFunc] can replace, or put its program through the faults on a real kernel.
//   - A call that spins, reading the clock without ever waiting, is ended after some four million
//     readings, with several callers when the others have made all their calls, and is reported as
//     a Stall. It ends by runtime.Goexit: deferred functions run, but locks stay locked. So no further
//     call is made to that process, not even Close. One that reads no clock hangs the script.
//   - A goroutine of the generator's own that reads the clock counts as the caller, and
//     a takeover may stop it. A goroutine that waits by the clock is not supported: each
//     wait moves the clock at once, so time would run on without end.
//   - The catalogue asks for at most about 10,000 IDs of one tick. It never exhausts a
//     longer sequence. A script of your own may ask for more.
//   - A takeover stops a call where it reads the clock, with the locks that the call
//     holds there. A Restart, or a call of the process that it starts, blocks forever if
//     it needs one of them. A call that reads the clock only once is not stopped at its
//     second reading, nor one that reads it twice at its third: it ends before time
//     passes. "crash at read 1" ends a call there, and its deferred functions run.
//   - A panic of the generator ends the test.
//   - The wall of a Virtual shows the years 1678 to 2261. A script that could leave
//     them, such as F17 for a generator whose time ends later, does not apply.
package generatortest
