// Package program runs programs for tests and benchmarks: a private process on a
// free port of the loopback interface, with its data in a temporary directory.
//
// [Start] runs any program until it is stopped, and [Run] until it ends. [Build] makes a program of this repository, and
// [Serve] runs "tickflake serve", whose wall clock can be stepped. Package servers, beside this one, knows how to run the
// servers of the stores. Tests use [For] and [RunFor], which clean up after them, and [Main], which removes what was built.
//
// A server that is not installed is a [*MissingError], which names Debian's package.
// Some servers refuse to run as root, as programs in a container do. Then they run with the
// rights of another user, who must own the directory.
//
// The package is for Unix. On Linux a server ends when the program ends, even if it is killed; on other
// systems it keeps running then.
package program
