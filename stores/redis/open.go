package redis

import (
	"context"
	"errors"
	"strconv"

	driver "github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
	"github.com/tickflake/tickflake/stores/internal/remote"
)

// Open returns a Store in the server of a URL of the form
// redis://user:password@host:port/database, or rediss:// for TLS; the port is 6379 and
// the database 0 unless given. Two parameters are its own:
//
//	namespace=NAME   the namespace, 1 to 48 ASCII letters, digits, hyphens and
//	                 underscores; without it, lease.DefaultNamespace
//	replicas=N       as WithReplicas
//
// All others are those of the driver's ParseURL: dial_timeout, read_timeout and so on.
// For Sentinel or a cluster, make the client and use [New].
//
// It sends nothing: an unreachable server or a wrong password is the error of the
// first use. At most four connections are opened, and one is kept, unless the URL says
// otherwise.
//
// The error is a [*lease.URLError], or that of ctx if it has ended. It never holds the
// password.
func Open(ctx context.Context, rawURL string) (*Store, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	u, replicas, err := parseURL(rawURL)
	if err != nil {
		return nil, err
	}
	opt, err := driver.ParseURL(u.URL.String())
	if err != nil {
		return nil, u.Refuse("the driver does not take it", remote.Harmless(err, u.URL))
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
	s, err := New(client, u.Namespace, WithReplicas(replicas))
	if err != nil {
		return nil, errors.Join(err, client.Close())
	}
	s.opened = true
	return s, nil
}

// parseURL returns the URL without the parameters of this package, and the replicas.
func parseURL(rawURL string) (u *remote.DriverURL, replicas int, err error) {
	u, err = remote.ParseDriverURL(rawURL, []string{"redis", "rediss"}, "replicas")
	if err != nil {
		return nil, 0, err
	}
	if u.URL.Hostname() == "" {
		return nil, 0, u.Refuse("it names no host", nil)
	}
	if _, ok := u.URL.User.Password(); !ok && u.URL.User.Username() != "" {
		// Written redis://password@host, as in some manuals, it is taken for a user
		// without a password, and the server would be asked without either.
		return nil, 0, u.Refuse("it has a user and no password; want user:password@host, or :password@host", nil)
	}
	if text, ok := u.Own["replicas"]; ok {
		replicas, err = strconv.Atoi(text)
		if err != nil || replicas < 0 || replicas > 100 {
			return nil, 0, u.Refuse("the parameter replicas cannot be used: want 0 to 100", nil)
		}
	}
	return u, replicas, nil
}
