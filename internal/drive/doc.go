// Package drive runs a machine of the protocol: grant.Machine for package lease, count.Machine for
// package sequence. What both packages have stands here once.
//
//   - [Calls] makes all calls of the store, each within the timeout, and sorts their errors. The
//     administration of both packages (list, reserve, release, found, end, create, set,
//     delete) makes its calls through it as well.
//   - [Run] is the loop that asks a machine for its next operation, carries it out, tells the machine the
//     result, and acts on what that means.
//   - [Turn] lets one goroutine at a time run a machine, and others wait for it as long as
//     their contexts allow, and [Ending] ends something although the context of who asked has ended.
//   - [Wrap], [Printable] and [Busy] make the errors that users read.
//
// # What a run keeps to
//
//  1. After a write of unknown outcome there is no other write before the machine knows what became
//     of the first. If a read does not tell, or fails, the run ends with the error of that write.
//  2. After any other operation that failed, the run ends. So while the store does not answer, a
//     run makes at most two operations, each within the timeout.
//  3. A conflict is no failure: the machine reads again. [InARow] bounds the writes of a run.
package drive
