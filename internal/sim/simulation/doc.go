// Package simulation searches the core for races: one process with many callers,
// interleaved by a seed at every access to an atomic word and every reading of the clock,
// in virtual time, with faults in between. The same seed is the same run, byte for byte,
// so a failure can be repeated.
//
//	go test -tags simulate ./internal/sim/simulation               # every seed of the tests
//	SEEDS=100000 go test -tags simulate ./internal/sim/simulation  # and more
//
// The package has tests only, and a plain go test runs them with the tag simulate by itself.
// A failure prints the seed and the end of the trace.
//
// # How
//
// The tests run the real generator, internal/window and monoclock. They are built with
// the tag simulate, with which the words of package internal/word show every access to an
// observer: the run. Released code is built without the tag and has the words of
// sync/atomic. All words of a process show themselves to one observer, so a process has one run
// at a time. Callers are coroutines, and one of them runs at a time.
//
// # What is checked
//
// Of a generator, while a keeper extends its grant, changes the node number, revokes, fails and seals:
//
//   - every ID is new, lies in a grant of its node number, above all that were returned before its call
//     began (for streams: above the stream's own, and of no earlier tick), and no further from the
//     readings of the clock than the strategy says;
//   - an ID of NextAfter is above the one that was seen, and no such call, also one that fails, has moved the
//     word further ahead of the clock than the strategy borrows, so no other call waits for a seen ID;
//   - after Close, Seal, Revoke and the end of a context no ID is issued, and one call is told that it
//     was the first to seal;
//   - no call waits for a grant that exists, or that the keeper was not asked for, and each change
//     closes the channel that a waiting caller took before its last look;
//   - an error is one of the documented ones, and true;
//   - a call drops at most one slot, by an addition, and only if it overlaps another call, or a change;
//   - at the end, no other slot is lost, and a further call is served.
//
// A caller is often held up between its look at the end of additions and its addition, and the test fails
// unless the end of a tick, a step back, a change of the node number and a seal have come in between.
// In this build, ticks of 8 slots and more have additions.
//
// Of a window of counted numbers, whose callers count as package sequence does: the same, and it counts what was
// taken. Of a monoclock.Clock that catches
// up: no reading goes back, none runs ahead of the wall, and the wall is read once a second at most.
//
// Exact waits, thresholds and Stats are checked by one caller at a time, in the tests of package generator.
//
// # Limits
//
// The simulation does not see reorderings of plain memory between atomic operations: the
// callers share no plain memory, and the race detector checks that. It does not run waits
// in the machine's own time, and their queue: a simulated clock has its own wait. It puts
// no grant in while New makes the generator. It does not run the keeper: the fleet
// simulation of package lease does.
package simulation
