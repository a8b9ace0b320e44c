package redis

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"strconv"
	"strings"

	driver "github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
	"github.com/tickflake/tickflake/lease"
)

// Open returns a Store in the server of a URL of the form
// redis://user:password@host:port/database, or rediss:// for TLS; the port is 6379 and
// the database 0 unless given. Two parameters are its own:
//
//	namespace=NAME   the namespace, 1 to 48 ASCII letters, digits, hyphens and
//	                 underscores; without it, lease.DefaultNamespace
//	replicas=N       as Replicas
//
// All others are those of the driver's ParseURL: dial_timeout, read_timeout and so on.
// For Sentinel or a cluster, make the client and use [New].
//
// It sends nothing: an unreachable server or a wrong password is the error of the
// first use. At most four connections are opened, and one is kept, unless the URL says
// otherwise.
//
// The error is a [*URLError], or that of ctx if it has ended. It never holds the
// password.
func Open(ctx context.Context, rawURL string) (*Store, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	source, err := parseURL(rawURL)
	if err != nil {
		return nil, err
	}
	opt, err := driver.ParseURL(source.url.String())
	if err != nil {
		problem := err.Error()
		if password, _ := source.url.User.Password(); password != "" && strings.Contains(problem, password) {
			problem = "its message is withheld, since it may show the password"
		}
		return nil, &URLError{Scheme: source.url.Scheme, Problem: "the driver does not take it", Err: errors.New(problem)}
	}
	opt.ContextTimeoutEnabled = true
	if opt.PoolSize == 0 {
		opt.PoolSize = 4
	}
	if opt.MaxIdleConns == 0 {
		opt.MaxIdleConns = 1 // a fleet of a thousand should not hold thousands
	}
	// They are of one vendor's service, and asking for them costs a round trip.
	opt.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}

	client := driver.NewClient(opt)
	s, err := New(client, source.namespace, Replicas(source.replicas))
	if err != nil {
		return nil, errors.Join(err, client.Close())
	}
	s.opened = true
	return s, nil
}

type source struct {
	url       *url.URL // without the parameters below
	namespace string
	replicas  int
}

func parseURL(rawURL string) (*source, error) {
	scheme, rest, ok := strings.Cut(rawURL, "://")
	if !ok || scheme != "redis" && scheme != "rediss" {
		return nil, &URLError{Problem: "want one that begins with redis:// or rediss://"}
	}
	fail := func(problem string, err error) (*source, error) {
		return nil, &URLError{Scheme: scheme, Problem: problem, Err: err}
	}
	const encode = "percent-encode what is neither letter nor digit in user, password and values, as %40 for @"
	// What url.Parse says quotes the URL, and the password with it.
	u, err := url.Parse(rawURL)
	if err != nil {
		return fail("it is malformed; "+encode, nil)
	}
	// With a / ? or # in the password, the host may be taken to end before it, and all
	// that follows to be something that can be shown.
	if end := strings.IndexAny(rest, "/?#"); end >= 0 && strings.ContainsAny(rest[end:], "@#") {
		return fail("it has a @ or # after the host; "+encode, nil)
	}
	params, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return fail("its parameters are malformed; "+encode, nil)
	}
	if u.Hostname() == "" {
		return fail("it names no host", nil)
	}
	if u.User != nil && u.User.Username() != "" {
		if _, ok := u.User.Password(); !ok {
			// Written redis://password@host, as in some manuals, it is taken for a user
			// without a password, and the server would be asked without either.
			return fail("it has a user and no password; want user:password@host, or :password@host", nil)
		}
	}
	s := &source{url: u, namespace: lease.DefaultNamespace}
	for name := range params {
		if len(params[name]) > 1 && slices.Contains([]string{"namespace", "replicas"}, name) {
			return fail("it has the parameter "+name+" twice", nil)
		}
	}
	if params.Has("namespace") {
		s.namespace = params.Get("namespace")
		if err := lease.CheckNamespace(s.namespace); err != nil {
			return fail("the parameter namespace cannot be used", err)
		}
	}
	if params.Has("replicas") {
		n, err := strconv.Atoi(params.Get("replicas"))
		if err != nil || n < 0 || n > 100 {
			return fail("the parameter replicas cannot be used: want 0 to 100", nil)
		}
		s.replicas = n
	}
	params.Del("namespace")
	params.Del("replicas")
	u.RawQuery = params.Encode()
	return s, nil
}
