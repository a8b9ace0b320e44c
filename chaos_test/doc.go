// Package chaos puts the generator through the fault catalogue: clocks that are
// stepped, slewed, frozen, coarse, suspended or wrong from the start, processes that
// restart, die or are taken over from, and demand beyond the layout's ceiling. Every fault
// meets every strategy, on the raw wall clock and on monoclocks, at fixed sizes, and at
// random sizes in random order.
//
// The folder holds tests only, and uses the library from outside. Its tools can be
// imported: generator/generatortest (the suite, and the generator under a lease) and
// monoclock/clocktest (the clocks). The docs say how to put a generator of your own through it.
//
//	go test ./chaos_test
//	go test ./chaos_test -run 'F5/borrow'
//	go test ./chaos_test -run 'F5/borrow/raw' -v
package chaos
