package engine

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/tickflake/tickflake/stores"
)

// URL has the parts of an engine's URL.
type URL struct {
	Scheme    string            // in lower case
	Namespace string            // [stores.DefaultNamespace] if the URL has none
	Options   map[string]string // of the engine, without the namespace

	// Those of ParseURL.
	User, Password string
	Hosts          []string // host:port each
	Path           string   // without slashes at its end
	Secure         bool     // the scheme is that with TLS

	// URL is that of ParseDriverURL, for the driver, without the namespace and the engine's options.
	URL *url.URL

	authority, tail string   // as they are in the URL; tail has the path and the options
	path            string   // as it is in the URL
	others          []string // options, as they are in the URL
}

// Refuse returns a [*stores.URLError] for a URL that the engine refuses.
func (u *URL) Refuse(problem string, err error) error {
	return &stores.URLError{Scheme: u.Scheme, Problem: problem, Err: err}
}

// cut takes a URL apart. Errors of url.Parse repeat its argument, so cut gives it no password and drops its errors.
func cut(rawURL string, schemes, options []string) (*URL, error) {
	u := &URL{Namespace: stores.DefaultNamespace, Options: make(map[string]string)}
	scheme, rest, ok := strings.Cut(rawURL, "://")
	if scheme = strings.ToLower(scheme); !ok || !slices.Contains(schemes, scheme) {
		return nil, u.Refuse("unknown scheme, want "+strings.Join(schemes, ":// or ")+"://", nil)
	}
	u.Scheme, u.authority = scheme, rest
	if end := strings.IndexAny(rest, "/?#"); end >= 0 {
		u.authority, u.tail = rest[:end], rest[end:]
	}
	// After a / ? or # in the password, the rest of the password would be taken for
	// a path or an option, and drivers show those.
	if strings.ContainsAny(u.tail, "@#") {
		return nil, u.Refuse("an @ or # after the host; write / ? # @ in a password or an option as %2F %3F %23 %40", nil)
	}
	var query string
	u.path, query, _ = strings.Cut(u.tail, "?")
	if _, err := url.ParseQuery(query); err != nil {
		return nil, u.Refuse("bad options after the ?; write % as %25", nil)
	}
	for option := range strings.SplitSeq(query, "&") {
		name, value, _ := strings.Cut(option, "=")
		name, _ = url.QueryUnescape(name) // ParseQuery has accepted it
		value, _ = url.QueryUnescape(value)
		_, twice := u.Options[name]
		switch {
		case option == "":
		case twice:
			return nil, u.Refuse("option "+name+" is given twice", nil)
		case name == "namespace", slices.Contains(options, name):
			u.Options[name] = value
		default:
			u.others = append(u.others, option)
		}
	}
	if namespace, ok := u.Options["namespace"]; ok {
		u.Namespace = namespace
		delete(u.Options, "namespace")
	}
	if err := stores.CheckNamespace(u.Namespace); err != nil {
		return nil, u.Refuse("option namespace", err)
	}
	return u, nil
}

// tlsOptions are those that need the scheme with TLS.
var tlsOptions = []string{"cacert", "cert", "key"}

// ParseURL parses the URL of an engine whose driver has no URLs, with one or more hosts:
//
//	SCHEME://[USER[:PASSWORD]@]HOST[:PORT][,HOST[:PORT]…][/PATH][?OPTION=VALUE&…]
//
// plain is its scheme and the port for hosts without one, as SCHEME:PORT, and secure the same with TLS. options are
// those of the engine, besides namespace and those of TLS: cacert, cert, key. The error is a [*stores.URLError].
func ParseURL(rawURL, plain, secure string, options ...string) (*URL, error) {
	plain, port, _ := strings.Cut(plain, ":")
	secure, securePort, _ := strings.Cut(secure, ":")
	options = slices.Concat([]string{"namespace"}, options, tlsOptions)
	u, err := cut(rawURL, []string{plain, secure}, options)
	if err != nil {
		return nil, err
	}
	bad := func(problem string) (*URL, error) { return nil, u.Refuse(problem, nil) }
	if u.others != nil {
		return bad("unknown option; there are " + strings.Join(options, ", "))
	}
	if u.Secure = u.Scheme == secure; u.Secure {
		port = securePort
	}
	for _, name := range tlsOptions {
		if u.Options[name] != "" && !u.Secure {
			return bad("option " + name + " needs the scheme " + secure + "://")
		}
	}
	at := strings.LastIndex(u.authority, "@")
	user, password, _ := strings.Cut(u.authority[:max(at, 0)], ":")
	var err1, err2 error
	u.User, err1 = url.PathUnescape(user)
	u.Password, err2 = url.PathUnescape(password)
	if err1 != nil || err2 != nil {
		return bad("the user name or password is not percent-encoded; write % as %25")
	}
	for host := range strings.SplitSeq(u.authority[at+1:], ",") {
		const badHost = "bad host; want HOST or HOST:PORT, or several with commas between"
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
	t, err := url.Parse("tcp://host" + u.path)
	if err != nil {
		return bad("bad path after the host; write % as %25")
	}
	u.Path = strings.TrimRight(t.Path, "/")
	return u, nil
}

// ParseDriverURL parses a URL with one of the schemes, and takes the namespace and the
// engine's own options out of it. The driver gets the rest as it was. The error is a
// [*stores.URLError].
func ParseDriverURL(rawURL string, schemes []string, options ...string) (*URL, error) {
	u, err := cut(rawURL, schemes, options)
	if err != nil {
		return nil, err
	}
	if u.URL, err = url.Parse(u.Scheme + "://" + u.authority + u.tail); err != nil {
		return nil, u.Refuse("it is malformed; percent-encode the special characters of the user, the password and the options", nil)
	}
	u.URL.RawQuery = strings.Join(u.others, "&")
	return u, nil
}

// Register makes an engine known to [stores.Open] whose driver has URLs: for each of the schemes, which have spaces between them,
// open gets a URL by [ParseDriverURL]. It returns the opener, for tests. Package dial has the one for a driver that has none.
func Register(schemes string, options []string, open func(context.Context, *URL) (stores.Store, error)) stores.Opener {
	opener := func(ctx context.Context, rawURL string) (stores.Store, error) {
		u, err := ParseDriverURL(rawURL, strings.Fields(schemes), options...)
		if err != nil {
			return nil, err
		}
		return open(ctx, u)
	}
	for scheme := range strings.FieldsSeq(schemes) {
		stores.Register(scheme, opener)
	}
	return opener
}

// Withhold returns an error in place of err, a driver's error about a URL. It shows only
// those of words, such as the names of options, that occur in the message. Drivers repeat
// the URL in part, unescaped or as a whole, and the password may be anywhere in their
// text. The error does not wrap err, which may contain the password.
func Withhold(err error, message string, words ...string) error {
	var found []string
	for _, word := range words {
		if regexp.MustCompile(`\b` + regexp.QuoteMeta(word) + `\b`).MatchString(message) {
			found = append(found, word)
		}
	}
	text := "its message is withheld, since it may show a password"
	if len(found) > 0 {
		text += "; it is about: " + strings.Join(found, ", ")
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		text += "; a file that the URL names does not exist"
	case errors.Is(err, fs.ErrPermission):
		text += "; a file that the URL names may not be read"
	}
	return errors.New(text)
}
