package redis

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"regexp"
	"strconv"
	"syscall"

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

// connect dials a connection for the driver.
func connect(dialer *dial.Dialer) func(ctx context.Context, network, address string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dialer.Dial(ctx, network, address)
		if plain, ok := conn.(plain); ok { // with TLS, the server ends the connection before the handshake, and says nothing
			conn = &firstAnswer{plain: plain}
		}
		return conn, err
	}
}

// plain is a connection of which the driver can check whether the server has closed it.
type plain interface {
	net.Conn
	syscall.Conn
}

// firstAnswer is a connection that remembers a refusal with which the server answers first. A server with too many clients
// says so and closes the connection; the driver takes that for the answer to HELLO, and goes on. It is for one goroutine
// at a time, as a connection of the driver is.
type firstAnswer struct {
	plain
	answers int
	refusal []byte // or nil
}

// refusal is how an answer begins after which the server closes the connection. Another may show the password.
var refusal = regexp.MustCompile(`^-(ERR max number of clients|DENIED )[^.\r\n]*`)

func (c *firstAnswer) Read(b []byte) (int, error) {
	n, err := c.plain.Read(b)
	if n > 0 {
		if c.answers++; c.answers == 1 {
			c.refusal = bytes.TrimPrefix(refusal.Find(b[:n]), []byte("-"))
		}
	}
	return n, c.because(err)
}

func (c *firstAnswer) Write(b []byte) (int, error) {
	n, err := c.plain.Write(b)
	return n, c.because(err)
}

// errSilent is that of a connection that the server has ended before any answer.
var errSilent = stores.Transient.New("the server answered nothing: look whether it runs; a proxy that lacks HELLO, as twemproxy does, is none for tickflake")

// because adds to the error of a connection that the server has ended why it did so. It wraps two errors: the driver
// takes one that is wrapped alone out of the other.
func (c *firstAnswer) because(err error) error {
	late, ok := err.(net.Error)
	switch {
	case err == nil, ok && late.Timeout(), errors.Is(err, net.ErrClosed):
	case c.answers == 0:
		err = fmt.Errorf("%w: %w", errSilent, err)
	case c.answers == 1 && c.refusal != nil:
		err = fmt.Errorf("%w: %w", errors.New(string(c.refusal)), err)
	}
	return err
}
