// Package simulation searches the core for races: one process with many callers,
// interleaved by a seed at every access to an atomic word and every reading of the clock,
// in virtual time, with faults in between. The same seed is the same run, byte for byte,
// so a failure can be looked at again.
//
//	result := simulation.Run(simulation.Random(17))
//	result, found := simulation.Search(ctx, simulation.Random, 1, 100_000)
//
// # How
//
// The package runs the real generator, internal/window and monoclock. It is built with
// the tag simulate, with which the words of package internal/word show every access to an
// observer: the run. The code that ships is built without the tag and has the words of
// sync/atomic. A plain go test runs the tests of this package with the tag; to run them
// by hand, and at more seeds:
//
//	SEEDS=100000 go test -tags simulate ./internal/simulation
//
// All words of a process show themselves to one observer, so one run goes on at a time.
// Callers are coroutines, of which one runs at a time; a schedule with only one caller to
// pick from costs no switch.
//
// How the next caller is picked is part of a program: see [Schedule]. [Random]
// takes each for a third of its seeds, because they find different bugs: uniform
// choice mixes thoroughly, and priorities with a few changes hold one caller up
// in the middle of a call while the others go far.
//
// # What is checked
//
// Of every ID: it was not issued before, is not before the generator's start nor
// beyond the time field, is above all that were returned before its call began
// (for streams: above the stream's own, and of no earlier tick), is not of a tick
// before the clock's reading, and not further ahead than the strategy borrows.
//
// Of every wait and error: the strategy, asked again with what the caller saw, says the
// same; a call waits no longer than the strategy does; an error is of the type and has
// the numbers that were promised. After Close, and after the end of a context, nothing is
// issued, and no call waits.
//
// Of a monoclock.Clock: no reading goes back, none runs ahead of a wall that was never
// set back, and the wall is looked at once a second at most and followed as it should be.
//
// At the end: no slot is lost, ticks begin where they should, Stats agree with the run,
// and a further call is served. A run that does not end, a caller that hangs and a panic
// are violations, too.
//
// In a third of the programs a simulated keeper puts grants into the window (see
// [Config.Lease]): it extends the grant, changes the node number, revokes, fails and
// seals while callers go on. Then:
//
//   - every ID lies in a grant of its node number, was reserved in the span of that
//     grant, and the window had not gone on from that span when the call began;
//   - IDs as whole numbers come in order over a change of node number;
//   - after Revoke nothing is issued until the next grant;
//   - a report that nothing is granted is true, comes no earlier than it should, and
//     carries the error that the keeper gave to Fail;
//   - no caller waits for a grant that is there: each change closes the channel that a
//     waiting caller took before its last look;
//   - the keeper is asked before a slot beyond the soft limit is taken, and before a
//     caller waits for a grant;
//   - a range that adjoins the present one extends it, and any other supersedes it;
//   - Seal tells one caller that it was the first, and all the same end, after which
//     nothing is issued; Used is above every tick of which an ID was returned.
//
// Of the window's words: a span is opened after the one before was sealed, at the first
// tick that is free, and before it is published; the slots that a caller takes begin
// where the word was or at the start that was drawn for a fresh tick, and lie below the
// soft limit; the soft limit is not above the limit; words that should only grow do.
//
// # What it does not see
//
// Reorderings of plain memory between atomic operations: the callers share no plain
// memory, which the race detector watches over. Waiting in the machine's own time, and
// the queue for it: a simulated clock brings its own wait. Grants that are put in while
// the generator is being made. The keeper itself, which the fleet simulation of package
// lease runs.
package simulation
