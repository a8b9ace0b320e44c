package directory

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tickflake/tickflake/stores/engine"
)

// maxCalls is how many calls of a process may run in one directory. A call that a hanging
// disk delays continues after its caller has given up, with a thread and perhaps an open
// file, and Go ends a process that has 10,000 threads.
const maxCalls = 16

// places has, by the path of each directory that this process has used, a channel with capacity maxCalls: the places of
// the calls that run.
var places sync.Map

// call is a call with its context.
type call struct {
	context.Context
	places chan struct{} // of its directory
	inside bool          // it has a place
	// busy says who has locked the file for which the call waits. It is nil unless waitLock
	// waits, or the context ended there.
	busy atomic.Pointer[error]
}

func (c *call) enter() error {
	select {
	case c.places <- struct{}{}:
		c.inside = true
		return nil
	case <-c.Done():
		return c.Err()
	}
}

func (c *call) leave() {
	if c.inside {
		c.inside = false
		<-c.places
	}
}

// wait is [engine.Wait] with at most maxCalls calls at a time. Further calls wait for a
// place, and leave nothing behind when their context ends.
func wait[T any](ctx context.Context, path string, do func(*call) (T, error)) (T, error) {
	c, began := &call{Context: ctx}, time.Now()
	value, err := engine.Wait(ctx, func() (T, error) {
		of, _ := places.LoadOrStore(path, make(chan struct{}, maxCalls))
		c.places = of.(chan struct{})
		defer c.leave()
		if err := c.enter(); err != nil {
			var none T
			return none, err
		}
		return do(c)
	})
	if busy := c.busy.Load(); err != nil && busy != nil {
		err = fmt.Errorf("%w, waited %s: if it is stopped, wake it or end it: %w", *busy, time.Since(began).Round(time.Millisecond), err)
	}
	return value, err
}
