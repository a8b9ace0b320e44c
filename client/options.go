package client

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"

	"github.com/tickflake/tickflake/internal/vmclock"
)

// defaultTimeout is that of [WithTimeout].
const defaultTimeout = 3 * time.Second

// Option configures a [Client] in [Open]. When an option is given twice, the last one holds.
type Option func(*config)

type config struct {
	tls       *tls.Config
	token     string
	plaintext bool // the token may go over plaintext
	timeout   time.Duration
	logger    *slog.Logger
	device    string // see WithVMClock
	page      *vmclock.Page
	dial      []grpc.DialOption // of a test
	target    string            // a test's scheme, before the address
}

// WithTLS makes the client ask each server for TLS. A nil t is one with the defaults of
// crypto/tls. For mutual TLS, give it the client's certificate. Without this option
// connections are in plaintext.
func WithTLS(t *tls.Config) Option {
	return func(c *config) {
		if t == nil {
			t = &tls.Config{MinVersion: tls.VersionTLS12}
		}
		c.tls = t.Clone()
	}
}

// WithToken sends the token with each request, by which the servers know the client. Open
// refuses to send it in plaintext to a server that is not on this machine: see [WithTLS] and
// [WithPlaintextToken].
func WithToken(token string) Option { return func(c *config) { c.token = token } }

// WithPlaintextToken lets the client send its token in plaintext. A program that can read
// the network then has the token. Use it where the network itself encrypts, as a service mesh
// does.
func WithPlaintextToken() Option { return func(c *config) { c.plaintext = true } }

// WithTimeout sets how long the client waits for the answer of a server, and how long no
// server may have answered before calls fail with [ErrUnavailable]. The default is
// 3 seconds, the least 1 ms. After that time calls fail as soon as a new attempt has failed, or at once
// if none is due. A context with an earlier deadline ends a call earlier.
func WithTimeout(d time.Duration) Option { return func(c *config) { c.timeout = d } }

// WithLogger sets the log. The default is [slog.Default] at the time of Open.
func WithLogger(l *slog.Logger) Option { return func(c *config) { c.logger = l } }

// WithVMClock names the VMClock device by which the client notices that its memory is a copy, as package lease's
// does, and then does what [Client.Restored] does, before another ID is returned. "off" is none; "auto" is the default.
func WithVMClock(device string) Option { return func(c *config) { c.device = device } }

func configure(servers []string, options []Option) (*config, error) {
	c := &config{timeout: defaultTimeout}
	for _, option := range options {
		if option != nil {
			option(c)
		}
	}
	if c.logger == nil {
		c.logger = slog.Default()
	}
	switch {
	case len(servers) == 0:
		return nil, fmt.Errorf("%w: servers: none given, want at least one HOST:PORT", ErrOption)
	case c.timeout < time.Millisecond:
		return nil, fmt.Errorf("%w: WithTimeout: %s, want 1ms or more", ErrOption, c.timeout)
	}
	seen := map[string]bool{}
	for _, address := range servers {
		local, err := checkAddress(address)
		if err != nil {
			return nil, err
		}
		if seen[address] {
			return nil, fmt.Errorf("%w: servers: %s is given twice", ErrOption, address)
		}
		seen[address] = true
		if c.token != "" && c.tls == nil && !c.plaintext && !local {
			return nil, fmt.Errorf("%w: WithToken: %s is not on this machine, and the token would go there in plaintext: give WithTLS, or WithPlaintextToken if the network is trusted", ErrOption, address)
		}
	}
	if strings.ContainsFunc(c.token, func(r rune) bool { return r < '!' || r > '~' }) {
		return nil, fmt.Errorf("%w: WithToken: the token has characters other than visible ASCII", ErrOption)
	}
	var err error
	if c.page, err = vmclock.Open(c.device, c.logger); err != nil {
		return nil, fmt.Errorf("%w: WithVMClock: %w", ErrOption, err)
	}
	return c, nil
}

// checkAddress accepts HOST:PORT and unix:PATH, and reports whether a connection to it stays on this machine.
func checkAddress(address string) (local bool, err error) {
	if path, ok := strings.CutPrefix(address, "unix:"); ok && path != "" {
		return true, nil
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil || host == "" || port == "" || strings.ContainsAny(host, "/ ") {
		return false, fmt.Errorf("%w: servers: %q, want HOST:PORT such as ids.example.com:9380, or unix:PATH", ErrOption, address)
	}
	return host == "localhost" || net.ParseIP(host).IsLoopback(), nil
}

// dialOptions are the options of every connection. A proxy of the environment is not used,
// because it would see the token.
func (c *config) dialOptions() []grpc.DialOption {
	transport := insecure.NewCredentials()
	if c.tls != nil {
		transport = credentials.NewTLS(c.tls)
	}
	return append(c.dial,
		grpc.WithTransportCredentials(transport),
		grpc.WithNoProxy(),
		grpc.WithDisableServiceConfig(),
		grpc.WithDisableRetry(), // the client asks another server
		// The delays are those of requests: a request that is due should find a new attempt to connect.
		grpc.WithConnectParams(grpc.ConnectParams{MinConnectTimeout: c.timeout,
			Backoff: backoff.Config{BaseDelay: firstDelay, Multiplier: 2, Jitter: 0.2, MaxDelay: c.lastDelay()}}),
		// Finds a connection that is dead while requests wait for it. Nothing is sent at rest.
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 10 * time.Second, Timeout: 2 * time.Second}))
}
