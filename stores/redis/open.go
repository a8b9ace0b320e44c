package redis

import (
	"cmp"
	"context"
	"crypto/tls"
	"strconv"

	driver "github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/engine"
	"github.com/tickflake/tickflake/stores/engine/dial"
)

var open = engine.Register("redis rediss", []string{"replicas"}, openURL)

// openURL opens a URL, as the package's doc describes it. It sends nothing.
func openURL(_ context.Context, u *engine.URL) (stores.Store, error) {
	if u.URL.Hostname() == "" {
		return nil, u.Refuse("it names no host", nil)
	}
	if _, ok := u.URL.User.Password(); !ok && u.URL.User.Username() != "" {
		// In redis://password@host, as in some manuals, the password is parsed as a user
		// without a password, and the client would log in without either.
		return nil, u.Refuse("it has a user and no password; want user:password@host, or :password@host", nil)
	}
	replicas := 0
	if text, ok := u.Options["replicas"]; ok {
		var err error
		if replicas, err = strconv.Atoi(text); err != nil || replicas < 0 || replicas > 100 {
			return nil, u.Refuse("the parameter replicas cannot be used: want 0 to 100", nil)
		}
	}
	opt, err := driver.ParseURL(u.URL.String())
	if err != nil {
		return nil, u.Refuse("the driver does not take it; its options are namespace, replicas and those of ParseURL of go-redis, such as read_timeout", engine.Withhold(err, err.Error(), words...))
	}
	opt.PoolSize = cmp.Or(opt.PoolSize, 4)
	opt.PipelinePoolSize = cmp.Or(opt.PipelinePoolSize, -1) // pipelines use the same connections
	// A command keeps its connection until the server has answered, so that the pool counts
	// the connections as the server does.
	opt.ReadTimeout = cmp.Or(opt.ReadTimeout, dial.MaxSilence)
	// The caller tries again. Five attempts for each of the four of a command hide the cause for seconds.
	opt.DialerRetries = cmp.Or(opt.DialerRetries, 1)
	dialer := new(dial.Dialer)
	if config := opt.TLSConfig; config != nil { // it has no files
		dialer.TLS = func() (*tls.Config, error) { return config, nil }
	}
	opt.Dialer = connect(dialer)                   // the driver then makes no handshake
	opt.MaxIdleConns = cmp.Or(opt.MaxIdleConns, 1) // so that a thousand processes do not keep thousands of connections
	// Maintenance notifications are a feature of one vendor, and cost a round trip.
	opt.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}

	client := driver.NewClient(opt)
	s := newStore(client, u.Namespace, replicas)
	s.Conns, s.Done = dialer, client.Close
	return s, nil
}

// words are the parts of the driver's messages that may be shown.
var words = []string{
	"database number", "URL path", "unexpected option",
	"protocol", "max_retries", "min_retry_backoff", "max_retry_backoff",
	"dial_timeout", "read_timeout", "write_timeout", "pool_fifo", "pool_size", "pool_timeout",
	"min_idle_conns", "max_idle_conns", "max_active_conns", "max_concurrent_dials",
	"pipeline_pool_size", "pipeline_read_buffer_size", "pipeline_write_buffer_size",
	"conn_max_idle_time", "idle_timeout", "conn_max_lifetime", "max_conn_age", "conn_max_lifetime_jitter", "skip_verify",
}
