package enginetest

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/stores"
)

// HTTP is what the server of an engine on HTTP answers when the condition of a write fails, and when it can
// not write now.
type HTTP struct{ Conflict, Busy int }

// exchange is one request and its way to the server.
type exchange struct {
	http.ResponseWriter
	send func() *http.Response
	old  *http.Response // an earlier answer to a GET of the same text
}

func (x exchange) pass(answer *http.Response) {
	maps.Copy(x.Header(), answer.Header)
	x.WriteHeader(answer.StatusCode)
	_, _ = io.Copy(x, answer.Body)
	_ = answer.Body.Close()
}

func (x exchange) answer(status int) {
	x.WriteHeader(status)
	fmt.Fprint(x, "<Error><Code>FromTheProxy</Code></Error>")
}

func (exchange) lose() { panic(http.ErrAbortHandler) }

// testHTTP has a proxy in front of the server that does what proxies and busy servers do to one request of
// a Swap.
func (e Engine) testHTTP(t *testing.T) {
	conflict, busy := e.HTTP.Conflict, e.HTTP.Busy
	for name, test := range map[string]struct {
		method string
		serve  func(exchange)
		value  string
		want   error
	}{
		"answer_lost":        {"PUT", func(x exchange) { x.send(); x.lose() }, "after", stores.Passing},
		"request_lost":       {"PUT", func(x exchange) { x.lose() }, "before", stores.Passing},
		"sent_twice":         {"PUT", func(x exchange) { x.send(); x.pass(x.send()) }, "after", nil},
		"conflict":           {"PUT", func(x exchange) { x.answer(conflict) }, "before", stores.ErrConflict},
		"conflict_with_self": {"PUT", func(x exchange) { x.send(); x.answer(conflict) }, "after", nil},
		"busy":               {"PUT", func(x exchange) { x.answer(busy) }, "before", stores.Passing},
		"busy_with_self":     {"PUT", func(x exchange) { x.send(); x.answer(busy) }, "after", stores.Passing},
		"500":                {"PUT", func(x exchange) { x.answer(500) }, "before", stores.Passing},
		"500_late":           {"PUT", func(x exchange) { x.send(); x.answer(500) }, "after", stores.Passing},
		"503":                {"PUT", func(x exchange) { x.answer(503) }, "before", stores.Passing},
		"stands_still":       {"PUT", func(x exchange) { time.Sleep(time.Second); x.lose() }, "before", stores.Passing}, // past the end of the call
		"stale_read":         {"GET", func(x exchange) { x.pass(x.old) }, "before", stores.ErrConflict},
	} {
		t.Run(name, func(t *testing.T) {
			var armed, keeping atomic.Bool
			var old atomic.Pointer[http.Response]
			serve := func(w http.ResponseWriter, r *http.Request) {
				body, err := io.ReadAll(r.Body)
				assert.NoError(t, err)
				x := exchange{ResponseWriter: w, old: old.Load(), send: func() *http.Response { return e.send(t, r, body) }}
				switch {
				case r.Method == test.method && armed.CompareAndSwap(true, false):
					test.serve(x)
				case r.Method == http.MethodGet && keeping.CompareAndSwap(true, false):
					answer := x.send()
					text, err := io.ReadAll(answer.Body)
					assert.NoError(t, err)
					kept := *answer
					answer.Body, kept.Body = io.NopCloser(bytes.NewReader(text)), io.NopCloser(bytes.NewReader(text))
					old.Store(&kept)
					x.pass(answer)
				default:
					x.pass(x.send())
				}
			}
			proxy := httptest.NewUnstartedServer(http.HandlerFunc(serve))
			if strings.HasPrefix(e.web(), "https") {
				proxy.StartTLS()
			} else {
				proxy.Start()
			}
			t.Cleanup(proxy.Close)
			const key = "node/0000001"
			store := e.Open(t, proxy.Listener.Addr().String(), strings.ReplaceAll(name, "_", "-"))
			first := Cell(t, store, key, "first")
			keeping.Store(true)
			cell, err := store.Read(Within(t), key)
			require.NoError(t, err)
			require.Equal(t, first, cell)
			cell = Swap(t, store, cell, "before")
			if test.method == http.MethodGet && test.want == stores.ErrConflict {
				cell = first // as a process that has read the old text believes
			}
			armed.Store(true)
			ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
			_, err = store.Swap(ctx, key, cell.Version, []byte("after"))
			cancel()
			assert.ErrorIs(t, err, test.want)
			if test.want != stores.ErrConflict {
				assert.NotErrorIs(t, err, stores.ErrConflict)
			}
			assert.False(t, armed.Load(), "the request has not come")
			Until(t, func(ctx context.Context) error { // what stands still may still stand in the way
				is, err := store.Read(ctx, key)
				assert.True(t, err != nil || string(is.Value) == test.value, "the cell has the value %q", is.Value)
				return err
			})
		})
	}
}

// web is the scheme of the server and "://".
func (e Engine) web() string {
	if e.Server.Kind == "Kubernetes" {
		return "https://"
	}
	return "http://"
}

// direct sends as the proxy does.
var direct = http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}} //nolint:gosec // the certificate is the server's own

func (e Engine) send(t testing.TB, r *http.Request, body []byte) *http.Response {
	out, err := http.NewRequest(r.Method, e.web()+e.Server.Addr+r.URL.RequestURI(), bytes.NewReader(body))
	assert.NoError(t, err)
	out.Header, out.Host = r.Header.Clone(), r.Host // which a signature has
	answer, err := direct.Do(out)
	if !assert.NoError(t, err) {
		panic(http.ErrAbortHandler)
	}
	return answer
}
