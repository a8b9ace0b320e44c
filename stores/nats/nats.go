package nats

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/tickflake/tickflake/stores"
)

// Store is a [stores.Store] on a JetStream key-value bucket. A method whose connection
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

var _ stores.DurabilityChecker = (*Store)(nil)

// New returns a Store that uses a client of the caller's, who closes its connection
// when no Store uses it any more. The cells of a namespace are a bucket of that name;
// a name that [stores.CheckNamespace] refuses and a nil client are errors.
//
// The connection's settings decide on TLS and credentials.
func New(client jetstream.JetStream, namespace string) (*Store, error) {
	if err := stores.CheckNamespace(namespace); err != nil {
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

var urlFormat = stores.URLFormat{
	Plain:   stores.URLScheme{Name: "nats", Port: "4222"},
	TLS:     stores.URLScheme{Name: "tls", Port: "4222"},
	Options: []string{"replicas", "creds", "nkey"},
}

func init() {
	stores.Register("nats", open)
	stores.Register("tls", open)
}

// open connects to the servers of a URL, as the package's doc describes it. It waits for
// the connection, until ctx ends.
func open(ctx context.Context, rawURL string) (stores.Store, error) {
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
		return nil, stores.OpenFailed(ctx, stores.At("nats", u.Hosts...), err)
	}
	client, err := jetstream.New(conn)
	if err != nil {
		conn.Close()
		return nil, stores.OpenFailed(ctx, stores.At("nats", u.Hosts...), err)
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

func connectOptions(u *stores.URL) ([]natsgo.Option, error) {
	options := []natsgo.Option{
		natsgo.Name("tickflake"),
		natsgo.MaxReconnects(-1),
		natsgo.ReconnectWait(250 * time.Millisecond),
		// A connection whose other end has vanished is given up after 15 s.
		natsgo.PingInterval(5 * time.Second),
		natsgo.MaxPingsOutstanding(2),
		// Fail at once while there is no connection, so that no old write is sent when
		// there is one again.
		natsgo.ReconnectBufSize(-1),
		// Otherwise the driver prints the errors, which the methods return.
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

// connect is nats.Connect with a context. It tries again until ctx ends; the timeout of
// each server ends its goroutine.
func connect(ctx context.Context, u *stores.URL, options []natsgo.Option) (*natsgo.Conn, error) {
	servers := make([]string, len(u.Hosts))
	for i, host := range u.Hosts {
		servers[i] = u.Scheme + "://" + host
	}
	type result struct {
		conn *natsgo.Conn
		err  error
	}
	for wait := firstWait; ; wait *= 2 {
		if err := ctx.Err(); err != nil {
			return nil, err
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
			// Any other answer than that of no server is final, such as that of a wrong
			// password.
			if !errors.Is(r.err, natsgo.ErrNoServers) || !again(ctx) || pause(ctx, wait) != nil {
				return r.conn, r.err
			}
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// Close ends the connection of a Store that was opened by a URL. It does nothing to a
// client given to [New], and returns nil.
func (s *Store) Close() error { return s.close() }

// List returns the cells with keys in [from, to), at most limit of them. It reads all
// cells whose keys have the same first part, if the range is of one, or else all. In a
// cluster it may be out of date. A text that is no cell is a [*stores.DamagedError].
func (s *Store) List(ctx context.Context, from, to string, limit int) ([]stores.Cell, error) {
	if limit < 1 || from >= to {
		return nil, nil
	}
	cells, err := s.list(ctx, from, to, limit)
	if err != nil {
		return cells, s.failed(ctx, "list", "", err)
	}
	return cells, nil
}

func (s *Store) list(ctx context.Context, from, to string, limit int) ([]stores.Cell, error) {
	ctx, done := s.connected(ctx)
	defer done()
	b, err := s.find(ctx, false)
	if b == nil || err != nil {
		return nil, because(ctx, err)
	}
	watcher, err := b.kv.Watch(ctx, filter(from, to), jetstream.IgnoreDeletes())
	if err != nil {
		return nil, because(ctx, err)
	}
	defer watcher.Stop() //nolint:errcheck // only frees what the watcher holds
	texts := make(map[string][]byte)
	for more := true; more; {
		select {
		case entry, ok := <-watcher.Updates():
			if !ok {
				return nil, errors.Join(errors.New("the connection was closed"), ctx.Err())
			}
			if more = entry != nil; !more {
				break // all that there was at the beginning
			}
			if key, ok := keyOf(entry.Key()); ok && from <= key && key < to {
				texts[key] = entry.Value()
			}
		case <-ctx.Done():
			return nil, because(ctx, ctx.Err())
		}
	}
	var cells []stores.Cell
	var damaged []error
	for _, key := range slices.Sorted(maps.Keys(texts)) {
		if len(cells) == limit {
			break
		}
		cell, err := stores.ParseCell(key, bytes.Clone(texts[key]))
		if err != nil {
			damaged = append(damaged, err)
			continue
		}
		cells = append(cells, cell)
	}
	return cells, stores.JoinDamaged(damaged)
}

// In a subject, dots stand for the slashes of a key, so that a List can ask for the cells
// below a first part; and equals signs for its dots, which a subject cannot have side by
// side.
var (
	toSubject   = strings.NewReplacer("/", ".", ".", "=")
	fromSubject = strings.NewReplacer(".", "/", "=", ".")
)

// keyOf returns the key of a subject.
func keyOf(subject string) (string, bool) {
	key := fromSubject.Replace(subject)
	return key, stores.CheckKey(key) == nil
}

// filter returns the subjects of keys from from to to, and maybe others.
func filter(from, to string) string {
	part, _, ok := strings.Cut(from, "/")
	if !ok || stores.CheckKey(part) != nil || to > part+"0" { // which follows the slash
		return ">"
	}
	return toSubject.Replace(part) + ".>"
}

// Read returns the cell of a key. It is linearizable: the bucket's leader answers, and
// if there are several replicas, a majority confirms by a write that the answer is the
// latest. That is two round trips, with one replica one.
func (s *Store) Read(ctx context.Context, key string) (stores.Cell, error) {
	err := stores.CheckKey(key)
	if err == nil {
		err = ctx.Err()
	}
	var cell stores.Cell
	if err == nil {
		cell, err = s.read(ctx, key)
	}
	if err != nil {
		return stores.Cell{}, s.failed(ctx, "read", key, err)
	}
	return cell, nil
}

func (s *Store) read(ctx context.Context, key string) (stores.Cell, error) {
	ctx, done := s.connected(ctx)
	defer done()
	b, err := s.find(ctx, false)
	if err != nil {
		return stores.Cell{}, because(ctx, err)
	}
	if b == nil {
		return stores.Cell{Key: key}, nil
	}
	cell, _, err := b.latest(ctx, key)
	return cell, because(ctx, err)
}

// Swap replaces the value of a cell if it has that version. A cell that is not there yet
// takes one round trip, and the first one in a namespace makes the bucket. Any other
// takes two: the first compares the version, and the second writes on the condition that
// the message's revision is that of the first. The revision alone would not do, since it
// goes back when the bucket is restored.
func (s *Store) Swap(ctx context.Context, key string, version uint64, value []byte) (uint64, error) {
	next, err := stores.NextVersion(key, version, value)
	if err == nil {
		err = ctx.Err()
	}
	if err == nil {
		err = s.swap(ctx, key, version, stores.FormatCell(next, value))
	}
	if err != nil {
		return 0, s.failed(ctx, "swap", key, err)
	}
	return next, nil
}

func (s *Store) swap(ctx context.Context, key string, version uint64, text []byte) error {
	ctx, done := s.connected(ctx)
	defer done()
	b, err := s.find(ctx, true)
	if err == nil {
		err = b.swap(ctx, key, version, text)
	}
	if isConflict(err) {
		return fmt.Errorf("%w (%w)", stores.ErrConflict, err)
	}
	return because(ctx, err)
}

func (b *bucket) swap(ctx context.Context, key string, version uint64, text []byte) error {
	if version == 0 {
		err := b.put(ctx, key, 0, text)
		if isConflict(err) {
			// A key that was deleted has a revision, that of the mark left in its place.
			if entry, err2 := b.get(ctx, key); err2 == nil && entry.deleted {
				err = b.put(ctx, key, entry.revision, text)
			}
		}
		return err
	}
	entry, err := b.get(ctx, key)
	if err != nil {
		return err
	}
	cell, err := entry.cell(key)
	revision := entry.revision
	if err == nil && cell.Version != version {
		// The leader may have been deposed and not know the latest write.
		cell, revision, err = b.latest(ctx, key)
	}
	if err != nil {
		return err
	}
	if cell.Version != version {
		return stores.ErrConflict
	}
	return b.put(ctx, key, revision, text)
}

// again reports whether ctx has time for another attempt: it has, unless it has no
// deadline.
func again(ctx context.Context) bool {
	_, ok := ctx.Deadline()
	return ok
}

// Durability looks at the bucket, if there is one, in one round trip.
func (s *Store) Durability(ctx context.Context) (stores.Durability, error) {
	found := stores.Durability{Unknown: []string{
		"sync_interval is unknown, because the server does not tell it, and its default loses up to two minutes of writes in a crash of the machine: set it to always"}}
	outer := ctx
	ctx, done := s.connected(ctx)
	defer done()
	stream, err := s.client.Stream(ctx, "KV_"+s.namespace)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return found, nil
	}
	if err != nil {
		return stores.Durability{}, s.failed(outer, "ask", "settings", because(ctx, err))
	}
	for _, problem := range unfit(stream.CachedInfo().Config) {
		found.Forgets = append(found.Forgets, "bucket "+s.namespace+": "+problem)
	}
	return found, nil
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

func isConflict(err error) bool {
	var api *jetstream.APIError
	return errors.As(err, &api) && api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence
}

// isBusy reports that the server refused a write because another one to the same key
// is not yet committed. It says nothing about the version, so to try again is right,
// and it is safe because the server has dropped the refused one.
func isBusy(err error) bool {
	var api *jetstream.APIError
	return errors.As(err, &api) && api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequenceConstant
}
