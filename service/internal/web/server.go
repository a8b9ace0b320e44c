// Package web serves IDs and numbers over HTTP.
package web

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"strings"

	"github.com/tickflake/tickflake/service/internal/issuer"
	"github.com/tickflake/tickflake/service/internal/limit"
)

// Options are what a server has beside the configuration of its issuer.
type Options struct {
	Probes  bool         // serve probes alone, without TLS
	Metrics http.Handler // answers GET /metrics; nil: there is no such path
}

// peerKey is the key of the [issuer.Peer] in the context of a request.
type peerKey struct{}

// Server serves one listener. Its methods are safe for concurrent use.
type Server struct {
	issuer   *issuer.Issuer
	options  Options
	log      *slog.Logger // for bugs, and at level debug for broken connections
	protocol issuer.Protocol
	tls      bool

	hosts map[string]bool // names in lower case
	mux   *http.ServeMux
	http  *http.Server
}

// New returns a server.
func New(i *issuer.Issuer, options Options) *Server {
	config := i.Config()
	s := &Server{
		issuer: i, options: options, log: config.Logger, protocol: issuer.HTTP, tls: config.TLS != nil,
		hosts: map[string]bool{"localhost": true},
		mux:   http.NewServeMux(),
	}
	if options.Probes {
		s.protocol, s.tls = issuer.Probes, false
	}
	for _, host := range config.Hosts {
		s.hosts[strings.ToLower(host)] = true
	}
	for _, route := range s.list() {
		s.mux.Handle(route.pattern, s.serve(route))
	}

	var protocols http.Protocols
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(true)
	protocols.SetUnencryptedHTTP2(true)
	s.http = &http.Server{
		Handler:           s,
		TLSConfig:         config.TLS.Clone(), // net/http changes it, and two addresses have one
		Protocols:         &protocols,
		HTTP2:             &http.HTTP2Config{MaxConcurrentStreams: limit.HTTPStreams, WriteByteTimeout: config.ReadTimeout},
		ReadHeaderTimeout: config.ReadTimeout,
		ReadTimeout:       config.ReadTimeout,
		// The time to write an answer is counted from the end of the request's headers, so it
		// includes the time for the IDs.
		WriteTimeout: config.Timeout + config.ReadTimeout,
		IdleTimeout:  config.IdleTimeout,
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return context.WithValue(ctx, peerKey{}, issuer.PeerOf(c))
		},
		MaxHeaderBytes: limit.Headers,
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
	if s.tls {
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
