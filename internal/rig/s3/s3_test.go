// Package s3 has the tests of stores/s3 on real servers.
package s3

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/internal/rig/enginetest"
	"github.com/tickflake/tickflake/internal/rig/servers"
	"github.com/tickflake/tickflake/internal/rig/servers/s3"
	"github.com/tickflake/tickflake/stores"
	_ "github.com/tickflake/tickflake/stores/s3"
)

func TestMain(m *testing.M) {
	os.Setenv("AWS_ACCESS_KEY_ID", s3.User)
	os.Setenv("AWS_SECRET_ACCESS_KEY", s3.Secret)
	enginetest.Main(m)
}

func TestEngine(t *testing.T) {
	s := servers.For(t, servers.S3)
	e := enginetest.Engine{
		Name: "s3 at " + s.Addr, Server: s,
		New: func(t testing.TB, addr, namespace string) stores.Store {
			return enginetest.Open(t, at(addr, namespace, "http"))
		},
		Damage: func(t testing.TB, namespace, key, text string) {
			client, err := minio.New(s.Addr, &minio.Options{Creds: credentials.NewStaticV4(s3.User, s3.Secret, "")})
			require.NoError(t, err)
			_, err = client.PutObject(enginetest.Within(t), s3.Bucket, namespace+"/"+key+"!", strings.NewReader(text), int64(len(text)), minio.PutObjectOptions{})
			require.NoError(t, err)
		},
		TLS:     func(url string) string { return strings.Replace(url, "http:", "https:", 1) },
		Plateau: enginetest.Plateau{AtRest: 8, AtMost: 20},
	}
	e.Test(t)
}

func at(addr, namespace, scheme string) string {
	return "s3://" + s3.Bucket + "?endpoint=" + scheme + "://" + addr + "&namespace=" + namespace
}

// TestProxy has a proxy in front of the server that does what proxies and busy servers do to one PUT.
func TestProxy(t *testing.T) {
	t.Parallel()
	s := servers.For(t, servers.S3)
	through := func(t *testing.T, serve func(w http.ResponseWriter, send func() *http.Response)) stores.Store {
		var armed atomic.Bool
		proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			assert.NoError(t, err)
			send := func() *http.Response {
				out := r.Clone(context.Background())
				out.RequestURI, out.URL.Scheme, out.URL.Host, out.Body = "", "http", s.Addr, io.NopCloser(bytes.NewReader(body))
				answer, err := http.DefaultTransport.RoundTrip(out)
				if !assert.NoError(t, err) {
					panic(http.ErrAbortHandler)
				}
				return answer
			}
			if r.Method == http.MethodPut && strings.HasSuffix(r.URL.Path, "!") && armed.CompareAndSwap(true, false) {
				serve(w, send)
				return
			}
			pass(w, send())
		}))
		t.Cleanup(proxy.Close)
		store := enginetest.Open(t, at(proxy.Listener.Addr().String(), strings.ReplaceAll(path.Base(t.Name()), ",", ""), "http"))
		enginetest.Cell(t, store, key, "before")
		armed.Store(true)
		return store
	}
	answer := func(status int, code string) func(http.ResponseWriter, func() *http.Response) {
		return func(w http.ResponseWriter, _ func() *http.Response) {
			w.WriteHeader(status)
			fmt.Fprintf(w, "<Error><Code>%s</Code></Error>", code)
		}
	}
	lose := func(http.ResponseWriter, func() *http.Response) { panic(http.ErrAbortHandler) }
	for name, test := range map[string]struct {
		serve  func(http.ResponseWriter, func() *http.Response)
		value  string
		failed bool
	}{
		"answer_lost":  {func(w http.ResponseWriter, send func() *http.Response) { send(); lose(w, send) }, "after", true},
		"request_lost": {lose, "before", true},
		"sent_twice":   {func(w http.ResponseWriter, send func() *http.Response) { send(); pass(w, send()) }, "after", false},
		"409":          {answer(409, "ConditionalRequestConflict"), "before", true},
		"412_of_others": {func(w http.ResponseWriter, send func() *http.Response) {
			send()
			answer(412, "PreconditionFailed")(w, send)
		}, "after", false},
		"500":      {answer(500, "InternalError"), "before", true},
		"500_late": {func(w http.ResponseWriter, send func() *http.Response) { send(); answer(500, "InternalError")(w, send) }, "after", true},
		"503":      {answer(503, "SlowDown"), "before", true},
		"stands_still": {func(w http.ResponseWriter, send func() *http.Response) {
			time.Sleep(time.Second) // past the end of the call
			lose(w, send)
		}, "before", true},
	} {
		t.Run(name, func(t *testing.T) {
			store := through(t, test.serve)
			cell, err := store.Read(enginetest.Within(t), key)
			require.NoError(t, err)
			ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
			_, err = store.Swap(ctx, key, cell.Version, []byte("after"))
			cancel()
			assert.Equal(t, test.failed, err != nil, err)
			assert.NotErrorIs(t, err, stores.ErrConflict)
			if err != nil {
				assert.Equal(t, stores.Passing, stores.KindOf(err), err)
			}
			cell, err = store.Read(enginetest.Within(t), key)
			require.NoError(t, err)
			assert.Equal(t, test.value, string(cell.Value))
		})
	}
}

const key = "node/0000001"

func pass(w http.ResponseWriter, answer *http.Response) {
	maps.Copy(w.Header(), answer.Header)
	w.WriteHeader(answer.StatusCode)
	_, _ = io.Copy(w, answer.Body)
	_ = answer.Body.Close()
}

func TestOutage(t *testing.T) {
	t.Parallel()
	enginetest.TestOutage(t, servers.For(t, servers.S3))
}

func TestMove(t *testing.T) {
	t.Parallel()
	s, path := servers.For(t, servers.S3), t.TempDir()
	enginetest.Move{
		From: func() stores.Store { return enginetest.Open(t, path) },
		To:   func() stores.Store { return enginetest.Open(t, s.At(s.Addr, "namespace=moved")) },
	}.Run(t)
}
