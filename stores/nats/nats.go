package nats

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

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

func (t *texts) Scan(ctx context.Context, from, to string, _ int, found func(string, []byte)) (more bool, err error) {
	return false, t.use(ctx, false, func(ctx context.Context, b *bucket) error {
		// A watcher may miss an entry that is written meanwhile.
		info, err := b.stream.Info(ctx, jetstream.WithSubjectFilter(b.prefix+filter(from, to)))
		if err != nil {
			return err
		}
		for subject := range info.State.Subjects {
			found(fromSubject.Replace(strings.TrimPrefix(subject, b.prefix)), nil)
		}
		return nil
	})
}

// use calls do with the bucket of the namespace, which it makes if create. Else, if there is none, it returns nil: there are no
// cells. A bucket that was used before and is gone is an error: a new one would give the same node numbers again.
func (t *texts) use(ctx context.Context, create bool, do func(context.Context, *bucket) error) error {
	ctx, done := t.connected(ctx)
	defer done()
	b, err := t.find(ctx, create)
	if err == nil && b != nil {
		err = do(ctx, b)
	}
	if b != nil && errors.Is(err, jetstream.ErrStreamNotFound) {
		err = fmt.Errorf("%w: %w", errGone, err)
	}
	return t.because(ctx, err)
}

// In a subject, dots stand for the slashes of a key, so that a List can ask for the cells
// of a first part. Equals signs stand for its dots, since a subject cannot have two dots in
// a row.
var (
	toSubject   = strings.NewReplacer("/", ".", ".", "=")
	fromSubject = strings.NewReplacer(".", "/", "=", ".")
)

// filter returns a pattern of the subjects of all keys in [from, to), and perhaps of others.
func filter(from, to string) string {
	part, _, ok := strings.Cut(from, "/")
	if !ok || stores.CheckKey(part) != nil || to > part+"0" { // 0 follows the slash in ASCII
		return ">"
	}
	return toSubject.Replace(part) + ".>"
}

// ask looks at the bucket, if there is one.
func (t *texts) ask(ctx context.Context) (stores.Durability, error) {
	ctx, done := t.connected(ctx)
	defer done()
	found := stores.Durability{Unknown: []string{
		"sync_interval is unknown, because the server does not tell it, and its default loses up to two minutes of writes in a crash of the machine: set it to always"}}
	stream, err := t.client.Stream(ctx, "KV_"+t.namespace)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return found, nil
	}
	if err == nil {
		err = t.atHome(ctx)
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
