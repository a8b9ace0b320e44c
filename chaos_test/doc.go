// Package chaos runs the generator through clock faults: steps back and forward,
// freezes, exhaustion, a clock before the epoch and one past the end of time.
// Every fault meets every strategy, on the raw wall clock and on a monoclock, and
// no call may return an ID twice, return one out of order, outlast its strategy's
// bound, or fail with an error that does not say by how much.
//
// The folder looks at the library from outside. It holds tests only; run one
// fault, or one fault with one strategy, by name:
//
//	go test ./chaos_test
//	go test ./chaos_test -run 'F4'
//	go test ./chaos_test -run 'F5/raw/borrow'
package chaos
