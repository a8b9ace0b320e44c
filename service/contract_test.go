package service_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/internal/wire"
	"github.com/tickflake/tickflake/sequence"
	"github.com/tickflake/tickflake/service"
	"github.com/tickflake/tickflake/service/servicetest"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/strategies"
)

// The tokens of the clients, and one that is nobody's. A token is in no log, metric or answer.
const (
	shop    = "shop-0123456789abcdef"
	slow    = "slow-0123456789abcdef"
	numbers = "numbers-0123456789abc"
	watch   = "watch-0123456789abcdef"
	stray   = "stray-0123456789abcdef"
)

// requests are requests, and how each is refused.
var requests = []struct {
	name, token string
	ask         func(servicetest.Caller) error
	code        wire.Code
	text        string // in the refusal
}{
	{"no token", "", ids(1), wire.Unauthenticated, "oken"},
	{"no token for a sequence", "", take("orders", 1), wire.Unauthenticated, "oken"},
	{"an unknown token", stray, ids(1), wire.WrongToken, "the token is not known"},
	{"a client that may read the metrics only", watch, ids(1), wire.Forbidden, "client watch may read the metrics only"},
	{"a client without IDs", numbers, ids(1), wire.Forbidden, "client numbers may not take IDs"},
	{"another's sequence", numbers, take("tickets", 1), wire.Forbidden, "client numbers may not use sequence tickets"},
	{"a sequence whose name begins so", numbers, take("tickets-10", 1), wire.Forbidden, "may not use sequence tickets-10"},
	{"a prefix without its end", numbers, take("orders", 1), wire.Forbidden, "may not use sequence orders"},
	{"too many IDs", shop, ids(101), wire.BadInput, "want 1 to 100"},
	{"no IDs", shop, ids(0), wire.BadInput, "asked for 0 IDs: want 1 to 100"},
	{"no numbers", shop, take("orders", 0), wire.BadInput, "asked for 0 numbers: want 1 to 1000"},
	{"fewer than no IDs", shop, ids(-1), wire.BadInput, "want 1 to 100"},
	{"too many numbers", shop, take("orders", 1001), wire.BadInput, "want 1 to 1000"},
	{"a bad name", shop, take("Orders", 1), wire.BadInput, "lower-case"},
	{"no sequence", shop, take("absent", 1), wire.NotFound, "tickflake sequence create absent"},
	{"the end of a sequence", shop, take("tickets", 4), wire.OutOfRange, "3 numbers left"},
	{"more than a burst", slow, ids(3), wire.BadInput, "its limit is 2"},
	{"above a rate", slow, ids(2), wire.Busy, "client slow is above its rate of 0.001 per second"},
}

func ids(n int64) func(servicetest.Caller) error {
	return func(c servicetest.Caller) error { _, err := c.IDs(context.Background(), n); return err }
}

func take(name string, n int64) func(servicetest.Caller) error {
	return func(c servicetest.Caller) error { _, err := c.Numbers(context.Background(), name, n); return err }
}

// refused checks that a call of a protocol was refused with a code.
func refused(t testing.TB, protocol string, code wire.Code, err error) *servicetest.Refusal {
	t.Helper()
	require.IsType(t, &servicetest.Refusal{}, err, "%s, %s: %v", protocol, code, err)
	r := err.(*servicetest.Refusal)
	assert.Equal(t, servicetest.Word(protocol, code), r.Word, "%s: %s", protocol, r.Text)
	if repeat := code == wire.Busy || code == wire.Unavailable; protocol != resp {
		assert.Equal(t, repeat, r.After > 0, "%s, %s: repeat after %s", protocol, code, r.After)
	}
	return r
}

// Each protocol serves from one generator and one set of sequences, refuses what the others
// refuse, and counts and logs it.
func TestRequests(t *testing.T) {
	t.Parallel()
	r := start(t, listen, func(c *service.Config) {
		c.MaxBatch, c.MaxNumbers, c.AccessLog = 100, 1000, 1
		c.Create = append(c.Create, service.CreateRule{Prefix: "tickets", Definition: sequence.Definition{Mode: sequence.Ordered, Max: 3}})
		c.Clients = []service.Client{
			{Name: "shop", Tokens: []string{shop}, Sequences: []string{"*"}},
			{Name: "watch", Tokens: []string{watch}, NoIDs: true, Metrics: true},
			{Name: "slow", Tokens: []string{slow}, Rate: 0.001, Burst: 2},
			{Name: "numbers", Tokens: []string{numbers}, NoIDs: true, Sequences: []string{"tickets-1", "orders-*"}},
		}
	})
	var all []snowflake.ID
	var last int64
	for _, protocol := range servicetest.Protocols {
		c := r.caller(protocol, shop)
		for range 2 {
			got, err := c.IDs(t.Context(), 50)
			require.NoError(t, err, protocol)
			require.Len(t, got, 50, protocol)
			all = append(all, got...)
			number, err := c.Numbers(t.Context(), "orders", 3)
			require.NoError(t, err, protocol)
			require.Equal(t, last+3, number, protocol)
			last = number
		}
	}
	require.IsIncreasing(t, all)
	require.NoError(t, ids(1)(r.caller(rpc, slow))) // two more IDs are above the rate
	require.NoError(t, take("orders-1", 1)(r.caller(rpc, numbers)))

	want := map[string]map[wire.Code]int{resp: {}, rpc: {}, web: {}}
	var shown strings.Builder
	for _, row := range requests {
		for _, protocol := range servicetest.Protocols {
			t.Run(row.name+"/"+protocol, func(t *testing.T) {
				refusal := refused(t, protocol, row.code, row.ask(r.caller(protocol, row.token)))
				assert.Contains(t, refusal.Text, row.text)
				shown.WriteString(refusal.Text)
				want[protocol][row.code]++
			})
		}
	}
	metrics := r.metrics(watch)
	says := func(text, format string, args ...any) { assert.Regexp(t, fmt.Sprintf("(?m)"+format, args...), text) }
	for protocol, codes := range want {
		for code, n := range codes {
			says(metrics, `^tickflake_service_requests_total{.*code="%s",.*protocol="%s"} %d$`, code, protocol, n)
			says(r.log(), `"protocol":"%s".*"code":"%s"`, protocol, code)
		}
		n := 2 * (50 + 3)
		if protocol == rpc {
			n += 2 // of the clients slow and numbers
		}
		says(metrics, `^tickflake_service_items_total{.*protocol="%s"} %d$`, protocol, n)
	}
	for _, name := range []string{"shop", "slow", "numbers"} {
		says(r.log(), `"client":"%s"`, name)
	}
	for _, token := range []string{shop, slow, numbers, watch, stray} {
		assert.NotContains(t, r.log()+shown.String()+metrics, token)
	}
}

// A request waits as the strategy says, but not beyond the timeout of the service.
func TestStrategyWaits(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		const timeout = 20 * time.Millisecond
		r := start(t, pipe, func(c *service.Config) { c.Generator, c.Timeout = four(t, strategies.Wait()), timeout })
		for _, protocol := range servicetest.Protocols {
			began := time.Now()
			refusal := refused(t, protocol, wire.Unavailable, ids(9)(r.caller(protocol, "")))
			assert.Equal(t, timeout, time.Since(began), protocol)
			assert.Contains(t, refusal.Text, "not served within 20ms, the server's timeout of a request", protocol)
			assert.True(t, protocol == resp || refusal.After == time.Second, "%s: %s", protocol, refusal.After)
		}
	})
}

// All protocols ask for TLS, and for a certificate of the client where there is an authority of
// clients. A peer without them gets nothing, and does not harm the others.
func TestTLS(t *testing.T) {
	t.Parallel()
	a, stranger := servicetest.NewAuthority(t), servicetest.NewAuthority(t)
	files := servicetest.NewFiles(t)
	certificate, key := a.Issue(t, "server", servicetest.ForServers, 100*time.Hour)
	files.Put(t, certificate, key, a.PEM())
	r := start(t, listen, func(c *service.Config) {
		var err error
		c.TLS, err = service.NewFiles().TLS(t.Context(), files.Cert, files.Key, files.ClientCA, c.Logger)
		require.NoError(t, err)
	})
	plain := r.dial
	// with makes callers with a certificate, or without one.
	with := func(of *servicetest.Authority, usage x509.ExtKeyUsage) servicetest.Dial {
		c := &tls.Config{RootCAs: a.Pool(), ServerName: "server"}
		if of != nil {
			pair, err := tls.X509KeyPair(of.Issue(t, "client", usage, time.Hour))
			require.NoError(t, err)
			// In GetClientCertificate also one of which the server knows no authority is sent.
			c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }
		}
		return func(ctx context.Context, protocol string) (net.Conn, error) {
			nc, err := plain(ctx, protocol)
			if err != nil {
				return nil, err
			}
			config := c.Clone()
			config.NextProtos = map[string][]string{rpc: {"h2"}, web: {"h2"}}[protocol]
			conn := tls.Client(nc, config)
			if err := conn.HandshakeContext(ctx); err != nil {
				_ = nc.Close()
				return nil, err
			}
			return conn, nil
		}
	}
	good := with(a, servicetest.ForClients)
	for _, protocol := range servicetest.Protocols {
		known := servicetest.NewCaller(protocol, good, "")
		defer known.Close()
		require.NoError(t, ids(1)(known), protocol)
		for name, bad := range map[string]servicetest.Dial{
			"no certificate": with(nil, 0), "a stranger's": with(stranger, servicetest.ForClients), "a server's": with(a, servicetest.ForServers), "no TLS": plain,
		} {
			c := servicetest.NewCaller(protocol, bad, "")
			assert.Error(t, ids(1)(c), "%s, %s", name, protocol)
			c.Close()
		}
		assert.NoError(t, ids(1)(known), protocol)
	}
	r.dial = good
	found := regexp.MustCompile(`(?m)^tickflake_service_certificate_remaining_seconds\S* (\S+)$`).FindStringSubmatch(r.metrics(""))
	require.Len(t, found, 2)
	remaining, err := strconv.ParseFloat(found[1], 64)
	require.NoError(t, err)
	assert.InDelta(t, 360_000, remaining, 600)
}
