// Package chaos puts the generator through the fault catalogue: clocks that are
// stepped, slewed, frozen, coarse, suspended or wrong from the start, processes
// that restart, die and are taken over from, fleets whose clocks are hours apart,
// stores that fail, and demand beyond the layout's ceiling. Every fault meets every
// strategy, on the raw wall clock and on monoclocks, at fixed sizes, and at random
// ones in random order.
//
// The folder holds tests only, and looks at the library from outside. What it uses
// can be imported: generator/generatortest, the suite, monoclock/clocktest, the clocks,
// and lease/leasetest, a store and the generator under a lease. README.md says how to put a generator of your own through it.
//
//	go test ./chaos_test
//	go test ./chaos_test -run 'F5/borrow'
//	go test ./chaos_test -run 'F5/borrow/raw' -v
package chaos
