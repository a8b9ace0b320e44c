package engines

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/integration/servers"
	"github.com/tickflake/tickflake/stores"
)

// HTTP is what the server of an engine on HTTP answers when the condition of a write fails, and when it can
// not write now.
type HTTP struct{ Conflict, Busy int }

// exchange is one request and its way to the server.
type exchange struct {
	http.ResponseWriter
	send func() *httptest.ResponseRecorder
	old  *httptest.ResponseRecorder // an earlier answer to a GET of the same text
	end  func()                     // ends the call
	gone <-chan struct{}            // the client has ended the request
}

func (x exchange) pass(answer *httptest.ResponseRecorder) {
	maps.Copy(x.Header(), answer.Header())
	x.WriteHeader(answer.Code)
	_, _ = x.Write(answer.Body.Bytes())
}

func (x exchange) answer(status int) {
	x.WriteHeader(status)
	fmt.Fprint(x, "<Error><Code>FromTheProxy</Code></Error>")
}

func (exchange) lose() { panic(http.ErrAbortHandler) }

// testHTTP has a proxy in front of the server that does what proxies and busy servers do to one request of
// a Swap.
func (e Engine) testHTTP(t *testing.T) {
	conflict, busy, forward := e.HTTP.Conflict, e.HTTP.Busy, Forward(e.Server)
	for name, test := range map[string]struct {
		method string
		serve  func(exchange)
		value  string
		want   error
	}{
		"answer_lost":        {"PUT", func(x exchange) { x.send(); x.lose() }, "after", stores.Transient},
		"request_lost":       {"PUT", func(x exchange) { x.lose() }, "before", stores.Transient},
		"sent_twice":         {"PUT", func(x exchange) { x.send(); x.pass(x.send()) }, "after", nil},
		"conflict":           {"PUT", func(x exchange) { x.answer(conflict) }, "before", stores.ErrConflict},
		"conflict_with_self": {"PUT", func(x exchange) { x.send(); x.answer(conflict) }, "after", nil},
		"busy":               {"PUT", func(x exchange) { x.answer(busy) }, "before", stores.Transient},
		"busy_with_self":     {"PUT", func(x exchange) { x.send(); x.answer(busy) }, "after", stores.Transient},
		"500":                {"PUT", func(x exchange) { x.answer(500) }, "before", stores.Transient},
		"500_late":           {"PUT", func(x exchange) { x.send(); x.answer(500) }, "after", stores.Transient},
		"503":                {"PUT", func(x exchange) { x.answer(503) }, "before", stores.Transient},
		"stands_still":       {"PUT", func(x exchange) { x.end(); <-x.gone; x.lose() }, "before", stores.Transient},
		"stale_read":         {"GET", func(x exchange) { x.pass(x.old) }, "before", stores.ErrConflict},
	} {
		t.Run(name, func(t *testing.T) {
			var armed, keeping atomic.Bool
			var old atomic.Pointer[httptest.ResponseRecorder]
			ctx, end := context.WithCancel(Within(t))
			defer end()
			serve := func(w http.ResponseWriter, r *http.Request) {
				body, err := io.ReadAll(r.Body)
				assert.NoError(t, err)
				x := exchange{ResponseWriter: w, old: old.Load(), end: end, gone: r.Context().Done(), send: func() *httptest.ResponseRecorder {
					sent, answer := r.Clone(context.WithoutCancel(r.Context())), httptest.NewRecorder()
					sent.Body = io.NopCloser(bytes.NewReader(body))
					forward.ServeHTTP(answer, sent)
					return answer
				}}
				switch {
				case r.Method == test.method && armed.CompareAndSwap(true, false):
					test.serve(x)
				case r.Method == http.MethodGet && keeping.CompareAndSwap(true, false):
					old.Store(x.send())
					x.pass(old.Load())
				default:
					x.pass(x.send())
				}
			}
			proxy := httptest.NewUnstartedServer(http.HandlerFunc(serve))
			if e.Server.Kind == servers.Kubernetes {
				pair, err := tls.LoadX509KeyPair(e.Server.Dir+"/server.pem", e.Server.Dir+"/server.key")
				require.NoError(t, err)
				proxy.TLS = &tls.Config{Certificates: []tls.Certificate{pair}} //nolint:gosec // a test
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
			_, err = store.Swap(ctx, key, cell.Version, []byte("after"))
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

// Forward passes requests on to a server as they are: a signature has the host that was asked.
func Forward(s *servers.Server) http.Handler {
	scheme := "http"
	if s.Kind == servers.Kubernetes {
		scheme = "https"
	}
	return &httputil.ReverseProxy{
		Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}, //nolint:gosec // the certificate is the server's own
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host, r.Out.Host = scheme, s.Addr, r.In.Host
		},
	}
}
