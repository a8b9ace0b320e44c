package nats

import (
	"context"
	"errors"
	"fmt"

	natsgo "github.com/nats-io/nats.go"

	"github.com/tickflake/tickflake/stores"
)

func (s *Store) failed(ctx context.Context, op, key string, err error) error {
	// A server does not answer a forbidden request; it reports the error to the
	// connection.
	if last := s.client.Conn().LastError(); errors.Is(err, context.DeadlineExceeded) && errors.Is(last, natsgo.ErrPermissionViolation) {
		err = fmt.Errorf("%w (the connection's last error: %w)", err, last)
	}
	return stores.Failed(ctx, "nats", op, key, s.namespace, err)
}
