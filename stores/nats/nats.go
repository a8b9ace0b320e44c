package nats

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/engine"
	"github.com/tickflake/tickflake/stores/engine/dial"
)

// texts are the entries of the bucket of a namespace, for the skeleton. A deleted key has a revision: that of the marker in
// its place.
type texts struct {
	client    jetstream.JetStream
	namespace string
	domain    string // of JetStream; "" is that of servers that name none
	api       string // with which the subjects of its requests begin
	replicas  int    // of a bucket that is made; 0: 3, or 1 on a server alone
	dialer    *dial.Dialer

	// found holds the bucket, or nil until there is one. It is empty while a goroutine looks.
	found chan *bucket
}

func (t *texts) Get(ctx context.Context, key string, latest bool) (text engine.Text[uint64], err error) {
	err = t.use(ctx, false, func(ctx context.Context, b *bucket) (err error) {
		if latest {
			text, err = b.latest(ctx, key)
		} else {
			text, err = b.get(ctx, key)
		}
		return err
	})
	return text, err
}

func (t *texts) Put(ctx context.Context, key string, revision uint64, text []byte) error {
	return t.use(ctx, true, func(ctx context.Context, b *bucket) error {
		err := b.put(ctx, key, revision, text)
		if errors.Is(err, errConflict) {
			err = fmt.Errorf("%w (%w)", stores.ErrConflict, err)
		}
		return err
	})
}

func (t *texts) Scan(ctx context.Context, _, _ string, _ int, found func(string, []byte)) (more bool, err error) {
	return false, t.use(ctx, false, func(ctx context.Context, b *bucket) error {
		// A watcher may miss an entry that is written meanwhile.
		info, err := b.stream.Info(ctx, jetstream.WithSubjectFilter(b.prefix+">"))
		if err != nil {
			return err
		}
		for subject := range info.State.Subjects {
			found(fromSubject.Replace(strings.TrimPrefix(subject, b.prefix)), nil)
		}
		return nil
	})
}

// use calls do with the bucket of the namespace, which it makes if create. Else do reads, and if there is no bucket, use returns
// nil: there are no cells. A bucket that was used before and is gone is an error: a new one would give the same node numbers
// again.
func (t *texts) use(ctx context.Context, create bool, do func(context.Context, *bucket) error) error {
	ctx, done := t.connected(ctx)
	defer done()
	b, err := t.find(ctx, create)
	switch {
	case err != nil || b == nil:
	case create:
		err = do(ctx, b)
	default:
		err = asked(ctx, func(ctx context.Context) error { return do(ctx, b) })
	}
	if b != nil && errors.Is(err, jetstream.ErrStreamNotFound) {
		err = fmt.Errorf("%w: %w", errGone, err)
	}
	return t.because(ctx, err)
}

// asked makes a request that changes nothing again until it is answered: within a second, and each time twice as long. A server
// that ceases to lead the bucket leaves some without an answer.
func asked(ctx context.Context, request func(context.Context) error) error {
	for limit := time.Second; ; limit *= 2 {
		attempt, cancel := context.WithTimeout(ctx, limit)
		err := request(attempt)
		cancel()
		if ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded) {
			return err
		}
	}
}

// In a subject, dots stand for the slashes of a key. Equals signs stand for its dots, since a subject cannot have two dots in
// a row.
var (
	toSubject   = strings.NewReplacer("/", ".", ".", "=")
	fromSubject = strings.NewReplacer(".", "/", "=", ".")
)

// ask looks at the bucket, if there is one.
func (t *texts) ask(ctx context.Context) (stores.Durability, error) {
	ctx, done := t.connected(ctx)
	defer done()
	found := stores.Durability{Unknown: []string{
		"sync_interval is unknown, because the server does not tell it, and its default loses up to two minutes of writes in a crash of the machine: set it to always"}}
	var stream jetstream.Stream
	err := asked(ctx, func(ctx context.Context) (err error) {
		if stream, err = t.client.Stream(ctx, "KV_"+t.namespace); err == nil {
			err = t.atHome(ctx)
		}
		return err
	})
	if stream == nil && errors.Is(err, jetstream.ErrStreamNotFound) {
		return found, nil
	}
	if err != nil {
		return found, t.because(ctx, err)
	}
	for _, problem := range unfit(stream.CachedInfo().Config) {
		found.Forgets = append(found.Forgets, "bucket "+t.namespace+": "+problem)
	}
	return found, nil
}

// pauses are those between the tries of a request that the server cannot serve yet.
func pauses() engine.Backoff {
	return engine.Backoff{First: time.Millisecond, Last: 50 * time.Millisecond}
}

var (
	errConflict = &jetstream.APIError{ErrorCode: jetstream.JSErrCodeStreamWrongLastSequence}

	// errBusy says that the server refused a write because another one to the same key
	// is not yet committed. It says nothing about the version, so a retry is right,
	// and it is safe because the server has dropped the refused write.
	errBusy = &jetstream.APIError{ErrorCode: jetstream.JSErrCodeStreamWrongLastSequenceConstant}
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
