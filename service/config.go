package service

import (
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/tickflake/tickflake/internal/seam"
	"github.com/tickflake/tickflake/sequence"
	"github.com/tickflake/tickflake/service/internal/issuer"
	"github.com/tickflake/tickflake/service/internal/limit"
	"github.com/tickflake/tickflake/service/internal/resp"
	"github.com/tickflake/tickflake/service/internal/rpc"
	"github.com/tickflake/tickflake/service/internal/web"
	"github.com/tickflake/tickflake/stores"
)

// New checks the configuration, and fails with a [*stores.OptionError] that names the field, such as Config.MaxBatch or
// Config.Clients[2], and the numbers.
// The listeners stay open then. It starts nothing.
func New(c Config) (*Server, error) {
	if c.Generator == nil {
		return nil, bad("Generator", "is nil: give one that generator.Open or generator.New returned")
	}
	if c.Store == nil && len(c.Create) > 0 {
		return nil, bad("Create", "there are %d rules, and no Store", len(c.Create))
	}
	all, err := c.check()
	if err != nil {
		return nil, err
	}
	s := &Server{config: c, issuer: issuer.New(all)}
	listeners := [issuer.Protocols]net.Listener{issuer.RESP: c.RESP, issuer.GRPC: c.GRPC, issuer.HTTP: c.HTTP, issuer.Probes: c.Probes}
	var protocols []issuer.Protocol
	for p, l := range listeners {
		if l != nil {
			protocols = append(protocols, issuer.Protocol(p))
		}
	}
	public := len(protocols)
	if c.Probes != nil {
		public--
	}
	strangers, most := spread(maxFiles(), public)
	s.connections.most = most
	metrics, err := s.metrics(protocols)
	if err != nil {
		return nil, fmt.Errorf("service: metrics: %w", err)
	}
	for _, p := range protocols {
		limited := &limited{Listener: listeners[p], protocol: p, issuer: s.issuer, most: c.MaxConnections, strangers: strangers, age: c.MaxConnectionAge, all: &s.connections, open: make(map[*counted]struct{})}
		if len(c.Clients) > 0 || c.TLS != nil {
			limited.patience = c.ReadTimeout
		}
		var server server
		switch p {
		case issuer.RESP:
			server = resp.New(s.issuer)
		case issuer.GRPC:
			server = rpc.New(s.issuer)
		case issuer.HTTP:
			server = web.New(s.issuer, p, metrics)
		case issuer.Probes: // no peer is ever known: where many connect, the newest are answered
			server = web.New(s.issuer, p, nil)
			limited.strangers, limited.patience = limit.Probes, c.ReadTimeout
		}
		s.parts = append(s.parts, part{p, limited, server})
	}
	if most < int64(c.MaxConnections) {
		c.Logger.Warn("the limit of open files is too low for MaxConnections: connections beyond it are refused", "connections", most, "max_connections", c.MaxConnections)
	}
	return s, nil
}

// bad returns an error about a field.
func bad(field, format string, args ...any) error {
	return &stores.OptionError{Option: "Config." + field, Err: fmt.Errorf(format, args...)}
}

// Validate fails as [New] does, for any field but Generator and Store. Call it before you open the
// generator, so that a bad configuration claims no node number. It starts nothing.
func (c Config) Validate() error {
	_, err := c.check()
	return err
}

// check sets the defaults of the fields that need no generator, checks these fields, and returns all for the issuer.
func (c *Config) check() (all issuer.Config, err error) {
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	all = issuer.Config{
		Generator: c.Generator, Strategy: c.Strategy, Store: c.Store, StoreName: c.StoreName, Logger: c.Logger, TLS: c.TLS,
		Sequences: append([]sequence.Option{sequence.WithLogger(c.Logger)}, c.Sequences...),
	}
	for _, rule := range c.Create {
		all.Rules = append(all.Rules, issuer.Rule(rule))
	}
	for _, check := range []func() error{func() error { return c.settings(&all.Serve) }, c.sequences, c.hosts, c.exposure} {
		if err := check(); err != nil {
			return all, err
		}
	}
	all.Clients, err = c.clients()
	return all, err
}

// settings sets the defaults of the fields that are numbers or durations, checks their ranges, by the tags of [seam.Serve], and
// copies all settings.
func (c *Config) settings(to *seam.Serve) error {
	for i := range reflect.TypeFor[seam.Serve]().NumField() {
		field := reflect.TypeFor[seam.Serve]().Field(i)
		value, tag := reflect.ValueOf(c).Elem().FieldByName(field.Name), field.Tag.Get
		if value.CanInt() {
			if value.Int() == 0 {
				value.SetInt(tagged(field, "default"))
			}
			if n := value.Int(); n < tagged(field, "least") || n > tagged(field, "most") {
				return bad(field.Name, "%v: want %s to %s, or 0 for the default, which is %s", value.Interface(), tag("least"), tag("most"), tag("default"))
			}
		}
		reflect.ValueOf(to).Elem().Field(i).Set(value)
	}
	return nil
}

// tagged returns the number or duration of a tag.
func tagged(field reflect.StructField, name string) (n int64) {
	text, err := field.Tag.Get(name), error(nil)
	if field.Type == reflect.TypeFor[time.Duration]() {
		var d time.Duration
		d, err = time.ParseDuration(text)
		n = int64(d)
	} else {
		n, err = strconv.ParseInt(text, 10, 64)
	}
	if err != nil {
		panic(err) // a bug: the tags are constants
	}
	return n
}

func (c *Config) sequences() error {
	for i, rule := range c.Create {
		if rule.Prefix != "" {
			if err := sequence.ValidateName(rule.Prefix); err != nil {
				return bad("Create", "Prefix: %w", err)
			}
		}
		if err := rule.Definition.Validate(); err != nil {
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
		if host == "" || strings.ContainsFunc(host, invisible) || strings.ContainsAny(host, "/:@*") && net.ParseIP(host) == nil {
			return bad("Hosts", "%q: want the name of a host, without scheme, port and *", host)
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
		if c.TLS == nil && !c.AllowPlaintext {
			return bad(l.field, "%s can be reached from other machines, and there is no TLS: give a certificate, listen on loopback, or, if the network can be trusted or a proxy in front has TLS, set AllowPlaintext", address)
		}
		if len(c.Clients) == 0 && !asksForCertificate(c.TLS) && !c.AllowOpen {
			return bad(l.field, "%s can be reached from other machines, and every program may ask: name clients, ask for client certificates, listen on loopback, or, to serve every program, set AllowOpen", address)
		}
	}
	if listeners == 0 {
		return errors.New("service: there is no listener: set RESP, GRPC or HTTP")
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
		return bad("TLS", "has no certificate: set Certificates, or use Files.TLS")
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

// clients makes the clients: one for each token.
func (c *Config) clients() ([]*issuer.Client, error) {
	names, whose := make(map[string]bool), make(map[[sha256.Size]byte]string)
	var all []*issuer.Client
	for i, client := range c.Clients {
		sums, may, err := client.check(c)
		for _, sum := range sums {
			if other, taken := whose[sum]; err == nil && taken {
				err = fmt.Errorf("it has the same token as %s: give each its own", other)
			}
			whose[sum] = client.Name
		}
		if err == nil && names[client.Name] {
			err = errors.New("its name is taken by another client")
		}
		if err != nil {
			return nil, bad(fmt.Sprintf("Clients[%d]", i), "client %.80q: %w", client.Name, err)
		}
		names[client.Name] = true
		first := issuer.NewClient(client.Name, sums[0], may)
		all = append(all, first)
		for _, sum := range sums[1:] {
			all = append(all, first.And(sum))
		}
	}
	return all, nil
}
