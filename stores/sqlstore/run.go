package sqlstore

import (
	"context"
	"fmt"

	"github.com/tickflake/tickflake/stores"
)

// MaxRunning is how many statements of one Store may be without an answer. It bounds the
// connections that a server has for the Store, since each statement keeps its own until the
// server has answered. Further operations wait, and fail when their context ends.
const MaxRunning = 4

// run runs a statement, and returns its results, or an error when ctx has ended. statement
// must not use memory of the caller, since it may end later.
//
// Most drivers close a connection whose context has ended. But the server goes on with the
// statement, for example waits for a lock, counts the connection, and does not tell when
// that ends. So the statement gets a context without that end, unless the driver then
// makes the server end the statement.
//
// Invariant: s.running holds one element for each statement that may still be at the server.
func run[T any](ctx context.Context, s *Store, statement func(context.Context) (T, error)) (T, error) {
	got, err := stores.Wait(ctx, func() (none T, err error) {
		select {
		case s.running <- struct{}{}:
			defer func() { <-s.running }()
		case <-ctx.Done():
		}
		if err := ctx.Err(); err != nil {
			return none, err
		}
		if s.dialect.cancels {
			got, err := statement(ctx)
			// A write that waits for a standby when it is cancelled is acknowledged all the same.
			if err == nil && ctx.Err() != nil {
				return none, ctx.Err()
			}
			return got, err
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stores.MaxSilence)
		defer cancel()
		return statement(ctx)
	})
	if err != nil && ctx.Err() != nil && len(s.running) == MaxRunning {
		err = fmt.Errorf("%w: %d statements have no answer yet, and no other is sent before one has: look for locks on table %s", err, MaxRunning, s.table)
	}
	return got, err
}
