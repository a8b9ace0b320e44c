package etcd

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tickflake/tickflake/stores"
)

// why returns the error of a request, and makes it wrap the context's error if the context
// has ended the request. The driver would return the context's error alone; only gRPC's
// error names the cause, such as a refused connection.
func why(ctx context.Context, err error) error {
	code := status.Code(err)
	if code != codes.DeadlineExceeded && code != codes.Canceled || ctx.Err() == nil {
		return err
	}
	message := status.Convert(err).Message()
	if message == ctx.Err().Error() {
		return err
	}
	return fmt.Errorf("%w: %s", ctx.Err(), message) // not %w twice: the driver would take gRPC's out
}

// refused makes the server's refusal wrap [stores.Refused].
func refused(err error) error {
	answer, _ := errors.AsType[rpctypes.EtcdError](err)
	switch answer {
	case rpctypes.ErrUserEmpty, rpctypes.ErrAuthFailed, rpctypes.ErrPermissionDenied:
		return fmt.Errorf("%w: %w", errCredentials, err)
	case rpctypes.ErrNoSpace:
		return fmt.Errorf("%w: %w", errNoSpace, err)
	}
	return err
}

var (
	errCredentials = stores.Refused.New("the server refuses the user, the password or a right: fix the URL, or grant the right that the package doc names")
	errNoSpace     = stores.Refused.New("the server is full and takes no writes: compact and defragment it, and disarm its alarm NOSPACE")
)

// explain adds that the context has ended, and gives refusals their kind. gRPC and the server, which knows
// the deadline, report the end of the context by their own errors. The server's may come a moment before the
// end.
func explain(ctx context.Context, err error) error {
	ended := ctx.Err()
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) < 10*time.Millisecond && ended == nil ||
		status.Code(err) == codes.DeadlineExceeded {
		ended = context.DeadlineExceeded
	}
	if ended != nil && !errors.Is(err, ended) && !errors.Is(err, stores.ErrConflict) {
		err = fmt.Errorf("%w: %w", ended, err)
	}
	return refused(err)
}
