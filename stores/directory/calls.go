package directory

import (
	"context"
	"sync"

	"github.com/tickflake/tickflake/stores"
)

// maxCalls is how many calls of a process may run in one directory. A call that a hanging
// disk delays continues after its caller has given up, with a thread and perhaps an open
// file, and Go ends a process that has 10,000 threads.
const maxCalls = 16

// turns has the places of the calls that run, by directory. An entry exists while a call
// has a place or waits for one.
var turns = struct {
	sync.Mutex
	of map[string]*turn
}{of: make(map[string]*turn)}

type turn struct {
	places chan struct{} // with capacity maxCalls
	calls  int           // that have a place or wait for one
}

// wait is [stores.Wait] with at most maxCalls calls at a time. Further calls wait for a
// place, and leave nothing behind when their context ends.
func wait[T any](ctx context.Context, path string, call func() (T, error)) (T, error) {
	return stores.Wait(ctx, func() (T, error) {
		t := join(path)
		defer t.leave(path)
		select {
		case t.places <- struct{}{}:
			defer func() { <-t.places }()
			return call()
		case <-ctx.Done():
			var none T
			return none, ctx.Err()
		}
	})
}

func join(path string) *turn {
	turns.Lock()
	defer turns.Unlock()
	t := turns.of[path]
	if t == nil {
		t = &turn{places: make(chan struct{}, maxCalls)}
		turns.of[path] = t
	}
	t.calls++
	return t
}

func (t *turn) leave(path string) {
	turns.Lock()
	defer turns.Unlock()
	if t.calls--; t.calls == 0 {
		delete(turns.of, path)
	}
}
