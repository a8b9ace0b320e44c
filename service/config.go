package service

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"time"

	"github.com/tickflake/tickflake/sequence"
	"github.com/tickflake/tickflake/service/internal/issuer"
	"github.com/tickflake/tickflake/service/internal/observe"
	"github.com/tickflake/tickflake/service/internal/resp"
	"github.com/tickflake/tickflake/service/internal/rpc"
	"github.com/tickflake/tickflake/service/internal/web"
)

// Defaults of [Config].
const (
	defaultMaxSequences   = 10_000
	defaultMaxObserved    = 100
	defaultMaxBatch       = 10_000
	defaultMaxNumbers     = 1_000_000
	defaultMaxConnections = 16_384
	defaultTimeout        = 2 * time.Second
	defaultIdleTimeout    = time.Hour
	defaultReadTimeout    = 10 * time.Second
	defaultDrainTimeout   = 10 * time.Second
	defaultUseWithin      = time.Second
)

// New checks the configuration, and fails with an error that names the field and the numbers.
// The listeners stay open then. It starts nothing.
func New(c Config) (*Server, error) {
	credentials, err := c.complete()
	if err != nil {
		return nil, fmt.Errorf("service: %w", err)
	}
	s := &Server{config: c, observer: observe.New(c.Logger, c.AccessLog)}
	if s.meters, err = newMeters(&c); err != nil {
		return nil, fmt.Errorf("service: %w", err)
	}
	s.ctx, s.abort = context.WithCancelCause(context.Background())
	s.issuer, err = issuer.New(issuer.Config{
		Generator: c.Generator, Store: c.Store, Sequences: append([]sequence.Option{sequence.WithLogger(c.Logger)}, c.Sequences...), Create: rules(c.Create), Clients: credentials, Strategy: c.Strategy, Opened: s.opened,
		MaxBatch: c.MaxBatch, MaxNumbers: c.MaxNumbers, MaxSequences: c.MaxSequences,
		Timeout: c.Timeout, UseWithin: c.UseWithin, Spare: c.Spare,
		IdleTimeout: c.IdleTimeout, ReadTimeout: c.ReadTimeout, MaxStreams: c.MaxConnections, TLS: c.TLS,
	})
	if err != nil {
		return nil, fmt.Errorf("service: %w", err)
	}
	s.connections.most = maxConnections(maxFiles())
	s.add(observe.RESP, c.RESP, func() server { return resp.New(s.issuer, s.observer, resp.Limits{}) })
	s.add(observe.GRPC, c.GRPC, func() server { return rpc.New(s.issuer, s.observer) })
	options := web.Options{Hosts: c.Hosts, Logger: c.Logger, Metrics: s.meters.handler}
	s.add(observe.HTTP, c.HTTP, func() server { return web.New(s.issuer, s.observer, options) })
	options.Probes = true
	s.add(observe.Probes, c.Probes, func() server { return web.New(s.issuer, s.observer, options) })
	if s.connections.most < int64(c.MaxConnections) {
		c.Logger.Warn("the limit of open files is too low for MaxConnections: connections beyond it are refused", "connections", s.connections.most, "max_connections", c.MaxConnections)
	}
	return s, nil
}

// spareFiles are descriptors that connections leave free. The store needs some to extend the
// grant, without which nobody is served; probes have the others.
const spareFiles = 256

// maxConnections returns how many connections a process may have that may open so many files.
func maxConnections(files int64) int64 { return files - min(spareFiles, files/2) }

// add adds the server of a protocol that has a listener.
func (s *Server) add(p observe.Protocol, l net.Listener, create func() server) {
	if l == nil {
		return
	}
	c := &s.config
	limited := &limited{Listener: l, protocol: p, observer: s.observer, log: c.Logger, most: c.MaxConnections, all: &s.connections}
	if p == observe.Probes {
		// No peer is ever known: where many connect, the newest are answered.
		limited.most, limited.all, limited.patience = maxProbes, &total{most: maxProbes}, c.ReadTimeout
	} else if len(c.Clients) > 0 || c.TLS != nil {
		limited.patience = c.ReadTimeout
	}
	one := part{protocol: p, limited: limited.limit(), listener: limited, server: create()}
	if p == observe.RESP && c.TLS != nil { // the other servers have TLS themselves
		one.listener = tls.NewListener(limited, c.TLS)
	}
	s.parts = append(s.parts, one)
}

func rules(create []Create) []issuer.Create {
	rules := make([]issuer.Create, len(create))
	for i, c := range create {
		rules[i] = issuer.Create(c)
	}
	return rules
}

// bad returns an error about a field.
func bad(field, format string, args ...any) error {
	return fmt.Errorf("Config."+field+": "+format, args...)
}

// Check fails as [New] does, for any field but Generator and Spare. Call it before you open the
// generator, so that a bad configuration claims no node number. It starts nothing.
func (c Config) Check() error {
	if _, err := c.check(); err != nil {
		return fmt.Errorf("service: %w", err)
	}
	return nil
}

// complete sets the defaults, and checks all fields.
func (c *Config) complete() ([]issuer.Credential, error) {
	if c.Generator == nil {
		return nil, bad("Generator", "is nil: give one that generator.Open or generator.New returned")
	}
	if err := c.spare(); err != nil {
		return nil, err
	}
	if c.Store == nil && len(c.Create) > 0 {
		return nil, bad("Create", "there are %d rules, and no Store", len(c.Create))
	}
	return c.check()
}

// check sets the defaults of the fields that need no generator, and checks these fields.
func (c *Config) check() ([]issuer.Credential, error) {
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	for _, check := range []func() error{c.numbers, c.durations, c.sequences, c.hosts, c.exposure} {
		if err := check(); err != nil {
			return nil, err
		}
	}
	return c.credentials()
}

func (c *Config) numbers() error {
	maxSequences, maxObserved, maxConnections := int64(c.MaxSequences), int64(c.MaxObserved), int64(c.MaxConnections)
	for _, f := range []struct {
		name        string
		field       *int64
		value, most int64 // the default, and the largest
	}{
		{"MaxSequences", &maxSequences, defaultMaxSequences, 1_000_000},
		{"MaxObserved", &maxObserved, defaultMaxObserved, 1_000_000},
		{"MaxBatch", &c.MaxBatch, defaultMaxBatch, 1_000_000},
		{"MaxNumbers", &c.MaxNumbers, defaultMaxNumbers, 1 << 53},
		{"MaxConnections", &maxConnections, defaultMaxConnections, 10_000_000},
	} {
		*f.field = cmp.Or(*f.field, f.value)
		if *f.field < 1 || *f.field > f.most {
			return bad(f.name, "%d: want 1 to %d, or 0 for the default, which is %d", *f.field, f.most, f.value)
		}
	}
	if c.AccessLog < 0 {
		return bad("AccessLog", "%d: want 0, which logs none, or more", c.AccessLog)
	}
	c.MaxSequences, c.MaxObserved, c.MaxConnections = int(maxSequences), int(maxObserved), int(maxConnections)
	return nil
}

func (c *Config) durations() error {
	for _, f := range []span{
		{"Timeout", &c.Timeout, defaultTimeout, time.Millisecond, time.Hour},
		{"IdleTimeout", &c.IdleTimeout, defaultIdleTimeout, time.Millisecond, 365 * 24 * time.Hour},
		{"ReadTimeout", &c.ReadTimeout, defaultReadTimeout, time.Millisecond, time.Hour},
		{"DrainTimeout", &c.DrainTimeout, defaultDrainTimeout, time.Millisecond, 24 * time.Hour},
		{"UnreadyFor", &c.UnreadyFor, 0, 0, 24 * time.Hour},
		{"UseWithin", &c.UseWithin, defaultUseWithin, time.Millisecond, 24 * time.Hour},
	} {
		if err := f.settle(); err != nil {
			return err
		}
	}
	return nil
}

// span is a field that is a duration, with its default and its range.
type span struct {
	name               string
	field              *time.Duration
	value, least, most time.Duration
}

// settle sets the default, and checks the range.
func (f span) settle() error {
	*f.field = cmp.Or(*f.field, f.value)
	if *f.field < f.least || *f.field > f.most {
		return bad(f.name, "%s: want %s to %s, or 0 for the default, which is %s", *f.field, f.least, f.most, f.value)
	}
	return nil
}

func (c *Config) spare() error {
	if err := (span{"Spare", &c.Spare, c.Generator.Layout().Tick, 0, 24 * time.Hour}).settle(); err != nil {
		return err
	}
	// A grant is extended when a third of its window is over.
	if keeper := c.Generator.Keeper(); keeper != nil {
		if window := keeper.Stats().Window; c.Spare > window/2 {
			return bad("Spare", "%s: want at most half of the window of the grant, which is %s: else the server is not ready while all is well", c.Spare, window)
		}
	}
	return nil
}

func (c *Config) sequences() error {
	for i, rule := range c.Create {
		if rule.Prefix != "" {
			if err := sequence.CheckName(rule.Prefix); err != nil {
				return bad("Create", "Prefix: %w", err)
			}
		}
		if err := rule.Definition.Check(); err != nil {
			return bad("Create", "of %q: %w", rule.Prefix, err)
		}
		for _, before := range c.Create[:i] {
			if strings.HasPrefix(rule.Prefix, before.Prefix) {
				return bad("Create", "the rule of %q is never used, since that of %q stands before it: change their order", rule.Prefix, before.Prefix)
			}
		}
	}
	return nil
}

func (c *Config) hosts() error {
	for _, host := range c.Hosts {
		if host == "" || !visible(host) || strings.ContainsAny(host, "/:@") && net.ParseIP(host) == nil {
			return bad("Hosts", "%q: want the name of a host, without scheme and port", host)
		}
	}
	return nil
}

// exposure refuses a listener that other machines can reach, unless the danger is named.
func (c *Config) exposure() error {
	if err := c.checkTLS(); err != nil {
		return err
	}
	listeners := 0
	for _, l := range []struct {
		field    string
		listener net.Listener
	}{{"RESP", c.RESP}, {"GRPC", c.GRPC}, {"HTTP", c.HTTP}} {
		if l.listener == nil {
			continue
		}
		listeners++
		address := l.listener.Addr()
		if local(address) {
			continue
		}
		if c.TLS == nil && !c.Plaintext {
			return bad(l.field, "%s can be reached from other machines, and there is no TLS: set TLS, listen on loopback, or set Plaintext if the network can be trusted or a proxy in front has TLS", address)
		}
		if len(c.Clients) == 0 && !asksForCertificate(c.TLS) && !c.Open {
			return bad(l.field, "%s can be reached from other machines, and every program may ask: set Clients, ask for client certificates in TLS, listen on loopback, or set Open to serve every program", address)
		}
	}
	if listeners == 0 {
		return errors.New("there is no listener: set RESP, GRPC or HTTP")
	}
	return nil
}

// local reports whether only this machine can reach the address.
func local(address net.Addr) bool {
	switch a := address.(type) {
	case *net.TCPAddr:
		return a.IP.IsLoopback()
	case *net.UnixAddr:
		return true
	}
	return false
}

func (c *Config) checkTLS() error {
	if c.TLS == nil {
		return nil
	}
	if len(c.TLS.Certificates) == 0 && c.TLS.GetCertificate == nil && c.TLS.GetConfigForClient == nil {
		return bad("TLS", "has no certificate: set Certificates, or use ReloadTLS")
	}
	if c.TLS.MinVersion != 0 && c.TLS.MinVersion < tls.VersionTLS12 {
		return bad("TLS", "MinVersion is %s: want TLS 1.2 or later", tls.VersionName(c.TLS.MinVersion))
	}
	return nil
}

// asksForCertificate reports whether a client needs a certificate that is verified.
func asksForCertificate(c *tls.Config) bool {
	if c == nil {
		return false
	}
	return c.ClientAuth == tls.RequireAndVerifyClientCert ||
		c.ClientAuth == tls.RequireAnyClientCert && (c.VerifyConnection != nil || c.VerifyPeerCertificate != nil)
}

func (c *Config) credentials() ([]issuer.Credential, error) {
	names, sums := make(map[string]bool), make(map[[sha256.Size]byte]string)
	var all []issuer.Credential
	for i, client := range c.Clients {
		k, err := client.credential(c.MaxBatch)
		if err != nil {
			return nil, bad(fmt.Sprintf("Clients[%d]", i), "%w", err)
		}
		if names[k.Name] {
			return nil, bad(fmt.Sprintf("Clients[%d]", i), "Name %q is taken by another client", k.Name)
		}
		if other, taken := sums[k.Token]; taken {
			return nil, bad(fmt.Sprintf("Clients[%d]", i), "%s has the same token as %s: give each its own", k.Name, other)
		}
		names[k.Name], sums[k.Token] = true, k.Name
		all = append(all, k)
	}
	return all, nil
}
