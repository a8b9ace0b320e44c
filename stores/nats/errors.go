package nats

import (
	"context"
	"errors"
	"fmt"

	natsgo "github.com/nats-io/nats.go"

	"github.com/tickflake/tickflake/stores/internal/remote"
)

// Error reports an operation of a [Store] that failed. It wraps lease.ErrConflict
// if a Swap found another version and changed nothing; after any other error of
// a Swap it is not known whether the value was, or will be, written. Its fields are
// Package ("nats"), Op ("list", "read" or "swap"), Namespace, Node (-1 if Op is
// "list") and Err, the cause, with no password in it.
type Error = remote.Error

// URLError reports a URL that [Open] cannot use. It never shows the URL, because a
// mistyped one may hold a password anywhere. Its fields are Package ("nats"),
// Scheme if it is known, Problem, and Err, the cause, such as a certificate file that
// cannot be read; it may be nil.
type URLError = remote.URLError

func (s *Store) failed(ctx context.Context, op string, node int64, err error) error {
	// A server does not answer what the user may not do; it tells the connection.
	if last := s.client.Conn().LastError(); errors.Is(err, context.DeadlineExceeded) && errors.Is(last, natsgo.ErrPermissionViolation) {
		err = fmt.Errorf("%w (the connection's last error: %w)", err, last)
	}
	return &Error{Package: "nats", Op: op, Namespace: s.namespace, Node: node, Err: remote.Because(ctx.Err(), err)}
}
