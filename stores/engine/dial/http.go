package dial

import (
	"context"
	"net"
	"net/http"
	"time"
)

// Transport is an HTTP transport for an engine whose driver speaks HTTP. It is safe for use by several goroutines at once.
type Transport struct {
	http.Transport
	dialer Dialer
}

// NewTransport returns a Transport with at most conns connections to a server that are used, and at most most with those that
// the server has not closed yet. Each handshake has the configuration of secure then; behind a proxy, of which it takes those of the
// environment, that of now. It is HTTP/1.1: a request that was given up closes its connection, and the next takes another,
// while one connection of HTTP/2 would hang for all. The error is that of secure.
func NewTransport(most, conns int, secure Secure) (*Transport, error) {
	config, err := secure()
	t := &Transport{dialer: Dialer{Most: most}, Transport: http.Transport{
		Proxy: http.ProxyFromEnvironment, TLSClientConfig: config,
		MaxConnsPerHost: conns, MaxIdleConnsPerHost: conns, IdleConnTimeout: time.Minute, TLSHandshakeTimeout: unheard,
	}}
	t.DialContext = t.dialer.Dial
	t.DialTLSContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		return t.dialer.connect(ctx, network, address, secure)
	}
	return t, err
}

// Rest is that of the Dialer.
func (t *Transport) Rest() { t.dialer.Rest() }

// Close closes all connections, and the Dialer.
func (t *Transport) Close() error {
	t.CloseIdleConnections()
	return t.dialer.Close()
}
