package engine

import (
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"

	"github.com/tickflake/tickflake/stores"
)

// URLFormat is the form of the URLs of an engine whose driver has no URLs:
//
//	SCHEME://[USER[:PASSWORD]@]HOST[:PORT][,HOST[:PORT]…][/PATH][?OPTION=VALUE&…]
type URLFormat struct {
	Plain, TLS URLScheme
	Options    []string // of the engine, besides namespace and those of TLS: cacert, cert, key
}

// URLScheme is a scheme of a [URLFormat].
type URLScheme struct {
	Name string
	Port string // for hosts without one
}

const badHost = "bad host; want HOST or HOST:PORT, or several with commas between"

// URL has the parts of a URL, from [URLFormat.Parse].
type URL struct {
	Scheme         string
	User, Password string
	Hosts          []string          // host:port each
	Path           string            // without slashes at its end
	Namespace      string            // [stores.DefaultNamespace] if the URL has none
	Options        map[string]string // without the namespace

	format *URLFormat
}

// Refuse returns a [*stores.URLError] for a URL that the engine refuses.
func (u *URL) Refuse(problem string, err error) error {
	return &stores.URLError{Scheme: u.Scheme, Problem: problem, Err: err}
}

// Parse parses a URL with one or more hosts. The error is a [*stores.URLError].
func (f *URLFormat) Parse(rawURL string) (*URL, error) {
	// url.Parse gets only parts without a password, since its errors repeat its
	// argument. It also refuses a list of hosts.
	u := &URL{Namespace: stores.DefaultNamespace, Options: make(map[string]string), format: f}
	bad := func(problem string) (*URL, error) { return nil, u.Refuse(problem, nil) }

	scheme, rest, ok := strings.Cut(rawURL, "://")
	schemes := []URLScheme{f.Plain, f.TLS}
	known := slices.IndexFunc(schemes, func(s URLScheme) bool { return ok && strings.EqualFold(s.Name, scheme) })
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
		// url.Parse accepts the host h], and no dialer does.
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
	if err := stores.CheckNamespace(u.Namespace); err != nil {
		return nil, u.Refuse("option namespace", err)
	}
	return u, nil
}

// DriverURL is the URL of an engine whose driver has URLs, too.
type DriverURL struct {
	URL       *url.URL          // for the driver, without the parameters below
	Namespace string            // [stores.DefaultNamespace] if the URL has none
	Own       map[string]string // the engine's own parameters in the URL
}

// Refuse returns a [*stores.URLError] for a URL that the engine refuses.
func (u *DriverURL) Refuse(problem string, err error) error {
	return &stores.URLError{Scheme: u.URL.Scheme, Problem: problem, Err: err}
}

// ParseDriverURL parses a URL whose scheme is one of schemes. It removes the
// parameter namespace and the engine's own, and leaves the rest unchanged for the
// driver. The error is a [*stores.URLError].
func ParseDriverURL(rawURL string, schemes []string, own ...string) (*DriverURL, error) {
	scheme, rest, ok := strings.Cut(rawURL, "://")
	scheme = strings.ToLower(scheme)
	if !ok || !slices.Contains(schemes, scheme) {
		return nil, &stores.URLError{Problem: fmt.Sprintf("want one that begins with %s://", strings.Join(schemes, ":// or "))}
	}
	fail := func(problem string, err error) (*DriverURL, error) {
		return nil, &stores.URLError{Scheme: scheme, Problem: problem, Err: err}
	}
	const encode = "percent-encode all but letters and digits in user, password and values, as %40 for @"
	// The error of url.Parse quotes the URL, and the password with it.
	parsed, err := url.Parse(rawURL)
	if err != nil {
		return fail("it is malformed; "+encode, nil)
	}
	// After a / ? or # in the password, url.Parse would take the rest of the password for
	// a path or parameter, and drivers show those.
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
		name, _ = url.QueryUnescape(name) // ParseQuery has accepted it
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
		u.Namespace = stores.DefaultNamespace
	}
	if err := stores.CheckNamespace(u.Namespace); err != nil {
		return fail("the parameter namespace cannot be used", err)
	}
	return u, nil
}
