package dial

import (
	"context"
	"errors"
	"strings"

	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/engine"
)

// Form is what the URLs of an engine have whose driver has none; see [engine.ParseURL].
type Form struct {
	Name          string   // of the engine, in errors
	Plain, Secure string   // the scheme and the port without and with TLS, such as "etcd:2379"
	Options       []string // of the engine

	Path bool // there may be a path after the hosts
	Pair bool // a user has a password, and a password a user
	One  bool // as One of the [Dialer]
}

// Opening is a URL with which an engine opens a store.
type Opening[R comparable] struct {
	*engine.URL
	TLS    Secure              // or nil
	Dialer *Dialer             // of at most [MaxConns] connections to a server
	Store  *engine.Skeleton[R] // has its Namespace, At and Conns; it is closed if the opening fails
}

// Register makes an engine known to [stores.Open] whose driver has no URLs. connect fills the Store in. Its error is a
// [*stores.URLError], or becomes one by [engine.OpenFailed]. Register returns the opener, for tests.
func Register[R comparable](f Form, connect func(context.Context, *Opening[R]) error) stores.Opener {
	opener := func(ctx context.Context, rawURL string) (stores.Store, error) { return open(ctx, rawURL, f, connect) }
	for _, scheme := range []string{f.Plain, f.Secure} {
		scheme, _, _ = strings.Cut(scheme, ":")
		stores.Register(scheme, opener)
	}
	return opener
}

func open[R comparable](ctx context.Context, rawURL string, f Form, connect func(context.Context, *Opening[R]) error) (stores.Store, error) {
	u, err := engine.ParseURL(rawURL, f.Plain, f.Secure, f.Options...)
	switch {
	case err != nil:
		return nil, err
	case u.Path != "" && !f.Path:
		return nil, u.Refuse("a path after the host; want none, and the namespace as ?namespace=NAME", nil)
	case (u.User == "") != (u.Password == "") && f.Pair:
		return nil, u.Refuse("a user without a password, or a password without a user", nil)
	}
	secure, err := TLS(u)
	if err != nil {
		return nil, err
	}
	dialer := &Dialer{Most: MaxConns, One: f.One}
	s := &engine.Skeleton[R]{Namespace: u.Namespace, At: f.Name + " at " + strings.Join(u.Hosts, ","), Conns: dialer}
	if err = connect(ctx, &Opening[R]{u, secure, dialer, s}); err == nil {
		return s, nil
	}
	_ = s.Close() // err says more
	if _, ok := errors.AsType[*stores.URLError](err); ok {
		return nil, err
	}
	return nil, engine.OpenFailed(ctx, s.At, err)
}
