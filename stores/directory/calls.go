package directory

import (
	"context"
	"sync"

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

// place runs a call, as at most maxCalls at a time. Further calls wait for a place, and leave nothing
// behind when their context ends.
func place[T any](ctx context.Context, path string, do func(*call) (T, error)) (none T, err error) {
	of, _ := places.LoadOrStore(path, make(chan struct{}, maxCalls))
	c := &call{Context: ctx, places: of.(chan struct{})}
	defer c.leave()
	if err := c.enter(); err != nil {
		return none, err
	}
	return do(c)
}

// wait is place, and does not wait for the call when ctx has ended, as the skeleton does not.
func wait[T any](ctx context.Context, path string, do func() (T, error)) (T, error) {
	return engine.Wait(ctx, func() (T, error) { return place(ctx, path, func(*call) (T, error) { return do() }) })
}
