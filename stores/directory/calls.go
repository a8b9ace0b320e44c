package directory

import (
	"context"
	"sync"

	"github.com/tickflake/tickflake/stores"
)

// maxCalls is how many calls of a process may be busy in one directory. A call that a disk
// holds up goes on after its caller has given up, with a thread and perhaps a file, and Go
// ends a process that has 10,000 threads.
const maxCalls = 16

// turns has a place for each call that is busy, by directory. An entry exists while a call
// has it or waits for it.
var turns = struct {
	sync.Mutex
	of map[string]*turn
}{of: make(map[string]*turn)}

type turn struct {
	places chan struct{} // with capacity maxCalls
	calls  int           // that have a place or wait for one
}

// wait is [stores.Wait] with at most maxCalls calls at a time: further ones wait for their
// turn, and leave nothing behind when their context ends.
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
