package nats

import (
	"context"
	"errors"

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

// because returns errLost in place of err if the context of connected has ended because the
// connection was lost.
func because(during context.Context, err error) error {
	if err != nil && context.Cause(during) == errLost && errors.Is(err, context.Canceled) {
		return errLost
	}
	return err
}
