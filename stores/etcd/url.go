package etcd

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/tickflake/tickflake/lease"
)

// URLError reports a URL that [Open] cannot use. It never shows the URL, because a
// mistyped one may hold a password anywhere.
type URLError struct {
	Problem string // what is wrong, and what is wanted
	Err     error  // the cause, such as a certificate file that cannot be read; may be nil
}

func (e *URLError) Error() string {
	text := "etcd: store URL: " + e.Problem
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

// Unwrap returns the cause, or nil.
func (e *URLError) Unwrap() error { return e.Err }

func badURL(format string, args ...any) error {
	return &URLError{Problem: fmt.Sprintf(format, args...)}
}

// target is a parsed store URL.
type target struct {
	scheme         string
	user, password string
	hosts          []string // host:port each
	path           string   // without slashes at its end
	namespace      string
	options        map[string]string
}

// parseURL takes a URL with one or more hosts apart. url.Parse is given only the
// parts that hold no password, since its errors repeat what it was given, and it
// takes no list of hosts.
func parseURL(rawURL, port string, schemes []string, options ...string) (target, error) {
	t := target{namespace: lease.DefaultNamespace, options: make(map[string]string)}
	scheme, rest, ok := strings.Cut(rawURL, "://")
	if t.scheme = strings.ToLower(scheme); !ok || !slices.Contains(schemes, t.scheme) {
		return t, badURL("unknown scheme, want %s://", strings.Join(schemes, ":// or "))
	}
	authority, tail := rest, ""
	if end := strings.IndexAny(rest, "/?#"); end >= 0 {
		authority, tail = rest[:end], rest[end:]
	}
	if strings.Contains(tail, "@") {
		return t, badURL("an @ after the host; write / ? # @ in a password or an option as %%2F %%3F %%23 %%40")
	}
	if at := strings.LastIndex(authority, "@"); at >= 0 {
		user, password, _ := strings.Cut(authority[:at], ":")
		var err1, err2 error
		t.user, err1 = url.PathUnescape(user)
		t.password, err2 = url.PathUnescape(password)
		if err1 != nil || err2 != nil {
			return t, badURL("the user name or password is not percent-encoded; write %% as %%25")
		}
		authority = authority[at+1:]
	}
	for host := range strings.SplitSeq(authority, ",") {
		u, err := url.Parse("tcp://" + host)
		if err != nil || u.Host != host || u.Hostname() == "" || strings.Contains(u.Hostname(), ":") && host[0] != '[' {
			return t, badURL("bad host; want HOST or HOST:PORT, or several with commas between")
		}
		if u.Port() == "" {
			host = net.JoinHostPort(u.Hostname(), port)
		}
		t.hosts = append(t.hosts, host)
	}
	u, err := url.Parse("tcp://host" + tail)
	if err != nil || u.Fragment != "" {
		return t, badURL("bad path after the host")
	}
	t.path = strings.TrimRight(u.Path, "/")
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return t, badURL("bad options after the ?")
	}
	for name, values := range query {
		switch {
		case len(values) > 1:
			return t, badURL("an option is given twice")
		case name == "namespace":
			t.namespace = values[0]
		case slices.Contains(options, name):
			t.options[name] = values[0]
		default:
			return t, badURL("unknown option; there are namespace, %s", strings.Join(options, ", "))
		}
	}
	return t, lease.CheckNamespace(t.namespace)
}

// tlsOptions are those that tlsConfig reads.
var tlsOptions = []string{"cacert", "cert", "key"}

// tlsConfig returns the TLS configuration that the URL asks for: the system's
// certificate authorities or those in the file cacert, and the client's certificate
// in the files cert and key, if there is one.
func (t target) tlsConfig() (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if file := t.options["cacert"]; file != "" {
		pem, err := os.ReadFile(file)
		if err != nil {
			return nil, &URLError{Problem: "option cacert", Err: err}
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, badURL("option cacert: no certificate in %s", file)
		}
	}
	cert, key := t.options["cert"], t.options["key"]
	if cert != "" || key != "" {
		pair, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			return nil, &URLError{Problem: "options cert and key", Err: err}
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}

// plain returns an error if the URL has an option that only TLS uses, which would
// else be left out without a word.
func (t target) plain(schemeWithTLS string) error {
	for _, name := range tlsOptions {
		if t.options[name] != "" {
			return badURL("option %s needs the scheme %s://", name, schemeWithTLS)
		}
	}
	return nil
}
