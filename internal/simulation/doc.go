// Package simulation searches the core for races: one process with many callers,
// interleaved by a seed at every access to an atomic word and every reading of the clock,
// in virtual time, with faults in between. The same seed is the same run, byte for byte,
// so a failure can be repeated.
//
//	go test -tags simulate ./internal/simulation               # every seed of the tests
//	SEEDS=100000 go test -tags simulate ./internal/simulation  # and more
//
// The package has tests only, and a plain go test runs them with the tag simulate by itself.
// A failure prints the seed, the program and the end of the trace: Run(Random(seed)) in a test runs
// it again.
//
// # How
//
// The tests run the real generator, internal/window and monoclock. They are built with
// the tag simulate, with which the words of package internal/word show every access to an
// observer: the run. Released code is built without the tag and has the words of
// sync/atomic.
//
// All words of a process show themselves to one observer, so a process has one run at a time.
// Callers are coroutines, and one of them runs at a time; if only one caller is ready, there
// is no switch.
//
// A program, Config, says how the next caller is picked: see Schedule. Random
// uses each schedule for a third of its seeds, because they find different bugs: uniform
// choice mixes thoroughly, and priorities with a few changes stop one caller
// in the middle of a call while the others make many calls.
//
// # What is checked
//
// Of every ID: it was not issued before, is not before the generator's start nor
// beyond the time field, is above all that were returned before its call began
// (for streams: above the stream's own, and of no earlier tick), is not of a tick
// before the clock's reading, and not further ahead than the strategy borrows.
//
// Of every wait and error: the strategy decides the same again for the values that the
// caller saw; a call waits no longer than the strategy allows; an error has the
// documented type and numbers. After Close, and after the end of a context, no ID is
// issued, and no call waits.
//
// Of a monoclock.Clock: no reading goes back, none runs ahead of a wall that was never
// set back, and the Clock reads the wall once a second at most and follows it as documented.
//
// At the end: no slot is lost, ticks begin where they should, Stats agree with the run,
// and a further call is served. A run that does not end, a caller that hangs and a panic
// are violations, too.
//
// In a third of the programs a simulated keeper puts grants into the window (see
// Config.Lease): it extends the grant, changes the node number, revokes, fails and
// seals while callers go on. Then:
//
//   - every ID lies in a grant of its node number, was reserved in the span of that
//     grant, and the window had not left that span when the call began;
//   - IDs as whole numbers come in order across a change of node number;
//   - after Revoke no ID is issued until the next grant;
//   - an error that nothing is granted is true, comes no earlier than it should, and
//     wraps the error that the keeper gave to Fail;
//   - no caller waits for a grant that exists: each change closes the channel that a
//     waiting caller took before its last look;
//   - the keeper is asked before a slot beyond the soft limit is taken, and before a
//     caller waits for a grant;
//   - a range that adjoins the present one extends it, and any other supersedes it;
//   - Seal reports to one caller that it was the first, and to all the same end, after
//     which no ID is issued; Used is above the tick of every returned ID.
//
// Of the window's words: a span is opened after the one before was sealed, at the first
// tick that is free, and before it is published; the slots that a caller takes begin
// where the word was or at the start that was drawn for a fresh tick, and lie below the
// soft limit; the soft limit is not above the limit; words that should only grow do.
//
// # Counted numbers
//
// RandomCounted makes programs on a window of counted numbers, without a generator and a
// clock: callers count as package sequence does, a keeper queues ranges and revokes them, and
// a caller seals. Then:
//
//   - no number is taken twice, and all numbers of a call stand in a row in granted ranges;
//   - a number is above all that were returned before its call began, and is not taken after
//     Seal, nor after the Revoke of its range;
//   - a call that fails asks for a range, and gives nothing up; one for one number does not
//     fail while numbers are left;
//   - Queue and Revoke close the channel that a waiting caller took before;
//   - Seal reports to one caller that it was the first, and to all the same end;
//   - at the end, all granted numbers were taken, are left, or are counted as given up.
//
// # Limits
//
// The simulation does not see reorderings of plain memory between atomic operations: the
// callers share no plain memory, and the race detector checks that. It does not run waits
// in the machine's own time, and their queue: a simulated clock has its own wait. It puts
// no grant in while New makes the generator. It does not run the keeper: the fleet
// simulation of package lease does.
package simulation
