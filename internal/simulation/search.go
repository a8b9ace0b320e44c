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
// begun, so progress need not reach n; it is called with the number of programs
// that have ended, by one goroutine at a time, and may be nil.
func Search(ctx context.Context, program func(seed uint64) Config, from uint64, n, parallel int, progress func(ended int)) (Result, bool) {
	var (
		mu     sync.Mutex
		begun  int
		ended  int
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
				ended++
				if progress != nil {
					progress(ended)
				}
			}
		})
	}
	group.Wait()
	return lowest, failed < n
}
