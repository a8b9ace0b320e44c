// Package simulation searches the generator's core for races: one process with
// many callers, interleaved by a seed at every access to an atomic word and every
// reading of the clock, in virtual time, with faults in between. The same seed is
// the same run, byte for byte, so what is found once can be looked at again.
//
//	result := simulation.Run(simulation.Random(17))
//	result, found := simulation.Search(ctx, simulation.Random, 1, 100_000, 2, nil)
//
// # How
//
// The package runs copies of monoclock and generator, in core, that differ from
// the originals in four names: sync/atomic, sync.Mutex, time.Since and
// strategies.SequenceStart are replaced by those of package seam. The copies are
// written by the program in instrument; a test fails when they are out of date.
// After a change to the originals, run
//
//	go generate ./internal/simulation
//
// The originals know nothing of all this, so it costs production nothing.
//
// A word of package seam is a plain value, and each has its Observer: the run that
// it belongs to. Runs share nothing, so any number goes on at once. Callers are
// coroutines, of which one runs at a time; a schedule that only one caller could
// be picked from costs no switch.
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
// Of every wait and error: the strategy, asked again with what the caller saw,
// says the same, a call waits no longer than the strategy does, and an error is of
// the type and has the numbers that were promised. After Close, and after the end
// of a context, nothing is issued, and nobody waits. No reading of a
// monoclock.Clock goes back, none runs ahead of a wall that was never set back,
// the wall is looked at once a second at most and followed as it should be. At
// the end no slot is lost, ticks begin where they should, Stats agree with what
// was seen, and everyone has been served: a run that does not end, a caller that
// hangs and a panic are violations, too.
//
// In a third of the programs node numbers and time are granted by a simulated lease
// (see [LeaseKind]), which extends, changes and refuses grants while callers go on.
// Then every ID lies in a grant of its node number, was reserved under it and after
// the generator had gone on to it, and IDs as whole numbers come in order over the
// change. A report that nothing is granted is true, and comes no earlier than it
// should; nobody waits for a grant that is there; the lease is asked in time; and of
// all who close the generator, one is told the end, after which nothing is issued.
// Of the generator's words: a tenure is opened after the one before was sealed, at the
// first tick that is free; and no slot is reserved beyond what is open.
//
// # What it does not see
//
// Reorderings of plain memory between atomic operations: the callers share no
// plain memory, which the race detector watches over. Waiting in the machine's
// own time, and the queue of those who do: a simulated clock brings its own wait.
// What a lease does while its generator is being made.
// Random sequence starts: the simulated start is always the same number.
package simulation
