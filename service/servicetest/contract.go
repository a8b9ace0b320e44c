// Package servicetest is the contract of the service: what its protocols answer to the same
// requests, and how they refuse. The tests of package service run it in the process, and
// others run it against "tickflake serve".
//
// You need these names:
//
//   - [TestService]: the contract, for a function that starts a service.
//   - [NewCaller]: asks over a protocol.
//   - [NewAuthority]: makes certificates.
package servicetest

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

	"github.com/tickflake/tickflake/sequence"
	"github.com/tickflake/tickflake/service"
	"github.com/tickflake/tickflake/snowflake"
)

// Settings are those of a service under test. It serves all protocols, logs every line, and has
// a store of sequences.
type Settings struct {
	Layout, Strategy string         // of the generator, as text; empty: the default
	Config           service.Config // without Generator, Store, Logger, listeners and TLS
	TLS              Files          // empty: no TLS
}

// Service is a service that runs until the test ends.
type Service struct {
	Dial Dial          // connects, without TLS
	Log  func() string // what it has logged
}

// Start starts a service.
type Start = func(t *testing.T, s Settings) *Service

// Metrics returns the metrics of a service, read with a token.
func Metrics(t testing.TB, dial Dial, token string) string {
	t.Helper()
	c := NewCaller(HTTP, dial, token).(*httpCaller)
	defer c.Close()
	body, err := c.request("GET", "/metrics")
	require.NoError(t, err)
	return string(body)
}

// Refused checks that a call of a protocol was refused with a code.
func Refused(t testing.TB, protocol, code string, err error) *Refusal {
	t.Helper()
	require.IsType(t, &Refusal{}, err, "%s, %s: %v", protocol, code, err)
	r := err.(*Refusal)
	assert.Equal(t, Words[protocol][code], r.Word, "%s: %s", protocol, r.Text)
	if repeat := code == "busy" || code == "unavailable"; protocol != RESP {
		assert.Equal(t, repeat, r.After > 0, "%s, %s: repeat after %s", protocol, code, r.After)
	}
	return r
}

// each calls f with a caller of each protocol.
func each(t *testing.T, s *Service, token string, f func(t *testing.T, protocol string, c Caller)) {
	t.Helper()
	for _, protocol := range Protocols {
		c := NewCaller(protocol, s.Dial, token)
		f(t, protocol, c)
		c.Close()
	}
}

// TestService tests that all protocols serve and refuse the same requests.
func TestService(t *testing.T, start Start) {
	t.Run("requests", func(t *testing.T) { testRequests(t, start) })
	t.Run("strategy", func(t *testing.T) { testStrategy(t, start) })
	t.Run("tls", func(t *testing.T) { testTLS(t, start) })
}

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
	ask         func(Caller) error
	code        string
	text        string // in the refusal
}{
	{"no token", "", ids(1), "unauthenticated", "oken"},
	{"no token for a sequence", "", take("orders", 1), "unauthenticated", "oken"},
	{"an unknown token", stray, ids(1), "wrong_token", "the token is not known"},
	{"a client that may read the metrics only", watch, ids(1), "forbidden", "client watch may read the metrics only"},
	{"a client without IDs", numbers, ids(1), "forbidden", "client numbers may not take IDs"},
	{"another's sequence", numbers, take("tickets", 1), "forbidden", "client numbers may not use sequence tickets"},
	{"a sequence whose name begins so", numbers, take("tickets-10", 1), "forbidden", "may not use sequence tickets-10"},
	{"a prefix without its end", numbers, take("orders", 1), "forbidden", "may not use sequence orders"},
	{"a look at another's sequence", numbers, look("tickets"), "forbidden", "may not use sequence tickets"},
	{"too many IDs", shop, ids(101), "bad_input", "want 1 to 100"},
	{"no IDs", shop, ids(0), "bad_input", "asked for 0 IDs: want 1 to 100"},
	{"no numbers", shop, take("orders", 0), "bad_input", "asked for 0 numbers: want 1 to 1000"},
	{"fewer than no IDs", shop, ids(-1), "bad_input", "want 1 to 100"},
	{"too many numbers", shop, take("orders", 1001), "bad_input", "want 1 to 1000"},
	{"a bad name", shop, take("Orders", 1), "bad_input", "lower-case"},
	{"no sequence", shop, take("absent", 1), "not_found", "tickflake sequence create absent"},
	{"a look at no sequence", shop, look("absent"), "not_found", "tickflake sequence create absent"},
	{"the end of a sequence", shop, take("tickets", 4), "out_of_range", "3 numbers left"},
	{"more than a burst", slow, ids(3), "bad_input", "its limit is 2"},
	{"above a rate", slow, ids(2), "busy", "client slow is above its rate of 0.001 per second"},
}

func ids(n int64) func(Caller) error {
	return func(c Caller) error { _, err := c.IDs(n); return err }
}

func take(name string, n int64) func(Caller) error {
	return func(c Caller) error { _, err := c.Numbers(name, n); return err }
}

func look(name string) func(Caller) error {
	return func(c Caller) error { _, err := c.Granted(name); return err }
}

// Each protocol serves from one generator and one set of sequences, refuses what the others
// refuse, and counts and logs it.
func testRequests(t *testing.T, start Start) {
	s := start(t, Settings{Config: service.Config{
		MaxBatch: 100, MaxNumbers: 1000, AccessLog: 1,
		Create: []service.Create{
			{Prefix: "orders", Definition: sequence.Definition{Start: 1}},
			{Prefix: "tickets", Definition: sequence.Definition{Mode: sequence.Ordered, Start: 1, Max: 3}},
		},
		Clients: []service.Client{
			{Name: "shop", Token: shop, Sequences: []string{"*"}},
			{Name: "watch", Token: watch, NoIDs: true, Metrics: true},
			{Name: "slow", Token: slow, Rate: 0.001, Burst: 2},
			{Name: "numbers", Token: numbers, NoIDs: true, Sequences: []string{"tickets-1", "orders-*"}},
		},
	}})
	var all []snowflake.ID
	var last int64
	each(t, s, shop, func(t *testing.T, protocol string, c Caller) {
		for range 2 {
			got, err := c.IDs(50)
			require.NoError(t, err, protocol)
			require.Len(t, got, 50, protocol)
			all = append(all, got...)
			number, err := c.Numbers("orders", 3)
			require.NoError(t, err, protocol)
			require.Equal(t, last+3, number, protocol)
			last = number
		}
		highest, err := c.Granted("orders")
		require.NoError(t, err, protocol)
		require.GreaterOrEqual(t, highest, last, protocol)
	})
	require.IsIncreasing(t, all)
	for token, ask := range map[string]func(Caller) error{slow: ids(1), numbers: take("orders-1", 1)} { // two more IDs are above the rate
		c := NewCaller(GRPC, s.Dial, token)
		defer c.Close()
		require.NoError(t, ask(c))
	}

	want := map[string]map[string]int{RESP: {}, GRPC: {}, HTTP: {}}
	var shown strings.Builder
	for _, row := range requests {
		each(t, s, row.token, func(t *testing.T, protocol string, c Caller) {
			t.Run(row.name+"/"+protocol, func(t *testing.T) {
				r := Refused(t, protocol, row.code, row.ask(c))
				assert.Contains(t, r.Text, row.text)
				shown.WriteString(r.Text)
				if protocol == RESP && row.code == "unauthenticated" && row.token == "" {
					return // only AUTH counts as a request here
				}
				want[protocol][row.code]++
			})
		})
	}
	metrics := Metrics(t, s.Dial, watch)
	says := func(text, format string, args ...any) {
		pattern := fmt.Sprintf("(?m)"+format, args...)
		assert.True(t, regexp.MustCompile(pattern).MatchString(text), pattern)
	}
	for protocol, codes := range want {
		for code, n := range codes {
			says(metrics, `^tickflake_service_requests_total{.*code="%s",.*protocol="%s"} %d$`, code, protocol, n)
			says(s.Log(), `protocol"?[=:]"?%s\b.*code"?[=:]"?%s\b`, protocol, code)
		}
		n := 2 * (50 + 3)
		if protocol == GRPC {
			n += 2 // of the clients slow and numbers
		}
		says(metrics, `^tickflake_service_items_total{.*protocol="%s"} %d$`, protocol, n)
	}
	shown.WriteString(metrics)
	for _, name := range []string{"shop", "slow", "numbers"} {
		says(s.Log(), `client"?[=:]"?%s`, name)
	}
	for _, token := range []string{shop, slow, numbers, watch, stray} {
		assert.NotContains(t, s.Log()+shown.String(), token)
	}
}

// What the strategy of the generator decides reaches the caller: it rejects a request, or the
// request waits until the timeout of the service.
func testStrategy(t *testing.T, start Start) {
	const hourly = "time=41,node=10,sequence=0,tick=1h,epoch=2025-01-01"
	for strategy, want := range map[string]struct {
		code, text  string
		least, most time.Duration
	}{
		"reject": {"busy", "", time.Nanosecond, time.Hour},
		"wait":   {"unavailable", "not served within 20ms, the server's timeout of a request", time.Second, time.Second},
	} {
		t.Run(strategy, func(t *testing.T) {
			s := start(t, Settings{Layout: hourly, Strategy: strategy, Config: service.Config{Timeout: 20 * time.Millisecond}})
			each(t, s, "", func(t *testing.T, protocol string, c Caller) {
				_, err := c.IDs(2) // one hour has one
				r := Refused(t, protocol, want.code, err)
				assert.Contains(t, r.Text, want.text, protocol)
				if protocol != RESP {
					assert.True(t, want.least <= r.After && r.After <= want.most, "%s: %s", protocol, r.After)
				}
			})
		})
	}
}

// All protocols ask for TLS, and for a certificate of the client where there is an authority of
// clients. A peer without them gets nothing, and does not harm the others.
func testTLS(t *testing.T, start Start) {
	a, stranger := NewAuthority(t), NewAuthority(t)
	files := NewFiles(t)
	certificate, key := a.Issue(t, "server", ForServers, 100*time.Hour)
	files.Put(t, certificate, key, a.PEM())
	s := start(t, Settings{TLS: files})
	plain := s.Dial
	// with returns a service whose callers have a certificate, or none.
	with := func(of *Authority, usage x509.ExtKeyUsage) *Service {
		c := &tls.Config{RootCAs: a.Pool(), ServerName: "server"}
		if of != nil {
			pair, err := tls.X509KeyPair(of.Issue(t, "client", usage, time.Hour))
			require.NoError(t, err)
			// In GetClientCertificate also one of which the server knows no authority is sent.
			c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }
		}
		return &Service{Log: s.Log, Dial: func(ctx context.Context, protocol string) (net.Conn, error) {
			nc, err := plain(ctx, protocol)
			if err != nil {
				return nil, err
			}
			config := c.Clone()
			config.NextProtos = map[string][]string{GRPC: {"h2"}, HTTP: {"h2"}}[protocol]
			conn := tls.Client(nc, config)
			if err := conn.HandshakeContext(ctx); err != nil {
				_ = nc.Close()
				return nil, err
			}
			return conn, nil
		}}
	}
	good := with(a, ForClients)
	callers := make(map[string]Caller)
	for _, protocol := range Protocols {
		callers[protocol] = NewCaller(protocol, good.Dial, "")
		defer callers[protocol].Close()
		require.NoError(t, ids(1)(callers[protocol]), protocol)
	}
	for name, bad := range map[string]*Service{
		"no certificate": with(nil, 0), "a stranger's": with(stranger, ForClients), "a server's": with(a, ForServers), "no TLS": s,
	} {
		each(t, bad, "", func(t *testing.T, protocol string, c Caller) {
			assert.Error(t, ids(1)(c), "%s, %s", name, protocol)
		})
	}
	for protocol, c := range callers {
		assert.NoError(t, ids(1)(c), protocol)
	}
	found := regexp.MustCompile(`(?m)^tickflake_service_certificate_remaining_seconds\S* (\S+)$`).FindStringSubmatch(Metrics(t, good.Dial, ""))
	require.Len(t, found, 2)
	remaining, err := strconv.ParseFloat(found[1], 64)
	require.NoError(t, err)
	assert.InDelta(t, 360_000, remaining, 600)
}
