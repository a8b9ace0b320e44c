package nats

import (
	"context"
	"errors"
	"fmt"

	natsgo "github.com/nats-io/nats.go"

	"github.com/tickflake/tickflake/stores/internal/remote"
)

func (s *Store) failed(ctx context.Context, op string, node int64, err error) error {
	// A server does not answer what the user may not do; it tells the connection.
	if last := s.client.Conn().LastError(); errors.Is(err, context.DeadlineExceeded) && errors.Is(last, natsgo.ErrPermissionViolation) {
		err = fmt.Errorf("%w (the connection's last error: %w)", err, last)
	}
	return remote.Failed("nats", op, s.namespace, node, remote.Because(ctx.Err(), err))
}
