package etcd

import (
	"context"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tickflake/tickflake/stores/internal/remote"
)

func (s *Store) failed(ctx context.Context, op string, node int64, err error) error {
	// Both gRPC and the server, which is told the deadline, say in their own words that
	// the context has ended, the latter perhaps a moment before it has.
	ended := ctx.Err()
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) < 10*time.Millisecond && ended == nil ||
		status.Code(err) == codes.DeadlineExceeded {
		ended = context.DeadlineExceeded
	}
	return remote.Failed("etcd", op, s.namespace, node, remote.Because(ended, err))
}
