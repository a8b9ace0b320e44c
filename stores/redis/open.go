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
// password, nor any of what the driver repeats of the URL.
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
		return nil, u.Refuse("the driver does not take it", remote.Withhold(err, err.Error(), words...))
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

// words of the driver's messages that may be shown.
var words = []string{
	"database number", "URL path", "unexpected option",
	"protocol", "max_retries", "min_retry_backoff", "max_retry_backoff",
	"dial_timeout", "read_timeout", "write_timeout", "pool_fifo", "pool_size", "pool_timeout",
	"min_idle_conns", "max_idle_conns", "max_active_conns", "max_concurrent_dials",
	"pipeline_pool_size", "pipeline_read_buffer_size", "pipeline_write_buffer_size",
	"conn_max_idle_time", "idle_timeout", "conn_max_lifetime", "max_conn_age", "conn_max_lifetime_jitter", "skip_verify",
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
