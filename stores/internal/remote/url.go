// Package remote is what the stores on servers have in common: how their URLs are
// taken apart, their errors, and what a cell may be.
//
// No error of it has a password in its text, in a field or in a cause.
//
// The stores that use it are modules of their own, which may be older than this one, so
// within a major version its API only grows.
package remote

import (
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"

	"github.com/tickflake/tickflake/lease"
)

// Format is the form of the URLs of a store whose driver takes none:
//
//	SCHEME://[USER[:PASSWORD]@]HOST[:PORT][,HOST[:PORT]…][/PATH][?OPTION=VALUE&…]
type Format struct {
	Plain, TLS Scheme
	Options    []string // the known ones, beside namespace and those of TLS
}

// Scheme is one of a Format's.
type Scheme struct {
	Name string
	Port string // of hosts that have none
}

const badHost = "bad host; want HOST or HOST:PORT, or several with commas between"

// URL is one that [Format.Parse] has taken apart.
type URL struct {
	Scheme         string
	User, Password string
	Hosts          []string // host:port each
	Path           string   // without slashes at its end
	Namespace      string   // lease.DefaultNamespace if none is given
	Options        map[string]string

	format *Format
}

// Refuse returns the [*lease.URLError] of a URL that a store does not take.
func (u *URL) Refuse(problem string, err error) error {
	return &lease.URLError{Scheme: u.Scheme, Problem: problem, Err: err}
}

// Parse takes a URL with one or more hosts apart. The error is a [*lease.URLError],
// which wraps that of the namespace.
//
// url.Parse is given only the parts that hold no password, since its errors repeat
// what it was given, and it takes no list of hosts.
func (f *Format) Parse(rawURL string) (*URL, error) {
	u := &URL{Namespace: lease.DefaultNamespace, Options: make(map[string]string), format: f}
	bad := func(problem string) (*URL, error) { return nil, u.Refuse(problem, nil) }

	scheme, rest, ok := strings.Cut(rawURL, "://")
	schemes := []Scheme{f.Plain, f.TLS}
	known := slices.IndexFunc(schemes, func(s Scheme) bool { return ok && strings.EqualFold(s.Name, scheme) })
	if known < 0 {
		return bad("unknown scheme, want " + f.Plain.Name + ":// or " + f.TLS.Name + "://")
	}
	u.Scheme = schemes[known].Name
	authority, tail := rest, ""
	if end := strings.IndexAny(rest, "/?#"); end >= 0 {
		authority, tail = rest[:end], rest[end:]
	}
	if strings.Contains(tail, "@") {
		return bad("an @ after the host; write / ? # @ in a password or an option as %2F %3F %23 %40")
	}
	if at := strings.LastIndex(authority, "@"); at >= 0 {
		user, password, _ := strings.Cut(authority[:at], ":")
		var err1, err2 error
		u.User, err1 = url.PathUnescape(user)
		u.Password, err2 = url.PathUnescape(password)
		if err1 != nil || err2 != nil {
			return bad("the user name or password is not percent-encoded; write % as %25")
		}
		authority = authority[at+1:]
	}
	for host := range strings.SplitSeq(authority, ",") {
		h, err := url.Parse("tcp://" + host)
		if err != nil || h.Host != host || h.Hostname() == "" || strings.Contains(h.Hostname(), ":") && host[0] != '[' {
			return bad(badHost)
		}
		if h.Port() == "" {
			host = net.JoinHostPort(h.Hostname(), schemes[known].Port)
		}
		// url.Parse takes h] for a host, and the dialer would not.
		if _, _, err := net.SplitHostPort(host); err != nil {
			return bad(badHost)
		}
		u.Hosts = append(u.Hosts, host)
	}
	t, err := url.Parse("tcp://host" + tail)
	if err != nil || t.Fragment != "" {
		return bad("bad path after the host")
	}
	u.Path = strings.TrimRight(t.Path, "/")
	query, err := url.ParseQuery(t.RawQuery)
	if err != nil {
		return bad("bad options after the ?")
	}
	options := slices.Concat([]string{"namespace"}, f.Options, tlsOptions)
	for name, values := range query {
		switch {
		case len(values) > 1:
			return bad("an option is given twice")
		case !slices.Contains(options, name):
			return bad("unknown option; there are " + strings.Join(options, ", "))
		case name == "namespace":
			u.Namespace = values[0]
		default:
			u.Options[name] = values[0]
		}
	}
	if err := lease.CheckNamespace(u.Namespace); err != nil {
		return nil, u.Refuse("option namespace", err)
	}
	return u, nil
}

// DriverURL is the URL of a store whose driver takes URLs, too.
type DriverURL struct {
	URL       *url.URL          // without the parameters below
	Namespace string            // lease.DefaultNamespace if none is given
	Own       map[string]string // the store's own parameters that are given
}

// Refuse returns the [*lease.URLError] of a URL that a store does not take.
func (u *DriverURL) Refuse(problem string, err error) error {
	return &lease.URLError{Scheme: u.URL.Scheme, Problem: problem, Err: err}
}

// ParseDriverURL takes a URL apart whose scheme is one of those given. It takes the
// parameter namespace and the store's own ones out, and leaves the rest as it was, for
// the driver. The error is a [*lease.URLError], which wraps that of the namespace.
func ParseDriverURL(rawURL string, schemes []string, own ...string) (*DriverURL, error) {
	scheme, rest, ok := strings.Cut(rawURL, "://")
	if !ok || !slices.Contains(schemes, scheme) {
		return nil, &lease.URLError{Problem: fmt.Sprintf("want one that begins with %s://", strings.Join(schemes, ":// or "))}
	}
	fail := func(problem string, err error) (*DriverURL, error) {
		return nil, &lease.URLError{Scheme: scheme, Problem: problem, Err: err}
	}
	const encode = "percent-encode what is neither letter nor digit in user, password and values, as %40 for @"
	// What url.Parse says quotes the URL, and the password with it.
	parsed, err := url.Parse(rawURL)
	if err != nil {
		return fail("it is malformed; "+encode, nil)
	}
	// With a / ? or # in the password, the host may be taken to end before it, and all
	// that follows to be something that can be shown.
	if end := strings.IndexAny(rest, "/?#"); end >= 0 && strings.ContainsAny(rest[end:], "@#") {
		return fail("it has a @ or # after the host; "+encode, nil)
	}
	if _, err := url.ParseQuery(parsed.RawQuery); err != nil {
		return fail("its parameters are malformed; "+encode, nil)
	}

	u := &DriverURL{URL: parsed, Own: make(map[string]string)}
	own = append(own, "namespace")
	var others []string
	for param := range strings.SplitSeq(parsed.RawQuery, "&") {
		name, value, _ := strings.Cut(param, "=")
		name, _ = url.QueryUnescape(name) // ParseQuery had no objection
		value, _ = url.QueryUnescape(value)
		_, twice := u.Own[name]
		switch {
		case param == "":
		case twice:
			return fail("it has the parameter "+name+" twice", nil)
		case slices.Contains(own, name):
			u.Own[name] = value
		default:
			others = append(others, param)
		}
	}
	parsed.RawQuery = strings.Join(others, "&")
	if u.Namespace, ok = u.Own["namespace"]; !ok {
		u.Namespace = lease.DefaultNamespace
	}
	if err := lease.CheckNamespace(u.Namespace); err != nil {
		return fail("the parameter namespace cannot be used", err)
	}
	return u, nil
}
