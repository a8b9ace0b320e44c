// Package web serves IDs and numbers over HTTP.
package web

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	"github.com/tickflake/tickflake/internal/wire"
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
	if s.options.Metrics != nil {
		routes = append(routes, route{"GET /metrics", metrics, func(context.Context, *http.Request, *issuer.Client) (any, int64, error) {
			return s.options.Metrics, 0, nil
		}})
	}
	if s.options.Probes {
		routes = routes[:probes]
	}
	return routes
}

// exchange is a request with its answer. Until a route has it, answers are dropped: those of
// [http.ServeMux], in whose place the server writes a problem.
type exchange struct {
	http.ResponseWriter
	done  issuer.Request
	found bool
}

func (x *exchange) WriteHeader(status int) {
	if x.found {
		x.ResponseWriter.WriteHeader(status)
	}
}

func (x *exchange) Write(p []byte) (int, error) {
	if x.found {
		return x.ResponseWriter.Write(p)
	}
	return len(p), nil
}

// unknown is the method in counts and logs of a request that has no route.
const unknown = "other"

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	began := time.Now()
	x := &exchange{ResponseWriter: w, done: issuer.Request{Protocol: s.protocol, Method: unknown, Remote: r.RemoteAddr}}
	defer func() {
		bug := recover()
		if bug != nil {
			s.log.Error("a handler panicked: please report this", "method", x.done.Method, "panic", fmt.Sprint(bug), "stack", string(debug.Stack()))
			x.done.Err = errBug
		}
		x.done.Duration = time.Since(began)
		s.issuer.Done(x.done)
		// The answer may have begun, or the client has gone away: cut the connection.
		if bug != nil || gone(x.done.Err) {
			panic(http.ErrAbortHandler)
		}
	}()
	maps.Copy(w.Header(), secured)
	if x.done.Err = s.guard(r); x.done.Err == nil {
		if s.mux.ServeHTTP(x, r); !x.found {
			x.done.Err = notFound(w.Header(), r.Method)
		}
	}
	if x.done.Err != nil && !gone(x.done.Err) {
		writeError(w, x.done.Err)
	}
}

// gone reports whether the error is that the client has gone away.
func gone(err error) bool { return err != nil && issuer.RefusalOf(err).Code == wire.Canceled }

// serve returns a function that answers the requests of a route.
func (s *Server) serve(to route) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		x := w.(*exchange)
		x.found, x.done.Method = true, to.pattern
		x.done.Client, x.done.Err = s.issuer.Bearer(issuer.HTTP, r.Header["Authorization"], to.need == metrics)
		if err := s.admit(x, r, x.done.Client); err != nil {
			x.done.Err = err
		}
		if to.need == nothing {
			x.done.Err = nil
		}
		var answer any
		s.issuer.Serve(r.Context(), &x.done, func(ctx context.Context) (items int64, err error) {
			answer, items, err = to.handle(ctx, r, x.done.Client)
			return items, err
		})
		if x.done.Err != nil {
			return
		}
		if h, ok := answer.(http.Handler); ok {
			h.ServeHTTP(x.ResponseWriter, r)
		} else {
			writeJSON(w, http.StatusOK, "application/json", answer)
		}
	}
}

// admit makes the connection of a client one that stays. Another connection ends with its
// request, so that it does not end during a later one. So does an old one.
func (s *Server) admit(w http.ResponseWriter, r *http.Request, client *issuer.Client) (err error) {
	peer, ok := r.Context().Value(peerKey{}).(issuer.Peer)
	switch {
	case !ok: // a test without a connection
		return nil
	case client != nil && !s.options.Probes:
		if err = peer.Known(client); err == nil && r.ContentLength == 0 {
			peer.Asked()
		}
	}
	if client == nil || s.options.Probes || err != nil || peer.Old() {
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
