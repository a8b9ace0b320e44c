package nats

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"
	"time"

	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/stores/internal/remote"
)

// Store is a [lease.Store] on a JetStream key-value bucket. A method whose connection
// is lost returns at once, with an error that says so. It is safe for use by several
// goroutines at once.
type Store struct {
	client    jetstream.JetStream
	namespace string
	replicas  int // of a bucket that is made; 0: choose
	close     func() error
	finding   chan struct{} // holds one while a goroutine looks for the bucket

	mu     sync.Mutex
	bucket *bucket // nil until it has been found
}

var _ lease.Store = (*Store)(nil)

// New returns a Store that uses a client of the caller's, who closes its connection
// when no Store uses it any more. The cells of a namespace are a bucket of that name;
// the error of a bad name is a [*lease.NamespaceError], and a nil client is an error,
// too.
//
// The connection's settings decide on TLS and credentials.
func New(client jetstream.JetStream, namespace string) (*Store, error) {
	if err := lease.CheckNamespace(namespace); err != nil {
		return nil, err
	}
	if client == nil {
		return nil, errors.New("nats: New needs a client, but was given nil")
	}
	return &Store{
		client: client, namespace: namespace,
		close:   func() error { return nil },
		finding: make(chan struct{}, 1),
	}, nil
}

var urlFormat = remote.Format{
	Plain:   remote.Scheme{Name: "nats", Port: "4222"},
	TLS:     remote.Scheme{Name: "tls", Port: "4222"},
	Options: []string{"replicas", "creds", "nkey"},
}

// Open connects to the NATS server at a URL,
//
//	nats://[USER:PASSWORD@]HOST[:PORT][,HOST[:PORT]…][?namespace=NAME]
//
// or tls:// to insist on TLS. A user without a password is a token. The port is 4222
// and the namespace [lease.DefaultNamespace] if there is none. Special characters of
// the password are percent-encoded. The other options are
//
//	replicas=N       copies of the bucket if it must be made, 1 to 5; without it 3
//	                 in a cluster, else 1
//	creds=FILE       the user's credentials, as made by nsc
//	nkey=FILE        the seed of the user's key
//	cacert=FILE      certificate authorities to trust, in PEM, instead of the system's
//	cert=FILE&key=FILE   the client's certificate
//
// of which the last two lines need tls://.
//
// It waits for the connection, until ctx ends. The error is a [*lease.URLError] or an
// [*OpenError]. A connection that is lost later comes back by itself. Close the Store
// when it is no longer used.
func Open(ctx context.Context, rawURL string) (*Store, error) {
	u, err := urlFormat.Parse(rawURL)
	if err != nil {
		return nil, err
	}
	if u.Path != "" {
		return nil, u.Refuse("a path after the host; want none, and the namespace as ?namespace=NAME", nil)
	}
	replicas := 0
	if text, ok := u.Options["replicas"]; ok {
		if replicas, err = strconv.Atoi(text); err != nil || replicas < 1 || replicas > 5 {
			return nil, u.Refuse("option replicas is not 1 to 5", nil)
		}
	}
	options, err := connectOptions(u)
	if err != nil {
		return nil, err
	}
	conn, err := connect(ctx, u, options)
	if err != nil {
		return nil, &OpenError{Hosts: strings.Join(u.Hosts, ","), Err: err}
	}
	client, err := jetstream.New(conn)
	if err != nil {
		conn.Close()
		return nil, &OpenError{Hosts: strings.Join(u.Hosts, ","), Err: err}
	}
	s, err := New(client, u.Namespace)
	if err != nil {
		conn.Close()
		return nil, err
	}
	s.replicas = replicas
	s.close = func() error { conn.Close(); return nil }
	return s, nil
}

func connectOptions(u *remote.URL) ([]natsgo.Option, error) {
	options := []natsgo.Option{
		natsgo.Name("tickflake"),
		natsgo.MaxReconnects(-1),
		natsgo.ReconnectWait(250 * time.Millisecond),
		// A connection whose other end is gone without a word is given up after 15 s.
		natsgo.PingInterval(5 * time.Second),
		natsgo.MaxPingsOutstanding(2),
		// Fail at once while there is no connection, so that no write of long ago is
		// sent when there is one again.
		natsgo.ReconnectBufSize(-1),
		// Else the driver prints them. What matters is in the errors.
		natsgo.ErrorHandler(func(*natsgo.Conn, *natsgo.Subscription, error) {}),
	}
	switch {
	case u.Password != "":
		options = append(options, natsgo.UserInfo(u.User, u.Password))
	case u.User != "":
		options = append(options, natsgo.Token(u.User))
	}
	if file := u.Options["creds"]; file != "" {
		creds := natsgo.UserCredentials(file)
		if err := tryCredentials(creds); err != nil {
			return nil, u.Refuse("option creds", err)
		}
		options = append(options, creds)
	}
	if file := u.Options["nkey"]; file != "" {
		nkey, err := natsgo.NkeyOptionFromSeed(file)
		if err != nil {
			return nil, u.Refuse("option nkey", err)
		}
		options = append(options, nkey)
	}
	config, err := u.TLSConfig()
	if config == nil || err != nil {
		return options, err
	}
	return append(options, natsgo.Secure(config)), nil
}

// tryCredentials reads the file as the driver does when it connects.
func tryCredentials(creds natsgo.Option) error {
	var options natsgo.Options
	if err := creds(&options); err != nil {
		return err
	}
	if _, err := options.UserJWT(); err != nil {
		return err
	}
	_, err := options.SignatureCB([]byte("nonce"))
	return err
}

// connect is nats.Connect with a context, which that does not take. It is bounded by
// a timeout per server as well, so that the goroutine ends by itself.
func connect(ctx context.Context, u *remote.URL, options []natsgo.Option) (*natsgo.Conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	servers := make([]string, len(u.Hosts))
	for i, host := range u.Hosts {
		servers[i] = u.Scheme + "://" + host
	}
	type result struct {
		conn *natsgo.Conn
		err  error
	}
	done := make(chan result)
	go func() {
		conn, err := natsgo.Connect(strings.Join(servers, ","), options...)
		select {
		case done <- result{conn, err}:
		case <-ctx.Done():
			if err == nil {
				conn.Close()
			}
		}
	}()
	select {
	case r := <-done:
		return r.conn, r.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// OpenError reports a server that [Open] could not use.
type OpenError struct {
	Hosts string // as in the URL
	Err   error  // the driver's reason
}

func (e *OpenError) Error() string {
	return "nats: open " + e.Hosts + ": " + e.Err.Error() + "; check that it is reachable and the credentials are right"
}

// Unwrap returns the driver's reason.
func (e *OpenError) Unwrap() error { return e.Err }

// Close ends what [Open] opened. It does nothing to a client given to [New], and
// returns nil.
func (s *Store) Close() error { return s.close() }

// List returns all cells, or none if there is no bucket. In a cluster it may be out of
// date. Its error wraps a [*ConfigError], the driver's or the context's.
func (s *Store) List(ctx context.Context) ([]lease.Cell, error) {
	cells, err := s.list(ctx)
	if err != nil {
		return nil, s.failed(ctx, "list", -1, err)
	}
	return cells, nil
}

func (s *Store) list(ctx context.Context) ([]lease.Cell, error) {
	ctx, done := s.connected(ctx)
	defer done()
	b, err := s.find(ctx, false)
	if b == nil || err != nil {
		return nil, because(ctx, err)
	}
	watcher, err := b.kv.WatchAll(ctx, jetstream.IgnoreDeletes())
	if err != nil {
		return nil, because(ctx, err)
	}
	defer watcher.Stop() //nolint:errcheck // only frees what the watcher holds
	var cells []lease.Cell
	for {
		select {
		case entry, ok := <-watcher.Updates():
			switch {
			case !ok:
				return nil, errors.Join(errors.New("the connection was closed"), ctx.Err())
			case entry == nil: // all that there was at the beginning
				return cells, nil
			}
			if node, ok := remote.NodeOf(entry.Key()); ok {
				cells = append(cells, lease.Cell{Node: node, Version: entry.Revision(), Value: bytes.Clone(entry.Value())})
			}
		case <-ctx.Done():
			return nil, because(ctx, ctx.Err())
		}
	}
}

// Read returns the cell of a node number. It is linearizable: the bucket's leader
// answers, and if there are several replicas, a majority confirms by a write that
// the answer is the latest. That is two round trips, with one replica one. Its error
// wraps a [*ConfigError], the driver's or the context's, or says that no cell can have
// that node number.
func (s *Store) Read(ctx context.Context, node int64) (lease.Cell, error) {
	if err := errors.Join(remote.CheckNode(node), ctx.Err()); err != nil {
		return lease.Cell{}, s.failed(ctx, "read", node, err)
	}
	outer := ctx
	ctx, done := s.connected(ctx)
	defer done()
	b, err := s.find(ctx, false)
	if err != nil {
		return lease.Cell{}, s.failed(outer, "read", node, because(ctx, err))
	}
	if b == nil {
		return lease.Cell{Node: node}, nil
	}
	for wait := firstWait; ; wait *= 2 {
		entry, err := b.get(ctx, node)
		if err == nil {
			err = b.confirm(ctx, node, entry.revision)
		}
		switch {
		case err == nil && entry.deleted:
			return lease.Cell{Node: node}, nil
		case err == nil:
			return lease.Cell{Node: node, Version: entry.revision, Value: entry.value}, nil
		case !isConflict(err) && !isBusy(err):
			return lease.Cell{}, s.failed(outer, "read", node, because(ctx, err))
		}
		if err := pause(ctx, wait); err != nil {
			return lease.Cell{}, s.failed(outer, "read", node, fmt.Errorf("it changed again and again: %w", because(ctx, err)))
		}
	}
}

// Swap replaces the value of a cell if its version still is old.Version, in one round
// trip; the first one in a namespace makes the bucket. The version is the message's
// sequence in the bucket's stream, which never comes again while the bucket exists.
//
// Its error wraps [lease.ErrConflict] if it found another version, or a [*ConfigError],
// and nothing was changed. After any other, which wraps the driver's or the context's,
// it is not known whether the value was, or will be, written.
func (s *Store) Swap(ctx context.Context, old lease.Cell, value []byte) (lease.Cell, error) {
	if err := errors.Join(remote.CheckNode(old.Node), ctx.Err()); err != nil {
		return lease.Cell{}, s.failed(ctx, "swap", old.Node, err)
	}
	outer := ctx
	ctx, done := s.connected(ctx)
	defer done()
	b, err := s.find(ctx, true)
	if err != nil {
		return lease.Cell{}, s.failed(outer, "swap", old.Node, because(ctx, err))
	}
	revision, err := b.put(ctx, old.Node, old.Version, value)
	if old.Version == 0 && isConflict(err) {
		// A key that was deleted has a revision, that of the mark left in its place.
		if entry, err2 := b.get(ctx, old.Node); err2 == nil && entry.deleted {
			revision, err = b.put(ctx, old.Node, entry.revision, value)
		}
	}
	switch {
	case isConflict(err):
		return lease.Cell{}, s.failed(outer, "swap", old.Node, fmt.Errorf("%w (%w)", lease.ErrConflict, err))
	case err != nil:
		return lease.Cell{}, s.failed(outer, "swap", old.Node, because(ctx, err))
	}
	return lease.Cell{Node: old.Node, Version: revision, Value: bytes.Clone(value)}, nil
}

const (
	firstWait = time.Millisecond
	lastWait  = 50 * time.Millisecond
)

func pause(ctx context.Context, wait time.Duration) error {
	timer := time.NewTimer(min(wait, lastWait))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// errVersion is a conflict with a version that no cell can have. The server would
// take it for no condition at all.
var errVersion = errors.New("no cell has a version beyond 2⁶³-1")

func isConflict(err error) bool {
	var api *jetstream.APIError
	return errors.Is(err, errVersion) ||
		errors.As(err, &api) && api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence
}

// isBusy reports that the server refused a write because another one to the same key
// is not yet committed. It says nothing about the version, so to try again is right,
// and it is safe because the server has dropped the refused one.
func isBusy(err error) bool {
	var api *jetstream.APIError
	return errors.As(err, &api) && api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequenceConstant
}

func tooLarge(version uint64) bool { return version > math.MaxInt64 }
