package measure

import (
	"errors"
	"sync"
)

// Together runs do in n goroutines, with their numbers, and waits for all.
func Together(n int, do func(i int) error) error {
	var all sync.WaitGroup
	errs := make([]error, n)
	for i := range errs {
		all.Go(func() { errs[i] = do(i) })
	}
	all.Wait()
	return errors.Join(errs...)
}

// Closers end what was opened, the last first.
type Closers []func() error

// Add adds one.
func (c *Closers) Add(f func() error) { *c = append(*c, f) }

// Close ends all. It may be called again.
func (c *Closers) Close() (err error) {
	for i := range *c {
		err = errors.Join(err, (*c)[len(*c)-1-i]())
	}
	*c = nil
	return err
}
