// Package peers puts other public ID generators through the fault catalogue, and
// tickflake beside them. What they do is shown by the sections faults and waste of
// the report:
//
//	go run ./bench --only faults,waste
//
// # How a peer is driven
//
// A peer that takes a clock, or a time per call, is handed the virtual clock of
// clocktest and meets every fault. One that reads package time runs in a bubble
// of testing/synctest, whose time is virtual but never wrong: it meets exhaustion,
// the end of time, a clock before its epoch, and restarts. A bubble's time passes
// only when every goroutine in it waits, so a peer that spins never gets out of
// its loop. Each bubble is in a process of its own, which is ended when it has not
// answered within a limit of real time, and the processor time it used tells a
// spin from a wait. A cell in which a peer could not be driven says nothing about
// the peer. Where a script of the catalogue cannot be run as it is, but something
// like it can, [Peer] has it under Instead, and the report says what is different.
//
// A restart is a new generator with the same settings, which is what users make
// when their process starts again. Where the state is in package variables, or the
// wall must step back in between, the process that starts again is a real one.
//
// On either clock no time passes while a generator computes. Where a scenario asks
// for thousands of IDs and lets no time pass, they are asked for in one instant.
//
// # What a peer is held to
//
// No peer may issue an ID twice, or one whose time has wrapped. A call may take
// as long as the peer's documentation says, and an ID be as far ahead of the
// clock; where it says nothing, not at all. Order is judged only where it is
// promised whatever the clock does, and counted everywhere. Verdicts come from
// running the peer. Only the reasons why something cannot be run are written down
// here, with the function that they were read in.
package peers
