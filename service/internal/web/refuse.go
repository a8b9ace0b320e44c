package web

import (
	"bytes"
	"encoding/json"
	"math"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/tickflake/tickflake/internal/wire"
	"github.com/tickflake/tickflake/service/internal/issuer"
)

// secured are the headers that every answer has. The slices are shared: nothing changes them.
var secured = http.Header{
	"Cache-Control":                {"no-store"},
	"Content-Security-Policy":      {"default-src 'none'; frame-ancestors 'none'"},
	"Cross-Origin-Resource-Policy": {"same-origin"},
	"Referrer-Policy":              {"no-referrer"},
	"X-Content-Type-Options":       {"nosniff"},
}

// guard refuses a request that a page of another site can have made a browser send: by a
// name of its own for the server's address, or to an address of the server.
func (s *Server) guard(r *http.Request) error {
	// Probes reveal nothing, and are asked by whatever name a load balancer has for the server.
	if probe := s.protocol == issuer.Probes || r.URL.Path == "/livez" || r.URL.Path == "/readyz"; !probe && !s.named(r) {
		return errHost
	}
	if crossSite.Check(r) != nil {
		return errOrigin
	}
	return nil
}

// crossSite refuses POST from pages of other sites. They cannot read what GET answers, which changes nothing.
var crossSite http.CrossOriginProtection

// named reports whether the request calls the server by an address, by localhost, or by a
// configured name. A page of another name, whose owner points it to this server's address,
// is of the same origin for the browser. No page can do so with an address: that of a
// container, a load balancer or a forwarded port need not be the server's own. The port is
// not compared, for it may be forwarded. A request without a host is no browser's.
func (s *Server) named(r *http.Request) bool {
	if r.Host == "" {
		return true
	}
	host := r.Host
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	} else {
		host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	}
	if s.hosts[strings.ToLower(host)] {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && !ip.WithZone("").Unmap().IsUnspecified() // 0.0.0.0 has several forms
}

// problem is the body of every error, as RFC 9457 describes it, with extensions.
type problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail"`
	Code   string `json:"code"` // of the refusal

	RetryAfter float64 `json:"retry_after_seconds,omitempty"`
}

// The refusals of this package.
var (
	errPath   = issuer.Refuse(wire.NotFound, "there is no such path with this method: GET /v1/openapi.yaml lists them")
	errHost   = issuer.Refuse(wire.BadHost, "the Host header is no name of this server: call it by its address, or add the name to the server's hosts (--host)")
	errOrigin = issuer.Refuse(wire.Forbidden, "a page of another site sent this request: only pages of this server may")
	errBody   = badInput("a body is not served: send none, and the parameters in the address, such as ?n=10")
)

func badInput(format string, args ...any) error {
	return issuer.Refuse(wire.BadInput, format, args...)
}

// writeError answers a request with a problem.
func writeError(w http.ResponseWriter, err error) {
	r := issuer.RefusalOf(err)
	p := problem{Type: "about:blank", Title: http.StatusText(r.Code.Words().HTTP), Status: r.Code.Words().HTTP, Detail: r.Error(), Code: r.Code.String()}
	h := w.Header()
	if p.Status == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", `Bearer realm="tickflake"`)
	}
	if r.RetryAfter > 0 {
		p.RetryAfter = r.RetryAfter.Round(time.Microsecond).Seconds()
		h.Set("Retry-After", strconv.FormatInt(int64(math.Ceil(r.RetryAfter.Seconds())), 10))
	}
	writeJSON(w, p.Status, "application/problem+json", p)
}

// writeJSON writes an answer of a bounded size.
func writeJSON(w http.ResponseWriter, status int, kind string, value any) {
	var b bytes.Buffer
	if err := json.NewEncoder(&b).Encode(value); err != nil {
		panic(err) // the types of this package have a JSON form
	}
	write(w, status, kind, b.Bytes())
}

// write writes a whole answer.
func write(w http.ResponseWriter, status int, kind string, body []byte) {
	h := w.Header()
	h.Set("Content-Type", kind)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	w.Write(body) // an error: the client has gone away
}
