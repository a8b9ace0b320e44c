package s3

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
	"golang.org/x/sync/errgroup"

	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/engine"
)

// Store is a [stores.Store] on a bucket, opened by a URL. It is safe for use by several goroutines at once.
type Store struct {
	engine.Skeleton[string]
	bucket *bucket
}

var (
	_ stores.DurabilityChecker = (*Store)(nil)
	_ stores.Prober            = (*Store)(nil)
	_ stores.Windower          = (*Store)(nil)
)

// Window is 5 minutes: each write costs money.
func (*Store) Window() time.Duration { return 5 * time.Minute }

// bucket keeps texts as objects of a bucket, for the skeleton of package engine. The
// revision of a text is its ETag.
type bucket struct {
	client *minio.Client
	name   string
	prefix string // of the objects of one namespace, with a slash at its end
	login  func() error
	server func() string // that has answered last, by its own words
}

const (
	// conns bounds the connections that are used, and most also counts those that the server
	// has not closed yet. reading bounds the requests of one List at once.
	conns   = 16
	most    = 2 * conns
	reading = 8
	page    = 1000 // names of one request: no server gives more

	// end is the end of each object's name: servers on a file system cannot have the objects a and
	// a/b, and the objects a! and a/b! stand in the order of the keys a and a/b.
	end = "!"

	maxText = stores.MaxValue + 64 // more than a version and a space take
)

// Get reads one object, in one request.
func (b *bucket) Get(ctx context.Context, key string, _ bool) (engine.Text[string], error) {
	return b.get(ctx, b.prefix+key+end)
}

func (b *bucket) get(ctx context.Context, object string) (engine.Text[string], error) {
	none := engine.Text[string]{Latest: true}
	if err := b.ready(ctx); err != nil {
		return none, err
	}
	body, info, _, err := minio.Core{Client: b.client}.GetObject(ctx, b.name, object, minio.GetObjectOptions{})
	if minio.ToErrorResponse(err).Code == minio.NoSuchKey {
		return none, nil
	}
	if err != nil {
		return none, err
	}
	defer body.Close() //nolint:errcheck // it was only read
	text, err := io.ReadAll(io.LimitReader(body, maxText))
	return engine.Text[string]{Bytes: text, Found: true, Revision: info.ETag, Latest: true}, err
}

// Put writes one object, on the condition that it has the ETag, or, if that is "", that there
// is none. It is sent once.
func (b *bucket) Put(ctx context.Context, key, etag string, text []byte) error {
	return b.put(ctx, b.prefix+key+end, etag, text)
}

func (b *bucket) put(ctx context.Context, object, etag string, text []byte) error {
	if err := b.ready(ctx); err != nil {
		return err
	}
	options := minio.PutObjectOptions{ContentType: "text/plain; charset=utf-8", DisableMultipart: true}
	if etag == "" {
		options.SetMatchETagExcept("*")
	} else {
		options.SetMatchETag(etag)
	}
	_, err := minio.Core{Client: b.client}.PutObject(ctx, b.name, object, bytes.NewReader(text), int64(len(text)), "", "", options)
	switch answer := minio.ToErrorResponse(err); {
	case err == nil:
		return nil
	case answer.StatusCode == http.StatusConflict:
		return errBusy
	case answer.StatusCode == http.StatusPreconditionFailed, answer.Code == minio.NoSuchKey: // the object that is to have the ETag is gone
		return stores.ErrConflict
	}
	return err
}

// Scan gives the objects with keys in [from, to) to found, in the order of their keys, while it returns
// true: one request for each thousand names, and one for each text, eight at once.
func (b *bucket) Scan(ctx context.Context, from, to string, limit int, found func(key string, text []byte) bool) error {
	if err := b.ready(ctx); err != nil {
		return err
	}
	for more := true; more; {
		keys, last, err := b.keys(ctx, from, to, min(limit, page))
		if err != nil {
			return err
		}
		texts := make([]engine.Text[string], len(keys))
		group, ctx := errgroup.WithContext(ctx)
		group.SetLimit(reading)
		for i, key := range keys {
			group.Go(func() (err error) {
				texts[i], err = b.Get(ctx, key, true)
				return err
			})
		}
		if err := group.Wait(); err != nil {
			return err
		}
		more = !last
		for i, key := range keys {
			if texts[i].Found && !found(key, texts[i].Bytes) { // else it is gone since
				return nil
			}
			from = key + "\x00"
		}
	}
	return nil
}

// keys lists the keys in [from, to), at most limit of them, and says whether they are the last. It leaves
// out other programs' objects.
func (b *bucket) keys(ctx context.Context, from, to string, limit int) (keys []string, last bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	// S3 lists the names after a name. No key has a character as low as that of end.
	after, ok := strings.CutSuffix(from, "\x00")
	if ok {
		after += end
	}
	before := ""
	for object := range b.client.ListObjectsIter(ctx, b.name, minio.ListObjectsOptions{
		Prefix: b.prefix, StartAfter: b.prefix + after, Recursive: true, MaxKeys: limit,
	}) {
		if object.Err != nil {
			return nil, false, object.Err
		}
		if object.Key <= before {
			return nil, false, errOrder
		}
		before = object.Key
		key, ok := strings.CutSuffix(strings.TrimPrefix(object.Key, b.prefix), end)
		if key >= to {
			break
		}
		if ok && key >= from && stores.CheckKey(key) == nil {
			keys = append(keys, key)
		}
		if len(keys) == limit {
			return keys, false, ctx.Err()
		}
	}
	return keys, true, ctx.Err()
}

// ready fetches the credentials, if there are none or they have expired. Fetching them knows no
// context.
func (b *bucket) ready(ctx context.Context) error {
	_, err := engine.Wait(ctx, func() (struct{}, error) { return struct{}{}, b.login() })
	return err
}
