// Package web serves IDs and numbers over HTTP.
package web

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"log"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/tickflake/tickflake/internal/wire"
	"github.com/tickflake/tickflake/service/internal/issuer"
	"github.com/tickflake/tickflake/service/internal/limit"
)

// peerKey is the key of the [issuer.Peer] in the context of a request.
type peerKey struct{}

// Server serves one listener. Its methods are safe for concurrent use.
type Server struct {
	issuer   *issuer.Issuer
	protocol issuer.Protocol
	metrics  http.Handler
	tls      bool

	hosts map[string]bool // names in lower case
	http  *http.Server
}

// New returns a server of a protocol: of HTTP, or of probes alone, without TLS. Metrics answers GET /metrics; without it there is no such path.
func New(i *issuer.Issuer, protocol issuer.Protocol, metrics http.Handler) *Server {
	config := i.Config()
	s := &Server{
		issuer: i, protocol: protocol, metrics: metrics, tls: config.TLS != nil && protocol != issuer.Probes,
		hosts: map[string]bool{"localhost": true},
	}
	for _, host := range config.Hosts {
		s.hosts[strings.ToLower(host)] = true
	}
	mux := http.NewServeMux()
	for _, route := range s.list() {
		mux.Handle(route.pattern, s.serve(route))
	}

	var protocols http.Protocols
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(true)
	protocols.SetUnencryptedHTTP2(true)
	s.http = &http.Server{
		Handler:           mux,
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
		ErrorLog:       log.New(errorLog{config.Logger}, "", 0),
	}
	return s
}

// errorLog gets what net/http says. Anybody can break a handshake or a connection: this must not fill a log. A panic is a bug
// of ours, after which net/http has cut the connection.
type errorLog struct{ *slog.Logger }

func (l errorLog) Write(text []byte) (int, error) {
	level := slog.LevelDebug
	if bytes.Contains(text, []byte(": panic serving ")) {
		level = slog.LevelError
	}
	l.Log(context.Background(), level, string(text))
	return len(text), nil
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

// route is a method and a path that the server answers.
type route struct {
	pattern string // of [http.ServeMux]
	need    need
	handle  handler
}

// handler answers a request in the name of a client, which is nil where the route is open and
// the request has no token. An answer that is an [http.Handler] writes itself, any other is
// written as JSON. ctx has the timeout of a request. items is the number of IDs or numbers that the client gets.
type handler func(ctx context.Context, r *http.Request, c *issuer.Client) (answer any, items int64, err error)

// need is what a client needs for a route.
type need uint8

const (
	nothing need = iota // also no token
	token               // of a client that may do more than read the metrics
	metrics             // the right to read them
)

// probes is how many routes are for probes: the first ones.
const probes = 2

// list returns the routes.
func (s *Server) list() []route {
	routes := []route{
		{"GET /livez", nothing, s.live},
		{"GET /readyz", nothing, s.ready},
		{"POST /v1/ids", token, s.takeIDs},
		{"GET /v1/ids/{id}", token, s.decode},
		{"POST /v1/sequences/{name}", token, s.takeNumbers},
		{"GET /v1/openapi.yaml", nothing, text("application/yaml", openapi)},
		{"GET /{$}", nothing, text("text/plain; charset=utf-8", index)},
	}
	if s.metrics != nil {
		routes = append(routes, route{"GET /metrics", metrics, func(context.Context, *http.Request, *issuer.Client) (any, int64, error) {
			return s.metrics, 0, nil
		}})
	}
	if s.protocol == issuer.Probes {
		routes = routes[:probes]
	}
	return append(routes, route{"/", nothing, func(context.Context, *http.Request, *issuer.Client) (any, int64, error) { return nil, 0, errPath }})
}

// gone reports whether the error is that the client has gone away.
func gone(err error) bool { return err != nil && issuer.RefusalOf(err).Code == wire.Canceled }

// serve returns a function that answers the requests of a route.
func (s *Server) serve(to route) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		began, done := time.Now(), issuer.Request{Protocol: s.protocol, Method: to.pattern, Remote: r.RemoteAddr}
		maps.Copy(w.Header(), secured)
		s.known(w, r, to.need, &done)
		var answer any
		s.issuer.Serve(r.Context(), &done, func(ctx context.Context) (items int64, err error) {
			answer, items, err = to.handle(ctx, r, done.Client)
			return items, err
		})
		switch h, ok := answer.(http.Handler); {
		case gone(done.Err):
		case done.Err != nil:
			writeError(w, done.Err)
		case ok:
			h.ServeHTTP(w, r)
		default:
			writeJSON(w, http.StatusOK, "application/json", answer)
		}
		done.Duration = time.Since(began)
		s.issuer.Done(done)
		if gone(done.Err) {
			panic(http.ErrAbortHandler) // which cuts the connection, and is logged nowhere
		}
	}
}

// known finds the client of a request, or refuses the request.
func (s *Server) known(w http.ResponseWriter, r *http.Request, need need, done *issuer.Request) {
	if done.Err = s.guard(r); done.Err != nil {
		return
	}
	done.Client, done.Err = s.issuer.Bearer(issuer.HTTP, r.Header["Authorization"], need == metrics)
	if err := s.admit(w, r, done.Client); err != nil {
		done.Err = err
	}
	if need == nothing {
		done.Err = nil
	}
}

// admit makes the connection of a client one that stays. Another connection ends with its
// request, so that it does not end during a later one. So does an old one.
func (s *Server) admit(w http.ResponseWriter, r *http.Request, client *issuer.Client) (err error) {
	peer := r.Context().Value(peerKey{}).(issuer.Peer)
	if client != nil && s.protocol != issuer.Probes {
		if err = peer.Known(client); err == nil && r.ContentLength == 0 {
			peer.Asked()
		}
	}
	if client == nil || s.protocol == issuer.Probes || err != nil || peer.Old() {
		w.Header().Set("Connection", "close")
	}
	return err
}

//go:embed static/openapi.yaml
var openapi string

// index is the answer to GET /.
const index = `This is tickflake serve. POST /v1/ids takes an ID, POST /v1/sequences/NAME a number, GET /v1/ids/ID decodes.
GET /v1/openapi.yaml describes all paths, GET /readyz and /livez are for probes, and GET /metrics for Prometheus.
`

// text returns a handler that answers with a text.
func text(kind, body string) handler {
	answer := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { write(w, http.StatusOK, kind, []byte(body)) })
	return func(context.Context, *http.Request, *issuer.Client) (any, int64, error) { return answer, 0, nil }
}
