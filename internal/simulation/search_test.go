//go:build simulate

package simulation

import "context"

// Search runs n programs, program(from) and those after it, and returns the result of
// the first that fails. It reports false if none does, or if ctx ends first.
func Search(ctx context.Context, program func(seed uint64) Config, from uint64, n int) (Result, bool) {
	for i := range n {
		if ctx.Err() != nil {
			break
		}
		if result := Run(program(from + uint64(i))); result.Failed() {
			return result, true
		}
	}
	return Result{}, false
}
