package nats

import (
	"context"
	"errors"

	natsgo "github.com/nats-io/nats.go"
)

// errLost ends what waits for an answer that cannot come any more.
var errLost = errors.New("the connection to the server was lost before it answered")

// connected returns a context that ends when the connection is lost, too. The driver
// would wait until the caller's ends for an answer that went with the connection.
// done frees what is needed for that.
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

// because returns errLost instead of an error that only says that the context of
// connected has ended, if that is why.
func because(during context.Context, err error) error {
	if err != nil && context.Cause(during) == errLost && errors.Is(err, context.Canceled) {
		return errLost
	}
	return err
}
