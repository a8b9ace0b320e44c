package engine

import (
	"crypto/tls"
	"net/http"
	"time"
)

// Transport returns an HTTP transport on a Dialer, with at most conns connections to a server, for
// an engine whose driver speaks HTTP. It uses the proxies of the environment. It is HTTP/1.1: a request that was given
// up closes its connection, and the next takes another, while one connection of HTTP/2 would hang for all.
func Transport(dialer *Dialer, conns int, config *tls.Config) *http.Transport {
	return &http.Transport{
		DialContext: dialer.Dial, Proxy: http.ProxyFromEnvironment, TLSClientConfig: config,
		MaxConnsPerHost: conns, MaxIdleConnsPerHost: conns, IdleConnTimeout: time.Minute, TLSHandshakeTimeout: unheard,
	}
}
