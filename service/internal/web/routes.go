package web

import (
	"fmt"
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	"github.com/tickflake/tickflake/service/internal/issuer"
	"github.com/tickflake/tickflake/service/internal/observe"
)

// route is a method and a path that the server answers. A path ends with at most one
// variable, as in /v1/ids/{id}.
type route struct {
	method, path string
	open         bool // needs no token
	handle       handler
}

func (r *route) String() string { return r.method + " " + r.path }

// handler answers a request in the name of a client, which is nil where the route is open
// and the request has no token. It returns the number of IDs or numbers that the client got,
// or an error, and then it has written nothing.
type handler func(w http.ResponseWriter, r *http.Request, c *issuer.Client) (items int64, err error)

// resource has the routes of one path. HEAD is answered as GET.
type resource struct {
	get, post *route
	allow     string
}

// probes is how many routes are for probes: the first ones.
const probes = 2

// route lists the routes, and makes the table of the paths.
func (s *Server) route() {
	s.routes = []route{
		{"GET", "/livez", true, s.live},
		{"GET", "/readyz", true, s.ready},
		{"POST", "/v1/ids", false, s.takeIDs},
		{"GET", "/v1/ids/{id}", false, s.decode},
		{"POST", "/v1/sequences/{name}", false, s.takeNumbers},
		{"GET", "/v1/sequences/{name}", false, s.inspect},
		{"GET", "/v1/layout", false, s.describe},
		{"GET", "/v1/status", false, s.status},
		{"GET", "/v1/openapi.yaml", true, file("openapi.yaml", "application/yaml")},
		{"GET", "/", true, file("index.html", "text/html; charset=utf-8")},
		{"GET", "/app.js", true, file("app.js", "text/javascript; charset=utf-8")},
		{"GET", "/style.css", true, file("style.css", "text/css; charset=utf-8")},
	}
	if s.limits.Metrics != nil {
		s.routes = append(s.routes, route{"GET", "/metrics", false, s.metrics})
	}
	if s.limits.Probes {
		s.routes = s.routes[:probes]
	}
	s.paths = make(map[string]*resource)
	for n := range s.routes {
		r := &s.routes[n]
		key, _, _ := strings.Cut(r.path, "{")
		if s.paths[key] == nil {
			s.paths[key] = &resource{}
		}
		if p := s.paths[key]; r.method == "POST" {
			p.post = r
		} else {
			p.get = r
		}
	}
	for _, p := range s.paths {
		var methods []string
		if p.get != nil {
			methods = append(methods, "GET", "HEAD")
		}
		if p.post != nil {
			methods = append(methods, "POST")
		}
		p.allow = strings.Join(methods, ", ")
	}
}

// find returns the route of a request, and the value of the variable in its path.
func (s *Server) find(r *http.Request) (found *route, variable string, err error) {
	path := r.URL.Path
	p := s.paths[path]
	if p == nil || p.variable() {
		slash := strings.LastIndexByte(path, '/') + 1
		path, variable = path[:slash], path[slash:]
		if p = s.paths[path]; p == nil || !p.variable() {
			return nil, "", errPath
		}
	}
	switch r.Method {
	case "GET", "HEAD":
		found = p.get
	case "POST":
		found = p.post
	}
	if found == nil {
		return nil, "", &methodError{r.Method, p.allow}
	}
	return found, variable, nil
}

// variable reports whether the path ends with a variable.
func (p *resource) variable() bool {
	r := p.get
	if r == nil {
		r = p.post
	}
	return strings.HasSuffix(r.path, "}")
}

// unknown is the method in counts and logs of a request that has no route.
const unknown = "other"

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	began := time.Now()
	done := observe.Request{Protocol: s.protocol, Method: unknown, Remote: r.RemoteAddr}
	defer func() {
		bug := recover()
		if bug != nil {
			s.log.Error("a handler panicked: please report this", "method", done.Method, "panic", fmt.Sprint(bug), "stack", string(debug.Stack()))
			done.Err = &issuer.Refusal{Code: issuer.Internal, Err: errBug}
		}
		done.Duration = time.Since(began)
		s.observer.Done(done)
		// The answer may have begun, or the client has gone away: cut the connection.
		if bug != nil || gone(done.Err) {
			panic(http.ErrAbortHandler)
		}
	}()
	secure(w.Header())
	done.Err = s.answer(w, r, &done)
	if done.Err != nil && !gone(done.Err) {
		writeError(w, done.Err)
	}
}

// gone reports whether the error is that the client has gone away.
func gone(err error) bool { return err != nil && issuer.RefusalOf(err).Code == issuer.Canceled }

// answer answers a request, unless it returns an error.
func (s *Server) answer(w http.ResponseWriter, r *http.Request, done *observe.Request) error {
	if err := s.guard(r); err != nil {
		return err
	}
	found, variable, err := s.find(r)
	if err != nil {
		return err
	}
	done.Method = found.String()
	if variable != "" {
		r.SetPathValue(name(found.path), variable)
	}
	client, err := s.client(r)
	if err := s.admit(w, r, found, client); err != nil {
		return err
	}
	if err != nil && !found.open {
		return err
	}
	if client != nil {
		done.Client = client.Name
	}
	done.Items, err = found.handle(w, r, client)
	return err
}

// admit refuses a request on a connection beyond the limit, unless it is a probe. A client makes
// its connection one that stays; another connection ends with its request, so that it does not
// end during a later one.
func (s *Server) admit(w http.ResponseWriter, r *http.Request, found *route, client *issuer.Client) error {
	peer, ok := r.Context().Value(peerKey{}).(observe.Peer)
	if !ok {
		return nil // a test without a connection
	}
	if client != nil && !peer.Beyond() && !s.limits.Probes {
		peer.Known()
		if r.ContentLength == 0 {
			peer.Asked()
		}
		return nil
	}
	w.Header().Set("Connection", "close")
	for n := range s.routes[:probes] {
		if found == &s.routes[n] {
			return nil
		}
	}
	if peer.Beyond() {
		return errFull
	}
	return nil
}

// name returns the name of the variable in a path, or an empty text.
func name(path string) string {
	_, variable, _ := strings.Cut(path, "{")
	return strings.TrimSuffix(variable, "}")
}
