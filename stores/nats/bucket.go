package nats

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/engine"
)

// ErrBucket is wrapped by the error for a bucket that exists but could lose cells, or
// return old ones. The bucket is not changed.
var ErrBucket = stores.Permanent.New("bucket is not fit for a store")

// bucket is the key-value bucket of a namespace.
type bucket struct {
	*texts
	stream   jetstream.Stream
	prefix   string // of its subjects
	replicas int
	server   string // that was asked last for its domain; only who holds found uses it
}

// find returns the bucket of the namespace. If there is none, it makes one if create,
// else returns nil.
func (t *texts) find(ctx context.Context, create bool) (b *bucket, err error) {
	// One request at a time: a cluster that gets several requests at once to make the same
	// stream leaves some of them without an answer, and servers that do not know the
	// new stream yet deny that it exists. Other processes may send such requests, too, so
	// the loop below tries again.
	select {
	case b = <-t.found:
		defer func() { t.found <- b }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if b != nil {
		if now := t.client.Conn().ConnectedServerId(); now != b.server {
			switch err := asked(ctx, t.atHome); {
			case err == nil:
				b.server = now
			case !errors.Is(err, jetstream.ErrStreamNotFound): // else use says so
				return nil, err
			}
		}
		return b, ctx.Err()
	}
	again := pauses()
	for {
		attempt, cancel := context.WithTimeout(ctx, time.Second)
		b, err = t.look(attempt, create)
		cancel()
		if !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, jetstream.ErrStreamNotFound) {
			return b, err
		}
		if ended := again.Wait(ctx); ended != nil {
			return nil, fmt.Errorf("%w: %w", ended, err)
		}
	}
}

// look is one attempt of find.
func (t *texts) look(ctx context.Context, create bool) (*bucket, error) {
	name := "KV_" + t.namespace
	stream, err := t.client.Stream(ctx, name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		if !create {
			return nil, nil
		}
		stream, err = t.client.CreateStream(ctx, t.config(cmp.Or(t.replicas, 3)))
		if errors.Is(err, errAlone) && t.replicas == 0 {
			stream, err = t.client.CreateStream(ctx, t.config(1))
		}
		if errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) {
			stream, err = t.client.Stream(ctx, name) // another process was faster
		}
	}
	server := t.client.Conn().ConnectedServerId()
	if err == nil {
		err = t.atHome(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("bucket %s: %w", t.namespace, err)
	}
	config := stream.CachedInfo().Config
	if problems := unfit(config); len(problems) > 0 {
		return nil, fmt.Errorf("%w: %s: %s; change it with \"nats stream edit %s\", or take another namespace", ErrBucket, t.namespace, strings.Join(problems, "; "), name)
	}
	return &bucket{texts: t, stream: stream, prefix: "$KV." + t.namespace + ".", replicas: config.Replicas, server: server}, nil
}

// atHome looks whether the bucket that the server knows is in the domain of the URL: each leaf node can have a JetStream, with a
// bucket of the same name.
func (t *texts) atHome(ctx context.Context) error {
	answer, err := t.client.Conn().RequestWithContext(ctx, t.api+"STREAM.INFO.KV_"+t.namespace, nil)
	if err != nil {
		return err
	}
	var is struct {
		Domain string
		Error  *jetstream.APIError
	}
	if err := json.Unmarshal(answer.Data, &is); err != nil {
		return err
	}
	if is.Error != nil {
		return is.Error
	}
	return t.home(is.Domain)
}

// home returns nil for the domain of the URL.
func (t *texts) home(domain string) error {
	if domain != t.domain {
		return fmt.Errorf("%w (it says %q, and the URL %q)", errDomain, domain, t.domain)
	}
	return nil
}

// publish writes a message of the stream, by way of the domain.
func (b *bucket) publish(ctx context.Context, subject string, text []byte, options ...jetstream.PublishOpt) error {
	if b.domain != "" {
		subject = b.api + subject
	}
	ack, err := b.client.Publish(ctx, subject, text, options...)
	if err == nil {
		err = b.home(ack.Domain)
	}
	return err
}

// config is the configuration that "nats kv add" gives a bucket, but without direct reads,
// which a replica that is behind could answer.
func (t *texts) config(replicas int) jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name:              "KV_" + t.namespace,
		Description:       "Cells of tickflake. Deleting it makes duplicate IDs possible.",
		Subjects:          []string{"$KV." + t.namespace + ".>"},
		Storage:           jetstream.FileStorage,
		Replicas:          replicas,
		Discard:           jetstream.DiscardNew,
		MaxMsgsPerSubject: 1,
		MaxMsgs:           -1,
		MaxBytes:          -1,
		MaxMsgSize:        -1,
		MaxConsumers:      -1,
		Duplicates:        2 * time.Minute,
		AllowRollup:       true,
		DenyDelete:        true,
	}
}

// unfit returns the settings of a bucket that break the promises of a Store.
func unfit(c jetstream.StreamConfig) []string {
	var problems []string
	check := func(bad bool, problem string) {
		if bad {
			problems = append(problems, problem)
		}
	}
	check(c.Storage != jetstream.FileStorage, "it is kept in memory, want file storage (only a new bucket can have that)")
	check(c.MaxMsgsPerSubject != 1, "its history is not 1 (--max-msgs-per-subject=1)")
	check(c.MaxAge != 0, "its values expire (--max-age=0)")
	check((c.MaxMsgs > 0 || c.MaxBytes > 0) && c.Discard != jetstream.DiscardNew, "old values make room for new ones (--discard=new)")
	check(c.AllowDirect || c.MirrorDirect, "replicas that lag behind answer reads (--no-allow-direct)")
	check(c.Retention != jetstream.LimitsPolicy, "values go when they are consumed, want retention by limits")
	check(c.PersistMode == jetstream.AsyncPersistMode, "writes are acknowledged before they are on file, want the default persistence mode")
	check(c.NoAck, "writes are not acknowledged (--ack)")
	check(c.Mirror != nil || len(c.Sources) > 0, "it is a copy of another, which lags behind")
	return problems
}

// get returns the text of a key as the bucket's leader has it.
func (b *bucket) get(ctx context.Context, key string) (engine.Text[uint64], error) {
	message, err := b.stream.GetLastMsgForSubject(ctx, b.prefix+toSubject.Replace(key))
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return engine.Text[uint64]{}, nil
	}
	if err != nil {
		return engine.Text[uint64]{}, err
	}
	return engine.Text[uint64]{
		Bytes: message.Data, Revision: message.Sequence, Latest: b.replicas < 2,
		Found: message.Header.Get("KV-Operation") == "" && message.Header.Get("Nats-Marker-Reason") == "",
	}, nil
}

// latest returns the text of a key, confirmed by a majority.
func (b *bucket) latest(ctx context.Context, key string) (engine.Text[uint64], error) {
	again := pauses()
	for {
		text, err := b.get(ctx, key)
		if err == nil {
			err = b.confirm(ctx, key, text.Revision)
		}
		if !errors.Is(err, errConflict) && !errors.Is(err, errBusy) {
			return text, err
		}
		if err := again.Wait(ctx); err != nil {
			return engine.Text[uint64]{}, fmt.Errorf("it changed again and again: %w", err)
		}
	}
}

// confirm returns nil if a cell still has a revision now. A leader that was deposed,
// or has not caught up, may have answered get; but it cannot commit a write. So confirm
// writes a subject that no key has, on the condition that the cell's revision is unchanged.
func (b *bucket) confirm(ctx context.Context, key string, revision uint64) error {
	if b.replicas < 2 {
		return nil
	}
	return b.publish(ctx, b.prefix+"CONFIRM", nil,
		jetstream.WithExpectLastSequenceForSubject(revision, b.prefix+toSubject.Replace(key)),
		jetstream.WithExpectStream(b.stream.CachedInfo().Config.Name),
		jetstream.WithRetryAttempts(0))
}

// put writes a cell if it still has the given revision. The driver sends the write again
// only if no server has accepted it (nats.ErrNoResponders), so a conflict is never with
// its own first attempt.
func (b *bucket) put(ctx context.Context, key string, revision uint64, text []byte) error {
	again := pauses()
	for {
		err := b.publish(ctx, b.prefix+toSubject.Replace(key), text, jetstream.WithExpectLastSequencePerSubject(revision))
		if !errors.Is(err, errBusy) {
			return err
		}
		if err := again.Wait(ctx); err != nil {
			return err
		}
	}
}
