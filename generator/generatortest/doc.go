// Package generatortest puts a generator of IDs through clock faults and reports
// what it did. The generator can be any: tickflake's, another library's, your own.
// Call it from your tests, and your CI tells you when a clock that steps back makes
// your generator issue an ID twice.
//
// # How to use it
//
// There are three notions.
//
//   - A [Subject] is the generator: how to start it on a clock, what it claims, and
//     how to read its IDs. Only Name and New must be given. The more of the rest
//     there is, the more is judged.
//   - A [Script] is what happens: calls, and faults of the clock, in order. It has a
//     text, such as "ids 5000; step -1s; ids 100". The [Catalogue] holds a script for
//     every known fault.
//   - A [Report] is what the generator did: for each script a [Result] with counts,
//     and with each broken promise as a [Violation]. It is data. It prints as a
//     table, and as JSON.
//
// As a test, each fault is a subtest that can be run alone:
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
//	go test -run 'TestMyGenerator/F5'
//
// [Run] does the same and returns the Report. [RunScript] and [TestScript] take one
// script: one of your own, or one from a bug report, read by [ParseScript].
//
// The clock is a [clocktest.Virtual]. No real time is spent: a generator that waits
// for an hour moves the clock by an hour and is back at once. The clock ticks in
// microseconds.
//
// # What a claim is
//
// A [Claim] says what callers may rely on when there is no free ID at the clock's
// time: how long a call may wait, and how far ahead of the clock an ID may be. There
// are two causes. Exhausted: the clock is within the tick of the last ID, and all of
// that tick's IDs may be used up. Behind: the clock is before that tick, because it
// went back, or because IDs were taken from ahead of it.
//
// It is a claim in both directions. Who claims to wait up to 5 ms must not wait for
// longer, and must not fail where a wait of 5 ms would have helped. The zero Claim
// never waits and never runs ahead: it fails.
//
// # What is judged
//
// The bounds themselves are allowed; beyond is a violation. "The last tick" is the
// latest that any ID returned so far is of, and "the next tick" the one after it.
//
//   - [Duplicate]: an ID was issued before, by any process of the script.
//   - [Disorder]: an ID is not above all those that had been returned before its call
//     began, or is of an earlier tick (this needs Time). IDs of a batch ascend.
//     Those of a stream ascend too, but among other calls' only the tick counts. A
//     Subject that claims Unordered has its disorder counted, not held against it.
//   - [Stall]: a call took longer than claimed, in true time. If the clock was past
//     the last tick, a call takes no time at all. If it was within, the bound is
//     what is claimed for Exhausted. If it was behind, the bound is what is claimed
//     for Behind, and it is none where the next tick was too far for the claim to
//     serve, for then a wait helps nobody. Without Time or Tick, for batches, in scripts
//     with slew, freeze, coarse or leap, and until a process that was started on
//     another's state has issued an ID, the bound is the larger of the two. Calls of
//     several callers at once are not measured.
//   - [Lead]: an ID's tick begins further after the clock's reading, taken when the
//     call ended, than is claimed for the cause at that reading; if the clock was past
//     the last tick, an ID is not ahead at all. This needs Time. Without Tick, for
//     batches, streams and several callers at once, and in the other cases of Stall,
//     the bound is the larger of the two. Several callers are not held to it in a
//     script with leap: another's wait may lead over it.
//   - [Stale]: an ID's tick had ended when its call began. This needs Time and Tick.
//   - [Rejected]: a call failed though the clock was past the last tick, or though
//     the next tick was no further than the claim for its cause serves. It needs
//     Time and Tick. Of batches, only those are judged that issued nothing though the
//     clock was past the last tick. Of several callers' calls, only those of a
//     generator that waits Forever for a tick that is used up, and never runs ahead
//     then, and neither batches nor scripts with leap. A process that has not issued an ID since it
//     was started on another's state, and calls before Epoch or at End are not judged.
//   - [WrongError]: CheckError does not accept an error; a call returned neither an
//     ID nor an error; a batch was not filled and said nothing; a call ended its
//     goroutine.
//   - [EndOfTime]: an ID is for a time that is not before End, or was issued when the
//     clock was not, or while the clock was before Epoch.
//   - [NoStart]: New, Restart or Close failed, or Stream returned nil. New may fail
//     while the clock is before Epoch or not before End, in a script that begins then.
//   - [NoRecovery]: after the last step all faults end, and enough time passes for
//     the clock to be a second past the last tick. (Without Time, or if the last
//     process has issued nothing and was started on another's state: for as long as
//     all steps together, a minute, and Reserve for each start.) Then three calls, a second apart, must be
//     served at once.
//
// A call in the middle of which the wall jumped ("step -2ms at read 2") is held to
// none of Lead, Stale and Rejected, and for Stall to the larger bound: it cannot be
// known which side of the jump its clock was on. It is held to all else. Of several
// callers, that is so for all calls until each has returned its last of the step, for
// an ID from before the jump may still be on its way.
//
// The calls that NoRecovery is about, and one right after the last step, are up to
// four that the script does not have; they count as the others do.
//
// After a takeover, the calls of the process that was stopped may fail as they like,
// but return no ID that was issued before.
//
// # The same every time
//
// With one caller, a script does the same every time: nothing depends on real time
// or on the scheduler. With several callers (the setting callers, as in F16), the Go
// scheduler interleaves them, and a race may need some runs to show. Each caller makes
// calls of Next, batches of three and calls to a stream of its own in turn, as far as
// the Process has them.
//
// # What is not supported
//
//   - A generator that reads package time cannot be given a wrong clock. It runs
//     inside a bubble of testing/synctest only, and there only through the scripts in
//     which the clock is right. See SystemTime in [Subject], also for what hangs there.
//   - A call that spins, reading the clock over and over and never waiting, is ended
//     after some four million readings by runtime.Goexit of its goroutine, and
//     reported as a Stall. Its deferred functions run. What it left locked stays
//     locked; so nothing of that process is called again, not even Close, and callers
//     who wait for the lock stay behind as blocked goroutines.
//   - A call that spins without reading the clock, or waits for something other than
//     the clock for good, hangs the script. The timeout of go test shows where.
//   - Of several callers, one that spins is ended when the others have made all their
//     calls: readings are counted for all together, and whoever returns begins the
//     count anew.
//   - A goroutine of the generator's own that reads the clock counts as the caller. It
//     may be the one that a takeover stops. One that waits by the clock is not
//     supported: a wait moves the clock at once, so that it would drive time on for
//     ever, as fast as it can.
//   - The catalogue asks for about 10,000 IDs of one tick at the most. A sequence that
//     holds more is never used up by it, and what becomes of a generator then is not
//     seen. A script of one's own may ask for more.
//   - A takeover stops a call where it reads the clock, with the locks that it holds
//     there. A Restart, or a call of the process it starts, that needs one of them
//     waits for good. A call that reads the clock less often than twice is not
//     stopped at its second reading, nor one that reads it twice at its third: it
//     ends before time passes.
//   - A panic of the generator's ends the test, as any would.
//   - The wall of a Virtual shows the years 1678 to 2261. A script that could leave
//     them, as F17 for a generator whose time ends later, does not apply.
package generatortest
