package drive

import (
	"context"

	"github.com/tickflake/tickflake/internal/pause"
)

// Turn lets one goroutine at a time work. Unlike a mutex, it is waited for within a context. The
// zero Turn is not usable: see [NewTurn].
type Turn chan struct{}

// NewTurn returns a turn that no goroutine has.
func NewTurn() Turn { return make(Turn, 1) }

// Take waits for the turn, at most until ctx ends. The error is that of [pause.Ended]. A turn that is
// free is taken even after ctx has ended.
func (t Turn) Take(ctx context.Context) error {
	select {
	case t <- struct{}{}:
		return nil
	default:
	}
	select {
	case t <- struct{}{}:
		return nil
	case <-ctx.Done():
		return pause.Ended(ctx)
	}
}

// Leave gives the turn up.
func (t Turn) Leave() { <-t }

// Free reports whether no goroutine has the turn.
func (t Turn) Free() bool { return len(t) == 0 }
