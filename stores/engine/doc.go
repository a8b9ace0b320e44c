// Package engine is what an engine of package stores is made of: the parts that its author would otherwise
// write again. Programs that use stores do not need it.
//
// An engine is a package with one function that connects, and one line that makes it known to
// [github.com/tickflake/tickflake/stores.Open] when the package is initialized:
//
//   - [Register] is for a driver that has URLs, and Register of package dial for one that has none. Both take the URL apart without
//     showing a password; [Withhold] hides what the driver says about it.
//   - Package dial connects: its Dialer bounds the connections, and notices within seconds that a machine is
//     gone, or that they have rested for long. Its Transport does so for a driver that speaks HTTP.
//   - [Skeleton] makes a Store of an engine that keeps one text by key, under a revision: [Texts] has its
//     three methods. An engine that keeps version and value in another form, such as a table of SQL, makes
//     texts of them by [FormatCell] and [ParseCell].
//   - [Heeds] and [Races] look for the faults of a server of a protocol that other programs speak, too.
//   - [Wait] bounds the calls of a driver that does not end with its context.
//   - [Failed] and [OpenFailed] make the errors, which have a [github.com/tickflake/tickflake/stores.Kind].
//
// What is exported here is for authors of engines, who may rely on it as users do on package stores: a release that
// changes it says so, and engines of this project are tagged with the version of it that they need. The layout of a cell's
// text ([FormatCell]) never changes. A [Skeleton] is filled in before its first call and not changed after it; a Store that
// has methods of its own keeps it in an unexported field.
//
// Package storetest, and the tests of the engines beside this package, prove the result.
package engine
