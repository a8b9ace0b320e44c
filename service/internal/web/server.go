// Package web serves IDs and numbers over HTTP.
package web

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/tickflake/tickflake/service/internal/issuer"
	"github.com/tickflake/tickflake/service/internal/observe"
)

// Limits bound the requests and connections of strangers, and name the other needs of the server.
type Limits struct {
	// Read is the time from the first byte of a request to its last, and the time to write
	// an answer.
	Read time.Duration
	// Idle is how long a connection may stay without a request.
	Idle time.Duration

	Probes  bool         // serve probes alone
	Hosts   []string     // names of the server beside addresses and localhost
	TLS     *tls.Config  // nil: no TLS
	Metrics http.Handler // answers GET /metrics; nil: there is no such path
	Logger  *slog.Logger // for bugs, and at level debug for broken connections; nil: slog.Default
}

const (
	maxHeader  = 16 << 10 // bytes of the request line and the headers
	maxStreams = 64       // requests at a time of one HTTP/2 connection; each holds a chunk
)

// peerKey is the key of the [observe.Peer] in the context of a request.
type peerKey struct{}

// Server serves one listener. Its methods are safe for concurrent use.
type Server struct {
	issuer   *issuer.Issuer
	observer *observe.Observer
	limits   Limits
	log      *slog.Logger
	protocol observe.Protocol

	anyone  *issuer.Client  // who asks without a token; nil: the configuration has clients
	hosts   map[string]bool // names in lower case
	routes  []route
	paths   map[string]*resource // by exact path, and by prefix that ends with a slash
	origins *http.CrossOriginProtection
	batches sync.Pool // of *batch
	began   time.Time
	http    *http.Server
}

// New returns a server.
func New(i *issuer.Issuer, o *observe.Observer, l Limits) *Server {
	s := &Server{
		issuer: i, observer: o, limits: l, log: l.Logger, protocol: observe.HTTP,
		anyone:  i.Anyone(),
		hosts:   map[string]bool{"localhost": true},
		origins: http.NewCrossOriginProtection(),
		batches: sync.Pool{New: func() any { return &batch{chunk: make([]byte, 0, chunkSize)} }},
		began:   time.Now(),
	}
	if s.log == nil {
		s.log = slog.Default()
	}
	if l.Probes {
		s.protocol = observe.Probes
	}
	for _, host := range l.Hosts {
		s.hosts[strings.ToLower(host)] = true
	}
	s.route()

	var protocols http.Protocols
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(true)
	protocols.SetUnencryptedHTTP2(true)
	s.http = &http.Server{
		Handler:           s,
		TLSConfig:         l.TLS,
		Protocols:         &protocols,
		HTTP2:             &http.HTTP2Config{MaxConcurrentStreams: maxStreams, WriteByteTimeout: l.Read},
		ReadHeaderTimeout: l.Read,
		ReadTimeout:       l.Read,
		// The time to write an answer is counted from the end of the request's headers, so it
		// includes the time for the IDs.
		WriteTimeout: i.Config().Timeout + l.Read,
		IdleTimeout:  l.Idle,
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return context.WithValue(ctx, peerKey{}, observe.PeerOf(c))
		},
		MaxHeaderBytes: maxHeader,
		// Every answer comes from the handlers, also the one to OPTIONS *.
		DisableGeneralOptionsHandler: true,
		// Anybody can break a handshake or a connection: this must not fill a log.
		ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
	return s
}

// Serve accepts connections until [Server.Shutdown], and then returns nil.
func (s *Server) Serve(l net.Listener) error {
	serve := s.http.Serve
	if s.limits.TLS != nil {
		serve = func(l net.Listener) error { return s.http.ServeTLS(l, "", "") }
	}
	if err := serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// Shutdown stops accepting, lets the requests that run end, closes all connections, and
// returns when this is done. When ctx ends it closes them at once, and returns the error of
// ctx.
func (s *Server) Shutdown(ctx context.Context) error {
	err := s.http.Shutdown(ctx)
	if err != nil {
		s.http.Close()
	}
	return err
}
