package sqlstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"

	"github.com/tickflake/tickflake/internal/pause"
	"github.com/tickflake/tickflake/stores/engine/dial"
)

// MaxRunning is how many statements of one Store may wait for an answer. It bounds the
// connections that a server has for the Store, since each statement keeps its own until the
// server has answered. Further operations wait, and fail when their context ends.
const MaxRunning = 4

// attempts is how often run tries a connection that the driver reports as dead before it has
// sent anything, as [sql.DB] does.
const attempts = 3

// run runs a statement and returns its result, at the latest some seconds after ctx has ended: the skeleton does
// not wait for it. statement must not use memory of the caller.
//
// Most drivers close a connection when its context ends. But the server continues the
// statement, for example waits for a lock, and counts the connection until the statement
// has ended. So the connection and the statement get a context that does not end with ctx,
// unless the driver asks the server to cancel the statement. The statement is sent only if
// its caller still waits when the handle has given the connection.
//
// Invariant: s.running holds one element for each statement that may still be at the server
// or waits for a connection; s.sent counts the former.
func run[T any](ctx context.Context, s *Store, statement func(context.Context, *sql.Conn) (T, error)) (got T, err error) {
	select {
	case s.running <- struct{}{}:
		defer func() { <-s.running }()
	case <-ctx.Done():
		return got, pause.Ended(ctx)
	}
	long := ctx
	if !s.dialect.cancels {
		var cancel context.CancelFunc
		long, cancel = context.WithTimeout(context.WithoutCancel(ctx), dial.MaxSilence)
		defer cancel()
	}
	for range attempts {
		if got, err = send(ctx, long, s, statement); !errors.Is(err, driver.ErrBadConn) {
			break
		}
	}
	return got, err
}

// send runs a statement, on a connection of the handle, if the caller still waits for it.
func send[T any](ctx, long context.Context, s *Store, statement func(context.Context, *sql.Conn) (T, error)) (none T, err error) {
	if err := ctx.Err(); err != nil {
		return none, err
	}
	conn, err := s.db.Conn(long)
	if err != nil {
		return none, err
	}
	defer func() { _ = conn.Close() }() // it goes back to the pool
	if err := ctx.Err(); err != nil {
		return none, err
	}
	s.sent.Add(1)
	defer s.sent.Add(-1)
	got, err := statement(long, conn)
	// A server that cancels a write's wait for a standby acknowledges the write.
	if err == nil && s.dialect.cancels && ctx.Err() != nil {
		return none, ctx.Err()
	}
	return got, err
}

// late returns the error of an operation whose context has ended, with the reason if it is
// known.
func (s *Store) late(err error) error {
	most, pool := MaxRunning, s.db.Stats()
	if pool.MaxOpenConnections > 0 {
		most = min(most, pool.MaxOpenConnections)
	}
	switch {
	case int(s.sent.Load()) == most:
		return fmt.Errorf("%w: %d statements have no answer yet, and the next is sent only after an answer: look for locks on table %s", err, most, s.table)
	case pool.MaxOpenConnections > 0 && pool.InUse >= pool.MaxOpenConnections:
		return fmt.Errorf("%w: all %d connections of the database handle are in use or being made: raise SetMaxOpenConns, or look for their users", err, pool.InUse)
	}
	return err
}
