package engine

import (
	"net"
	"net/url"
	"slices"
	"strings"

	"github.com/tickflake/tickflake/stores"
)

// parts are those of a URL that are the same for all engines.
type parts struct {
	scheme          string // in lower case
	authority, tail string // as they are in the URL; tail has the path and the options
	path            string // as it is in the URL
	namespace       string
	own             map[string]string // options of the engine
	others          []string          // options, as they are in the URL
}

func (p *parts) refuse(problem string, err error) error {
	return &stores.URLError{Scheme: p.scheme, Problem: problem, Err: err}
}

// cut takes a URL apart. Errors of url.Parse repeat its argument, so cut gives it no password and drops its errors.
func cut(rawURL string, schemes, options []string) (*parts, error) {
	p := &parts{namespace: stores.DefaultNamespace, own: make(map[string]string)}
	scheme, rest, ok := strings.Cut(rawURL, "://")
	if scheme = strings.ToLower(scheme); !ok || !slices.Contains(schemes, scheme) {
		return nil, p.refuse("unknown scheme, want "+strings.Join(schemes, ":// or ")+"://", nil)
	}
	p.scheme, p.authority = scheme, rest
	if end := strings.IndexAny(rest, "/?#"); end >= 0 {
		p.authority, p.tail = rest[:end], rest[end:]
	}
	// After a / ? or # in the password, the rest of the password would be taken for
	// a path or an option, and drivers show those.
	if strings.ContainsAny(p.tail, "@#") {
		return nil, p.refuse("an @ or # after the host; write / ? # @ in a password or an option as %2F %3F %23 %40", nil)
	}
	var query string
	p.path, query, _ = strings.Cut(p.tail, "?")
	if _, err := url.ParseQuery(query); err != nil {
		return nil, p.refuse("bad options after the ?; write % as %25", nil)
	}
	for option := range strings.SplitSeq(query, "&") {
		name, value, _ := strings.Cut(option, "=")
		name, _ = url.QueryUnescape(name) // ParseQuery has accepted it
		value, _ = url.QueryUnescape(value)
		_, twice := p.own[name]
		switch {
		case option == "":
		case twice:
			return nil, p.refuse("option "+name+" is given twice", nil)
		case name == "namespace", slices.Contains(options, name):
			p.own[name] = value
		default:
			p.others = append(p.others, option)
		}
	}
	if namespace, ok := p.own["namespace"]; ok {
		p.namespace = namespace
	}
	if err := stores.CheckNamespace(p.namespace); err != nil {
		return nil, p.refuse("option namespace", err)
	}
	return p, nil
}

// tlsOptions are those that need the scheme with TLS.
var tlsOptions = []string{"cacert", "cert", "key"}

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
	Secure         bool              // the scheme is that with TLS
}

// Refuse returns a [*stores.URLError] for a URL that the engine refuses.
func (u *URL) Refuse(problem string, err error) error {
	return &stores.URLError{Scheme: u.Scheme, Problem: problem, Err: err}
}

// Parse parses a URL with one or more hosts. The error is a [*stores.URLError].
func (f *URLFormat) Parse(rawURL string) (*URL, error) {
	options := slices.Concat([]string{"namespace"}, f.Options, tlsOptions)
	p, err := cut(rawURL, []string{f.Plain.Name, f.TLS.Name}, options)
	if err != nil {
		return nil, err
	}
	u := &URL{Scheme: p.scheme, Namespace: p.namespace, Options: p.own, Secure: p.scheme == f.TLS.Name}
	delete(u.Options, "namespace")
	bad := func(problem string) (*URL, error) { return nil, p.refuse(problem, nil) }
	if p.others != nil {
		return bad("unknown option; there are " + strings.Join(options, ", "))
	}
	for _, name := range tlsOptions {
		if u.Options[name] != "" && !u.Secure {
			return bad("option " + name + " needs the scheme " + f.TLS.Name + "://")
		}
	}
	at := strings.LastIndex(p.authority, "@")
	user, password, _ := strings.Cut(p.authority[:max(at, 0)], ":")
	var err1, err2 error
	u.User, err1 = url.PathUnescape(user)
	u.Password, err2 = url.PathUnescape(password)
	if err1 != nil || err2 != nil {
		return bad("the user name or password is not percent-encoded; write % as %25")
	}
	port := f.Plain.Port
	if u.Secure {
		port = f.TLS.Port
	}
	for host := range strings.SplitSeq(p.authority[at+1:], ",") {
		h, err := url.Parse("tcp://" + host)
		if err != nil || h.Host != host || h.Hostname() == "" || strings.Contains(h.Hostname(), ":") && host[0] != '[' {
			return bad(badHost)
		}
		if h.Port() == "" {
			host = net.JoinHostPort(h.Hostname(), port)
		}
		// url.Parse accepts the host h], and no dialer does.
		if _, _, err := net.SplitHostPort(host); err != nil {
			return bad(badHost)
		}
		u.Hosts = append(u.Hosts, host)
	}
	t, err := url.Parse("tcp://host" + p.path)
	if err != nil {
		return bad("bad path after the host; write % as %25")
	}
	u.Path = strings.TrimRight(t.Path, "/")
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

// ParseDriverURL parses a URL with one of the schemes, and takes the namespace and the
// engine's own parameters out of it. The driver gets the rest as it was. The error is a
// [*stores.URLError].
func ParseDriverURL(rawURL string, schemes []string, own ...string) (*DriverURL, error) {
	p, err := cut(rawURL, schemes, own)
	if err != nil {
		return nil, err
	}
	parsed, err := url.Parse(p.scheme + "://" + p.authority + p.tail)
	if err != nil {
		return nil, p.refuse("it is malformed; percent-encode the special characters of the user, the password and the options", nil)
	}
	parsed.RawQuery = strings.Join(p.others, "&")
	return &DriverURL{URL: parsed, Namespace: p.namespace, Own: p.own}, nil
}
