package web

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
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
	if probe := s.options.Probes || r.URL.Path == "/livez" || r.URL.Path == "/readyz"; !probe && !s.known(r) {
		return errHost
	}
	if origin := r.Header["Origin"]; len(origin) > 0 {
		if u, err := url.Parse(origin[0]); err != nil || len(origin) > 1 || !strings.EqualFold(u.Host, r.Host) {
			return errOrigin
		}
	}
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "same-origin", "none":
		return nil
	}
	return errOrigin
}

// known reports whether the request calls the server by an address, by localhost, or by a
// configured name. A page of another name, whose owner points it to this server's address,
// is of the same origin for the browser. No page can do so with an address: that of a
// container, a load balancer or a forwarded port need not be the server's own. The port is
// not compared, for it may be forwarded. A request without a host is no browser's.
func (s *Server) known(r *http.Request) bool {
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
