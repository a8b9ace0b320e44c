package stores_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/storetest"
)

// told is a store that tells what it promises, after some failures.
type told struct {
	*storetest.Memory
	promises stores.Durability
	failures int
	failure  error
	closed   bool
}

var errAway = errors.New("nothing listens")

func (s *told) Durability(context.Context) (stores.Durability, error) {
	if s.failures--; s.failures >= 0 {
		return stores.Durability{}, cmp.Or(s.failure, errAway)
	}
	return s.promises, nil
}

func (s *told) Close() error { s.closed = true; return nil }

func register(s stores.Store) *string {
	got := new(string)
	stores.Register("test", func(_ context.Context, url string) (stores.Store, error) {
		*got = url
		return s, nil
	})
	return got
}

func TestOpenBySchemeOrPath(t *testing.T) {
	var got string
	for _, scheme := range []string{"", "file", "test"} {
		stores.Register(scheme, func(_ context.Context, url string) (stores.Store, error) {
			got = scheme + " " + url
			return storetest.NewMemory(), nil
		})
		t.Cleanup(func() { stores.Register(scheme, nil) })
	}
	for url, want := range map[string]string{
		"ids": " ids", "./db.example/ops": " ./db.example/ops", "../ids": " ../ids", "..": " ..", ".": " .", ".ids": " .ids", "/var/lib/i.d": " /var/lib/i.d",
		"/srv/a,b/ids": " /srv/a,b/ids", "var/lib/ids": " var/lib/ids", "var/v1.2": " var/v1.2", "/srv/ids (old)": " /srv/ids (old)", "file:ids ": "file file:ids ", "redis-state": " redis-state",
		"file:localhost:80": "file file:localhost:80", "file:$HOME/a='b'": "file file:$HOME/a='b'", "FILE:x": "file FILE:x", "file:///a b": "file file:///a b",
		"test://h": "test test://h", "TEST://h": "test TEST://h", "test://u:p://@h": "test test://u:p://@h",
		"test://h?forgetful=allow": "test test://h", "test://h?a=b&forgetful=allow&c=d": "test test://h?a=b&c=d",
		"test://h?xforgetful=allow": "test test://h?xforgetful=allow",
	} {
		s, err := stores.Open(t.Context(), url)
		require.NoError(t, err, url)
		require.NoError(t, s.Close())
		assert.Equal(t, want, got)
	}
	got = "nothing"
	for url, want := range map[string]string{
		"":                          "it is empty",
		"localhost":                 "looks like a host",
		"localhost:2379":            "looks like a host",
		"localhost/ids":             "looks like a host",
		"u:x9cret@h":                "looks like a host",
		"user@host":                 "looks like a host",
		"./a@b":                     "looks like a host",
		"10.0.0.5:2379":             "looks like a host",
		"10.0.0.5":                  "looks like a host",
		"db.example/ops":            "looks like a host",
		"db.example":                "looks like a host",
		"h1,h2":                     "looks like a host",
		"ETCD/h":                    "looks like a host",
		"LocalHost":                 "looks like a host",
		"Redis":                     "looks like a host",
		"tcp(h)/db":                 "looks like a host",
		" ids":                      "begins or ends with a space",
		"ids\n":                     "begins or ends with a space",
		"ids/h1,h2":                 "looks like a host",
		"[::1]":                     "looks like a host",
		"db/ops?namespace=n":        "looks like a host",
		"etcd":                      "looks like a host",
		"postgres:db":               "looks like a host",
		"~/ids":                     "in full",
		"host=h password=x9cret":    "a = or a $ or quotes",
		"password = 'x9cret'":       "a = or a $ or quotes",
		"$HOME/ids":                 "a = or a $ or quotes",
		`"/srv/ids"`:                "a = or a $ or quotes",
		"'/srv/ids'":                "a = or a $ or quotes",
		"ids&forgetful=allow":       "a = or a $ or quotes",
		"://h":                      "begins with no scheme",
		"u:x9cret@x://h":            "begins with no scheme",
		"5x://h":                    "begins with no scheme",
		"mongodb://u:x9cret@h":      `unknown scheme "mongodb"; want file:PATH, or one of etcd`,
		"etcd://h":                  `does not import the engine for etcd URLs; add import _ "github.com/tickflake/tickflake/stores/etcd" and run go get github.com/tickflake/tickflake/stores/etcd`,
		"ZKS://h":                   "stores/zookeeper",
		"test://h?forgetful=x9cret": "want forgetful=allow",
		"test://h?forgetful":        "want forgetful=allow",
	} {
		_, err := stores.Open(t.Context(), url)
		require.ErrorContains(t, err, want, url)
		isURLError(t, err, url)
		hides(t, err, url)
	}
	assert.Equal(t, "nothing", got)
	stores.Register("", nil)
	_, err := stores.Open(t.Context(), "ids")
	assert.ErrorContains(t, err, `stores/directory"`)
}

func TestOpenOfForgetfulStores(t *testing.T) {
	log := new(bytes.Buffer)
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(log, nil)))
	t.Cleanup(func() { slog.SetDefault(before) })

	s := &told{Memory: storetest.NewMemory(), promises: stores.Durability{Forgets: []string{"appendonly is no: set it to yes"}}}
	register(s)
	_, err := stores.Open(t.Context(), "test://h")
	assert.ErrorIs(t, err, stores.ErrForgets)
	assert.ErrorContains(t, err, "appendonly is no: set it to yes; forgetful=allow in the URL")
	assert.True(t, s.closed)
	assert.Empty(t, log.String())

	opened, err := stores.Open(t.Context(), "test://h?forgetful=allow")
	require.NoError(t, err)
	assert.Equal(t, s, opened)
	assert.Contains(t, log.String(), "appendonly is no")

	log.Reset()
	s.promises = stores.Durability{Risks: []string{"fsync is off"}, Unknown: []string{"maxmemory is unknown"}}
	_, err = stores.Open(t.Context(), "test://h")
	require.NoError(t, err)
	assert.Equal(t, 1, bytes.Count(log.Bytes(), []byte("\n")))
	assert.Contains(t, log.String(), "fsync is off")
	assert.Contains(t, log.String(), "maxmemory is unknown")

	log.Reset()
	s.promises = stores.Durability{}
	_, err = stores.Open(t.Context(), "test://h")
	require.NoError(t, err)
	assert.Empty(t, log.String())
}

func TestOpenWaitsForTheServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &told{Memory: storetest.NewMemory(), failures: 3}
		register(s)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := stores.Open(ctx, "test://h")
		require.NoError(t, err)

		s.failures = 1 << 30
		begin := time.Now()
		_, err = stores.Open(ctx, "test://h")
		assert.ErrorIs(t, err, errAway)
		assert.True(t, s.closed)
		assert.Greater(t, time.Since(begin), 50*time.Second)
		assert.InDelta(t, 90, 1<<30-s.failures, 40, "a try each second at most, and each half at least")

		begin = time.Now()
		_, err = stores.Open(t.Context(), "test://h")
		assert.ErrorIs(t, err, errAway)
		assert.Zero(t, time.Since(begin), "there is no deadline")

		s.failure = fmt.Errorf("wrong password: %w", stores.Refused)
		ctx, cancel = context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err = stores.Open(ctx, "test://h")
		assert.ErrorIs(t, err, stores.Refused)
		assert.Zero(t, time.Since(begin), "to try again is of no use")
	})
}

// cut is a server that refuses connections, and then one that does not answer.
type cut struct {
	*storetest.Memory
	asked int
}

func (s *cut) Durability(ctx context.Context) (stores.Durability, error) {
	if s.asked++; s.asked == 1 {
		return stores.Durability{}, errAway
	}
	<-ctx.Done()
	return stores.Durability{}, fmt.Errorf("no answer yet: %w", ctx.Err())
}

// The error at the end of a deadline tells why the server was not reached.
func TestOpenTellsTheReason(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		register(&cut{Memory: storetest.NewMemory()})
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, errors.New("the test is impatient"))
		defer cancel()
		_, err := stores.Open(ctx, "test://h")
		assert.ErrorIs(t, err, errAway)
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		assert.ErrorContains(t, err, "the test is impatient")

		// Without a deadline: the one attempt fails by itself as the context ends.
		ctx, cancel = context.WithCancel(t.Context())
		register(canceled{storetest.NewMemory(), cancel})
		_, err = stores.Open(ctx, "test://h")
		assert.ErrorIs(t, err, errAway)
		assert.ErrorIs(t, err, context.Canceled)
	})
}

// canceled is an engine whose server is away, and during whose answer the context ends.
type canceled struct {
	*storetest.Memory
	cancel func()
}

func (c canceled) Durability(context.Context) (stores.Durability, error) {
	c.cancel()
	return stores.Durability{}, errAway
}

// hung is an engine that answers nothing.
type hung struct{ *storetest.Memory }

func (hung) Durability(ctx context.Context) (stores.Durability, error) {
	<-ctx.Done()
	return stores.Durability{}, ctx.Err()
}

// Open returns when its context ends, or without a deadline after ten seconds, whether the
// engine hangs while it is opened or while it is asked.
func TestOpenHangs(t *testing.T) {
	for name, open := range map[string]stores.Opener{
		"opened": func(ctx context.Context, _ string) (stores.Store, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		},
		"asked": func(context.Context, string) (stores.Store, error) { return hung{storetest.NewMemory()}, nil },
	} {
		synctest.Test(t, func(t *testing.T) {
			stores.Register("test", open)
			begin := time.Now()
			_, err := stores.Open(context.Background(), "test://h")
			assert.ErrorIs(t, err, context.DeadlineExceeded, name)
			assert.Equal(t, 10*time.Second, time.Since(begin), name)

			begin = time.Now()
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			_, err = stores.Open(ctx, "test://h")
			assert.ErrorIs(t, err, context.DeadlineExceeded, name)
			assert.Equal(t, time.Minute, time.Since(begin), name)

			begin = time.Now()
			ctx, cancel = context.WithCancel(context.Background())
			time.AfterFunc(time.Second, cancel)
			_, err = stores.Open(ctx, "test://h")
			assert.ErrorIs(t, err, context.Canceled, name)
			assert.Equal(t, time.Second, time.Since(begin), name)
		})
	}
}

func TestOpenAsksWhetherTheStoreAnswers(t *testing.T) {
	m := storetest.NewMemory()
	register(m)
	m.Fail(storetest.Unavailable, 1)
	_, err := stores.Open(t.Context(), "test://h")
	assert.ErrorIs(t, err, storetest.ErrFault)
}

func isURLError(t *testing.T, err error, rawURL string) {
	t.Helper()
	_, ok := errors.AsType[*stores.URLError](err)
	require.True(t, ok, "%s: %v", rawURL, err)
}

// hides requires that neither an error nor a cause shows a part of the password,
// however it is printed.
func hides(t *testing.T, err error, rawURL string) {
	t.Helper()
	for e := err; e != nil; e = errors.Unwrap(e) {
		text := fmt.Sprintf("%v %+v %#v", e, e, e)
		assert.NotContains(t, text, "x9", rawURL)
		assert.NotContains(t, text, "cret", rawURL)
	}
}
