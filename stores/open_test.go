package stores_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/internal/pause"
	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/storetest"
)

// told is a store that tells what it promises.
type told struct {
	*storetest.Memory
	tell   func(ctx context.Context, asked int) (stores.Durability, error)
	asked  int
	closed bool
}

func (s *told) Traits() stores.Traits {
	return stores.Traits{Durability: func(ctx context.Context) (stores.Durability, error) {
		s.asked++
		return s.tell(ctx, s.asked)
	}}
}

func (s *told) Close() error { s.closed = true; return nil }

// register makes a store that of test: URLs.
func register(tell func(ctx context.Context, asked int) (stores.Durability, error)) *told {
	s := &told{Memory: storetest.NewMemory(), tell: tell}
	stores.Register("test", func(context.Context, string) (stores.Store, error) { return s, nil })
	return s
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
	storetest.TestURLs(t, func(ctx context.Context, url string) (stores.Store, error) { return stores.Open(ctx, url) }, "", map[string]string{
		"":                          "it is empty",
		"localhost":                 "looks like a host",
		"localhost:2379":            "looks like a host",
		"u:SECRET@h":                "looks like a host",
		"./a@b":                     "looks like a host",
		"10.0.0.5:2379":             "looks like a host",
		"10.0.0.5":                  "looks like a host",
		"h1,h2":                     "looks like a host",
		"ETCD/h":                    "looks like a host",
		"Redis":                     "looks like a host",
		"tcp(h)/db":                 "looks like a host",
		" ids":                      "begins or ends with a space",
		"ids\n":                     "begins or ends with a space",
		"ids/h1,h2":                 "looks like a host",
		"db/ops?namespace=n":        "file:PATH?namespace=NAME",
		"u:SECRET@h?namespace=n":    "looks like a host",
		"postgres:db":               "looks like a host",
		"~/ids":                     "in full",
		"host=h password=SECRET":    "a = or a $ or quotes",
		"$HOME/ids":                 "a = or a $ or quotes",
		`"/srv/ids"`:                "a = or a $ or quotes",
		"ids&forgetful=allow":       "a = or a $ or quotes",
		"://h":                      "begins with no scheme",
		"u:SECRET@x://h":            "begins with no scheme",
		"5x://h":                    "begins with no scheme",
		"mongodb://u:SECRET@h":      `unknown scheme "mongodb"; want file:PATH, or one of etcd`,
		"etcd://h":                  `does not import the engine for etcd URLs; add import _ "github.com/tickflake/tickflake/stores/etcd" and run go get github.com/tickflake/tickflake/stores/etcd`,
		"ZKS://h":                   "stores/zookeeper",
		"test://h?forgetful=SECRET": "want forgetful=allow",
		"test://h?forgetful":        "want forgetful=allow",
	})
	assert.Equal(t, "nothing", got)
	stores.Register("", nil)
	_, err := stores.Open(t.Context(), "ids")
	assert.ErrorContains(t, err, `stores/directory"`)
}

// logged returns what is logged by [slog.Default] during the test.
func logged(t *testing.T) *bytes.Buffer {
	log, before := new(bytes.Buffer), slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(log, nil)))
	t.Cleanup(func() { slog.SetDefault(before) })
	return log
}

func TestOpenOfForgetfulStores(t *testing.T) {
	log, other := new(bytes.Buffer), logged(t)
	own := stores.WithLogger(slog.New(slog.NewTextHandler(log, nil)))
	var promises stores.Durability
	s := register(func(context.Context, int) (stores.Durability, error) { return promises, nil })
	for _, tt := range []struct {
		url      string
		promises stores.Durability
		refused  string
		logged   []string
	}{
		{"test://h", stores.Durability{Forgets: []string{"appendonly is no: set it to yes"}}, "appendonly is no: set it to yes; forgetful=allow in the URL", nil},
		{"test://h?forgetful=allow", stores.Durability{Forgets: []string{"appendonly is no"}}, "", []string{"appendonly is no"}},
		{"test://h", stores.Durability{Risks: []string{"fsync is off"}, Unknown: []string{"maxmemory is unknown"}}, "", []string{"fsync is off", "maxmemory is unknown"}},
		{"test://h", stores.Durability{}, "", nil},
	} {
		log.Reset()
		promises, s.closed = tt.promises, false
		_, err := stores.Open(t.Context(), tt.url, own)
		if tt.refused != "" {
			assert.ErrorIs(t, err, stores.ErrForgets)
			assert.ErrorContains(t, err, tt.refused)
		} else {
			assert.NoError(t, err)
		}
		assert.Equal(t, tt.refused != "", s.closed)
		assert.Equal(t, min(len(tt.logged), 1), bytes.Count(log.Bytes(), []byte("\n")))
		for _, text := range tt.logged {
			assert.Contains(t, log.String(), text)
		}
	}
	assert.Empty(t, other.String())
	for _, option := range []stores.Option{nil, stores.WithLogger(nil)} {
		_, err := stores.Open(t.Context(), "test://h", option)
		_, ok := errors.AsType[*stores.OptionError](err)
		assert.True(t, ok, "%v", err)
	}
}

// Open tries again until its deadline, or once without one, and ends with its context wherever the engine hangs. Its error
// tells why the server was not reached.
func TestOpenWaitsForTheServer(t *testing.T) {
	type answer = func(ctx context.Context, asked int) (stores.Durability, error)
	away, refused, impatient := errors.New("nothing listens"), fmt.Errorf("wrong password: %w", stores.Permanent), errors.New("the test is impatient")
	fails := func(err error, times int) answer {
		return func(ctx context.Context, asked int) (stores.Durability, error) {
			if asked > times {
				<-ctx.Done()
				err = fmt.Errorf("no answer yet: %w", ctx.Err())
			}
			return stores.Durability{}, err
		}
	}
	log := logged(t)
	const ever, minute, second = 1 << 30, time.Minute, time.Second
	for name, tt := range map[string]struct {
		tell     answer
		deadline time.Duration // or none
		cancel   time.Duration // or none
		took     time.Duration
		want     []error // none: it succeeds
	}{
		"it answers soon": {func(_ context.Context, asked int) (stores.Durability, error) {
			return stores.Durability{}, map[bool]error{true: away}[asked <= 3]
		}, minute, 0, 0, nil},
		"it is away":                     {fails(away, ever), minute, 0, minute, []error{away, context.DeadlineExceeded, impatient}},
		"it is away, and then hangs":     {fails(away, 1), minute, 0, minute, []error{away, context.DeadlineExceeded, impatient}},
		"it is away, without a deadline": {fails(away, ever), 0, 0, 0, []error{away}},
		"it refuses":                     {fails(refused, ever), minute, 0, 0, []error{stores.Permanent}},
		"it hangs":                       {fails(nil, 0), minute, 0, minute, []error{context.DeadlineExceeded}},
		"it hangs, without a deadline":   {fails(nil, 0), 0, 0, 10 * second, []error{context.DeadlineExceeded}},
		"it hangs, and is given up":      {fails(nil, 0), 0, second, second, []error{context.Canceled}},
		"it fails by itself as the context ends": {func(ctx context.Context, _ int) (stores.Durability, error) {
			<-ctx.Done()
			return stores.Durability{}, away
		}, 0, second, second, []error{away, context.Canceled}},
	} {
		for _, opening := range []bool{false, true} {
			if opening && !strings.HasPrefix(name, "it hangs") {
				continue // an Opener is not called again, and its error is final
			}
			synctest.Test(t, func(t *testing.T) {
				log.Reset()
				s := register(tt.tell)
				if opening {
					stores.Register("test", func(ctx context.Context, _ string) (stores.Store, error) {
						pause.Note(ctx, away)
						_, err := tt.tell(ctx, 1)
						return s, err
					})
				}
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if tt.deadline > 0 {
					ctx, cancel = context.WithTimeoutCause(ctx, tt.deadline, impatient)
				}
				defer cancel()
				if tt.cancel > 0 {
					time.AfterFunc(tt.cancel, cancel)
				}
				begin := time.Now()
				_, err := stores.Open(ctx, "test://h")
				took := time.Since(begin)
				synctest.Wait()
				for _, want := range tt.want {
					assert.ErrorIs(t, err, want, name)
				}
				assert.Equal(t, tt.want != nil, err != nil, "%s: %v", name, err)
				assert.Equal(t, tt.want != nil && !opening, s.closed, name)
				if tt.want != nil {
					assert.Equal(t, tt.took, took, name)
					assert.Equal(t, tt.took > second, strings.Count(log.String(), "does not answer yet") == 1, "%s: %s", name, log)
				}
				assert.Equal(t, (opening || errors.Is(err, away)) && tt.took > second, strings.Contains(log.String(), away.Error()), name)
				if tt.took == minute && s.asked > 2 {
					assert.InDelta(t, 90, s.asked, 40, "a try each second at most, and each half at least")
				}
			})
		}
	}
}

func TestOpenAsksWhetherTheStoreAnswers(t *testing.T) {
	m := storetest.NewMemory()
	stores.Register("test", func(context.Context, string) (stores.Store, error) { return m, nil })
	m.Fail(storetest.Unavailable)
	_, err := stores.Open(t.Context(), "test://h")
	assert.ErrorIs(t, err, storetest.ErrFault)
}

// The engine is that of import _ "github.com/tickflake/tickflake/stores/etcd". The deadline bounds how long Open waits for
// a server. What the store may lose goes to the program's logger.
func ExampleOpen() {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	logger := slog.New(slog.NewJSONHandler(os.Stderr, nil))
	store, err := stores.Open(ctx, "etcd://10.0.0.5:2379,10.0.0.6:2379?namespace=orders", stores.WithLogger(logger))
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	cell, err := store.Read(ctx, "seq/invoices")
	fmt.Println(cell.Version, err)
}
