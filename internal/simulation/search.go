package simulation

import (
	"context"
	"sync"
)

// Search runs n programs, make(from) and those after it, on as many goroutines as
// parallel says, and returns the result of the lowest seed that fails. It reports
// false if none does, or if ctx ends first.
//
// The answer does not depend on parallel. Seeds above one that has failed are not
// begun. Every program that has ended is passed to ended, in any order, by one
// goroutine at a time; it may be nil.
func Search(ctx context.Context, program func(seed uint64) Config, from uint64, n, parallel int, ended func(Result)) (Result, bool) {
	var (
		mu     sync.Mutex
		begun  int
		failed = n // the lowest index that failed
		lowest Result
		group  sync.WaitGroup
	)
	for range max(parallel, 1) {
		group.Go(func() {
			mu.Lock()
			defer mu.Unlock()
			for begun < failed && ctx.Err() == nil {
				i := begun
				begun++
				mu.Unlock()
				result := Run(program(from + uint64(i)))
				mu.Lock()
				if result.Failed() && i < failed {
					failed, lowest = i, result
				}
				if ended != nil {
					ended(result)
				}
			}
		})
	}
	group.Wait()
	return lowest, failed < n
}
