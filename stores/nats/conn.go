package nats

import (
	"context"
	"errors"
	"fmt"

	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/tickflake/tickflake/stores"
)

var (
	// errLost ends a wait for an answer that cannot come any more.
	errLost = stores.Transient.New("the connection to the server was lost before it answered")

	// errAway stands for the driver's error, which tells about its buffer.
	errAway = stores.Transient.New("there is no connection to a server")
)

// lastError is the key of the connection's last error before an operation.
type lastError struct{}

// connected returns a context that also ends when the connection is lost. The driver
// would wait until the caller's context ends, although the answer was lost with the
// connection. done frees the resources.
func (t *texts) connected(ctx context.Context) (during context.Context, done func()) {
	conn := t.client.Conn()
	lost := conn.StatusChanged(natsgo.DISCONNECTED, natsgo.RECONNECTING, natsgo.CLOSED)
	during, cancel := context.WithCancelCause(context.WithValue(ctx, lastError{}, conn.LastError()))
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
// knows: it was lost, or the server refuses the user or a right. A server does not answer a
// forbidden request; it reports the error to the connection.
func (t *texts) because(during context.Context, err error) error {
	if err == nil {
		return nil
	}
	if context.Cause(during) == errLost && errors.Is(err, context.Canceled) {
		err = errLost
	}
	conn := t.client.Conn()
	last := conn.LastError()
	isNew := last != during.Value(lastError{})
	tell := refused(last) != last && (isNew || !conn.IsConnected()) && !errors.Is(err, stores.ErrConflict)
	if errors.Is(err, natsgo.ErrReconnectBufExceeded) {
		err = t.dialer.Because(errAway)
		tell = err == errAway && last != nil
	}
	if tell {
		err = fmt.Errorf("%w (the connection's last error: %w)", err, last)
	}
	return err
}

// refused gives the server's refusal its kind.
func refused(err error) error {
	for _, r := range refusals {
		if errors.Is(err, r.of) {
			return fmt.Errorf("%w: %w", r.why, err)
		}
	}
	return err
}

var (
	errCredentials = stores.Permanent.New("the server refuses the user, the password or a right: fix the URL, or grant the rights that the package doc lists")
	errNoStreams   = stores.Permanent.New("the server has no JetStream for this account: switch it on")
	errNobody      = stores.Transient.New("no JetStream answers, or none in the domain that the URL names: look at the servers, and at the option domain")
	errDomain      = stores.Permanent.New("the JetStream that answers is of another domain than the URL names, and each has a bucket of its own, so IDs would be issued twice: name one by domain=, the same for all processes")
	errGone        = stores.Transient.New("the bucket was deleted while it was in use, or a server that begins to lead does not know it yet: end all processes before it is made anew")
	errLeader      = stores.Transient.New("the bucket has no leader now, or was deleted while it was in use")
	errFull        = stores.Permanent.New("JetStream has no room left: raise max_file_store, or the limits of the account")
	errCopies      = stores.Permanent.New("this server is alone, and keeps one copy: take replicas=1, or a cluster")
	errPeers       = stores.Transient.New("the cluster has too few servers for the bucket's copies: start them, or name fewer copies by replicas=")

	errAlone = code(10074)

	// refusals are those of the server, and those that pass last: an error can be of both.
	refusals = []struct{ of, why error }{
		{natsgo.ErrNoInfoReceived, stores.Permanent.New("the server is no NATS server: fix the URL")},
		{natsgo.ErrAuthorization, errCredentials}, {natsgo.ErrAuthExpired, errCredentials}, {natsgo.ErrAuthRevoked, errCredentials},
		{natsgo.ErrAccountAuthExpired, errCredentials}, {natsgo.ErrPermissionViolation, errCredentials},
		{jetstream.ErrJetStreamNotEnabled, errNoStreams}, {jetstream.ErrJetStreamNotEnabledForAccount, errNoStreams},
		{code(10002), errFull}, {code(10023), errFull}, {code(10047), errFull}, {errAlone, errCopies},
		{natsgo.ErrNoResponders, errNobody},
		{natsgo.ErrMaxConnectionsExceeded, stores.Transient.New("the server has as many connections as it may: raise max_connections")},
		{jetstream.ErrNoStreamResponse, errLeader}, {code(10008), errLeader}, {code(10005), errPeers},
		{natsgo.ErrConnectionClosed, errAway}, {natsgo.ErrDisconnected, errAway}, {natsgo.ErrStaleConnection, errAway}, {natsgo.ErrNoServers, errAway},
	}
)

// code is an error of JetStream that has no name in the driver.
func code(n jetstream.ErrorCode) error { return &jetstream.APIError{ErrorCode: n} }
