package nats

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/tickflake/tickflake/stores"
)

// Store is a [stores.Store] on a JetStream key-value bucket. A method whose connection
// is lost returns at once, with an error that says so. Each method returns soon after its
// context ends. A Store is safe for use by several goroutines at once.
type Store struct {
	client    jetstream.JetStream
	namespace string
	replicas  int            // of a bucket that is made; 0: choose
	servers   []string       // for messages
	dialer    *stores.Dialer // unused by a client given to New
	close     func() error
	finding   chan struct{} // holds one while a goroutine looks for the bucket

	mu     sync.Mutex
	bucket *bucket // nil until it has been found
}

var _ stores.DurabilityChecker = (*Store)(nil)

// New returns a Store that uses the caller's client. The caller closes its connection
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
	conn := client.Conn()
	return &Store{
		client: client, namespace: namespace,
		servers: append(slices.Clone(conn.Opts.Servers), conn.Opts.Url),
		dialer:  new(stores.Dialer),
		close:   func() error { return nil },
		finding: make(chan struct{}, 1),
	}, nil
}

// Close ends the connection of a Store that was opened by a URL, and returns after at most
// a second. It does nothing to a client given to [New], and returns nil.
func (s *Store) Close() error { return s.close() }

// List returns the cells with keys in [from, to), at most limit of them. If all keys of
// the range have the same first part, it reads all cells with that part, else all cells. In a
// cluster it may be out of date. A text that is no cell is a [*stores.DamagedError].
func (s *Store) List(ctx context.Context, from, to string, limit int) ([]stores.Cell, error) {
	if limit < 1 || from >= to {
		return nil, nil
	}
	cells, err := within(ctx, func() ([]stores.Cell, error) { return s.list(ctx, from, to, limit) })
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
		return nil, s.because(ctx, err)
	}
	watcher, err := b.kv.Watch(ctx, filter(from, to), jetstream.IgnoreDeletes())
	if err != nil {
		return nil, s.because(ctx, err)
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
				break // all entries that existed at the beginning were read
			}
			if key, ok := keyOf(entry.Key()); ok && from <= key && key < to {
				texts[key] = entry.Value()
			}
		case <-ctx.Done():
			return nil, s.because(ctx, ctx.Err())
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
// of a first part. Equals signs stand for its dots, since a subject cannot have two dots in
// a row.
var (
	toSubject   = strings.NewReplacer("/", ".", ".", "=")
	fromSubject = strings.NewReplacer(".", "/", "=", ".")
)

// keyOf returns the key of a subject.
func keyOf(subject string) (string, bool) {
	key := fromSubject.Replace(subject)
	return key, stores.CheckKey(key) == nil
}

// filter returns a pattern of the subjects of all keys in [from, to), and perhaps of others.
func filter(from, to string) string {
	part, _, ok := strings.Cut(from, "/")
	if !ok || stores.CheckKey(part) != nil || to > part+"0" { // 0 follows the slash in ASCII
		return ">"
	}
	return toSubject.Replace(part) + ".>"
}

// Read returns the cell of a key. It is linearizable: the bucket's leader answers, and
// if there are several replicas, a majority confirms by a write that the answer is the
// latest. That is two round trips, or one with one replica. If the bucket was deleted, there
// is no cell; it takes up to a second to be sure of that.
func (s *Store) Read(ctx context.Context, key string) (stores.Cell, error) {
	err := stores.CheckKey(key)
	if err == nil {
		err = ctx.Err()
	}
	var cell stores.Cell
	if err == nil {
		cell, err = within(ctx, func() (stores.Cell, error) { return s.read(ctx, key) })
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
		return stores.Cell{}, s.because(ctx, err)
	}
	if b == nil {
		return stores.Cell{Key: key}, nil
	}
	cell, _, err := b.latest(ctx, key)
	if errors.Is(err, jetstream.ErrStreamNotFound) && s.gone(ctx, b) {
		return stores.Cell{Key: key}, nil
	}
	return cell, s.because(ctx, err)
}

// Swap replaces the value of a cell if it has that version. A new cell
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
		text := stores.FormatCell(next, value)
		_, err = within(ctx, func() (struct{}, error) { return struct{}{}, s.swap(ctx, key, version, text) })
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
	return s.because(ctx, err)
}

func (b *bucket) swap(ctx context.Context, key string, version uint64, text []byte) error {
	if version == 0 {
		err := b.put(ctx, key, 0, text)
		if isConflict(err) {
			// A deleted key has a revision: that of the marker in its place.
			if entry, err2 := b.get(ctx, key); err2 == nil && entry.deleted {
				err = b.put(ctx, key, entry.revision, text)
			} else if err2 == nil {
				if _, damaged := entry.cell(key); damaged != nil {
					err = damaged
				}
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
		// A deposed leader may not know the latest write.
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

// Durability looks at the bucket, if there is one, in one round trip.
func (s *Store) Durability(ctx context.Context) (stores.Durability, error) {
	found := stores.Durability{Unknown: []string{
		"sync_interval is unknown, because the server does not tell it, and its default loses up to two minutes of writes in a crash of the machine: set it to always"}}
	stream, err := within(ctx, func() (jetstream.Stream, error) {
		ctx, done := s.connected(ctx)
		defer done()
		stream, err := s.client.Stream(ctx, "KV_"+s.namespace)
		return stream, s.because(ctx, err)
	})
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return found, nil
	}
	if err != nil {
		return stores.Durability{}, s.failed(ctx, "ask", "settings", err)
	}
	for _, problem := range unfit(stream.CachedInfo().Config) {
		found.Forgets = append(found.Forgets, "bucket "+s.namespace+": "+problem)
	}
	return found, nil
}

// pauses are those between the tries of a request that the server cannot serve yet.
func pauses() stores.Backoff {
	return stores.Backoff{First: time.Millisecond, Last: 50 * time.Millisecond}
}

func isConflict(err error) bool {
	var api *jetstream.APIError
	return errors.As(err, &api) && api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence
}

// isBusy reports that the server refused a write because another one to the same key
// is not yet committed. It says nothing about the version, so a retry is right,
// and it is safe because the server has dropped the refused write.
func isBusy(err error) bool {
	var api *jetstream.APIError
	return errors.As(err, &api) && api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequenceConstant
}
