package etcd

import (
	"context"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tickflake/tickflake/stores/internal/remote"
)

// Error reports an operation of a [Store] that failed. It wraps lease.ErrConflict
// if a Swap found another version and changed nothing; after any other error of
// a Swap it is not known whether the value was, or will be, written. Its fields are
// Package ("etcd"), Op ("list", "read" or "swap"), Namespace, Node (-1 if Op is
// "list") and Err, the cause, with no password in it.
type Error = remote.Error

// URLError reports a URL that [Open] cannot use. It never shows the URL, because a
// mistyped one may hold a password anywhere. Its fields are Package ("etcd"),
// Scheme if it is known, Problem, and Err, the cause, such as a certificate file that
// cannot be read; it may be nil.
type URLError = remote.URLError

func (s *Store) failed(ctx context.Context, op string, node int64, err error) error {
	// Both gRPC and the server, which is told the deadline, say in their own words that
	// the context has ended, the latter perhaps a moment before it has.
	ended := ctx.Err()
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) < 10*time.Millisecond && ended == nil ||
		status.Code(err) == codes.DeadlineExceeded {
		ended = context.DeadlineExceeded
	}
	return &Error{Package: "etcd", Op: op, Namespace: s.namespace, Node: node, Err: remote.Because(ended, err)}
}
