package nats

import (
	"context"
	"errors"
	"fmt"

	natsgo "github.com/nats-io/nats.go"
)

// errLost ends a wait for an answer that cannot come any more.
var errLost = errors.New("the connection to the server was lost before it answered")

// connected returns a context that also ends when the connection is lost. The driver
// would wait until the caller's context ends, although the answer was lost with the
// connection. done frees the resources.
func (s *Store) connected(ctx context.Context) (during context.Context, done func()) {
	conn := s.client.Conn()
	lost := conn.StatusChanged(natsgo.DISCONNECTED, natsgo.RECONNECTING, natsgo.CLOSED)
	during, cancel := context.WithCancelCause(ctx)
	go func() {
		select {
		case <-lost:
			cancel(errLost)
		case <-during.Done():
		}
	}()
	return during, func() {
		cancel(nil)
		conn.RemoveStatusListener(lost)
	}
}

// because returns the error of an operation, with the reason that only the connection
// knows: it was lost, or the server refused a right. A server does not answer a forbidden
// request; it reports the error to the connection.
func (s *Store) because(during context.Context, err error) error {
	if err == nil {
		return nil
	}
	if context.Cause(during) == errLost && errors.Is(err, context.Canceled) {
		return errLost
	}
	if last := s.client.Conn().LastError(); errors.Is(err, context.DeadlineExceeded) && errors.Is(last, natsgo.ErrPermissionViolation) {
		err = fmt.Errorf("%w (the connection's last error: %w)", err, last)
	}
	return err
}
