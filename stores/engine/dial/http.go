package dial

import (
	"cmp"
	"fmt"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/tickflake/tickflake/stores"
)

// Transport is an HTTP transport for an engine whose driver speaks HTTP. A server that asks to wait, by the
// header Retry-After of an answer 429 or 503, is not asked before that time, of at most a minute: a
// request waits, but not past the end of its context. It is safe for use by several goroutines at once.
type Transport struct {
	http.Transport
	dialer *Dialer

	// again is when the server wants to be asked again, in nanoseconds since 1970. It never goes back.
	again atomic.Int64

	server atomic.Value // a string: the name of the server that has answered last
}

// NewTransport returns a Transport on a Dialer, with at most conns connections to a server, whose host is that of its
// URL. It uses the proxies of the environment. It is HTTP/1.1: a request that was given up closes its connection, and the
// next takes another, while one connection of HTTP/2 would hang for all. The error is that of secure.
func NewTransport(dialer *Dialer, conns int, secure Secure, host string) (*Transport, error) {
	config, err := secure.Kept(host)
	return &Transport{dialer: dialer, Transport: http.Transport{
		DialContext: dialer.Dial, Proxy: http.ProxyFromEnvironment, TLSClientConfig: config,
		MaxConnsPerHost: conns, MaxIdleConnsPerHost: conns, IdleConnTimeout: time.Minute, TLSHandshakeTimeout: unheard,
	}}, err
}

var errWait = stores.Transient.New("the server asks to wait")

// RoundTrip sends a request when the server wants to be asked.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if left := time.Until(time.Unix(0, t.again.Load())); left > 0 {
		timer := time.NewTimer(left)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-r.Context().Done():
			if r.Body != nil {
				_ = r.Body.Close() // it was not read
			}
			return nil, fmt.Errorf("%w for %v: %w", errWait, left.Round(time.Second), r.Context().Err())
		}
	}
	answer, err := t.Transport.RoundTrip(r)
	if err == nil {
		t.server.Store(answer.Header.Get("Server"))
	}
	if err == nil && (answer.StatusCode == http.StatusTooManyRequests || answer.StatusCode == http.StatusServiceUnavailable) {
		wait, _ := strconv.ParseUint(answer.Header.Get("Retry-After"), 10, 32) // 0 for a date: no server sends one
		again := time.Now().Add(min(time.Duration(wait)*time.Second, time.Minute)).UnixNano()
		for was := t.again.Load(); wait > 0 && was < again && !t.again.CompareAndSwap(was, again); was = t.again.Load() {
		}
	}
	return answer, err
}

// Server returns how the server calls itself in its last answer.
func (t *Transport) Server() string {
	name, _ := t.server.Load().(string)
	return cmp.Or(name, "a server without a name")
}

// Rest is that of the Dialer.
func (t *Transport) Rest() { t.dialer.Rest() }

// Close closes all connections, and the Dialer.
func (t *Transport) Close() error {
	t.CloseIdleConnections()
	return t.dialer.Close()
}
