package drive

import (
	"context"
	"fmt"
	"sync"

	"github.com/tickflake/tickflake/internal/pause"
)

// Ending ends something once, in a goroutine of its own, which goes on when the context of who asked for
// it has ended: what is to be given back is not lost to a call of the store that hangs. The goroutine
// lasts as long as that call and those of the end. The zero Ending is ready for use.
type Ending struct {
	once sync.Once
	over chan struct{} // closed once err is set
	err  error
}

// Wait begins the end, unless another call has, and returns its error, which is the same for all calls.
// Soon after ctx ends it returns one that wraps late, which says what is not done, and that of [pause.Ended].
func (e *Ending) Wait(ctx context.Context, late error, end func(context.Context) error) error {
	e.once.Do(func() {
		e.over = make(chan struct{})
		go func() {
			defer close(e.over)
			e.err = end(context.WithoutCancel(ctx))
		}()
	})
	select {
	case <-e.over:
		return e.err
	case <-ctx.Done():
	}
	select {
	case <-e.over:
		return e.err
	default:
		return fmt.Errorf("%w yet, the store is still at it: %w", late, pause.Ended(ctx))
	}
}
