package service_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	tickflakev1 "github.com/tickflake/tickflake/client/api/tickflake/v1"
	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/internal/wire"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/sequence"
	"github.com/tickflake/tickflake/service"
	"github.com/tickflake/tickflake/service/servicetest"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/stores/storetest"
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
	{"fewer than no numbers", shop, take("orders", -1), wire.BadInput, "asked for -1 numbers: want 1 to 1000"},
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
		c.MaxBatch, c.MaxNumbers = 100, 1000
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
		says(metrics, `^tickflake_service_client_items_total{tickflake_service_client="%s"} [1-9]`, name)
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
	code, _ := r.get(probes, "/v1/openapi.yaml")
	assert.Equal(t, 404, code, "probes have no TLS, and nothing else")
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
}

// Where the fleet was moved to another store, no answer of any protocol names that, and the log does; and the server is not alive
// once its grant is used up. Package issuer has the table of errors.
func TestOnlyTheLogNamesTheStore(t *testing.T) {
	t.Parallel()
	const secret = "db-7.internal" // as addresses and users are in real ones
	bubble(t, func(t *testing.T) {
		store := storetest.NewMemory()
		keeper, err := lease.Claim(t.Context(), store, lease.WithLogger(slog.New(slog.DiscardHandler)))
		require.NoError(t, err)
		gen, err := generator.New(generator.WithLease(keeper))
		require.NoError(t, err)
		t.Cleanup(func() { _ = gen.Close() }) // it cannot release its number
		r := start(t, pipe, func(c *service.Config) { c.Generator = gen })
		_, err = lease.EndFleet(t.Context(), store, 0, 1023, "etcd://"+secret)
		require.NoError(t, err)
		time.Sleep(10 * time.Minute) // the grant is used up
		shown := fmt.Sprint(r.Ready())
		for _, protocol := range servicetest.Protocols {
			shown += fmt.Sprint(ids(1)(r.caller(protocol, "")))
		}
		for path, code := range map[string]int{"/livez": 503, "/readyz": 503, "/metrics": 200} {
			got, body := r.get(web, path)
			assert.Equal(t, code, got, path)
			shown += body
		}
		text, err := io.ReadAll(r.connect(resp, command("INFO")+command("GET", "orders")+command("QUIT")))
		require.NoError(t, err)
		health, err := grpc_health_v1.NewHealthClient(r.rpc()).Check(t.Context(), &grpc_health_v1.HealthCheckRequest{})
		require.NoError(t, err)
		assert.Equal(t, grpc_health_v1.HealthCheckResponse_NOT_SERVING, health.Status)
		assert.NotContains(t, shown+string(text), secret)
		assert.Contains(t, r.log(), secret)
	})
}

// New clients are served, and one that is gone is refused by every protocol and loses its connections in
// time, also those on which it sends nothing, while those of the others go on. What cannot be used
// changes nothing.
func TestReloadClients(t *testing.T) {
	t.Parallel()
	const stays, goes, comes, read = "a-token-that-stays", "a-token-that-goes", "a-token-that-comes", 10 * time.Second
	shares := service.Client{Name: "shares", Tokens: []string{"a-token-that-shares", "its-other-token-0123"}, Rate: 1e-9, Burst: 3}
	bubble(t, func(t *testing.T) {
		r := start(t, pipe, func(c *service.Config) {
			c.Clients, c.ReadTimeout = []service.Client{{Name: "stays", Tokens: []string{stays}}, {Name: "goes", Tokens: []string{goes}}, shares}, read
		})
		callers := make(map[string]map[string]servicetest.Caller)
		served := func(protocol, token string) error { _, err := callers[protocol][token].IDs(t.Context(), 1); return err }
		for _, protocol := range servicetest.Protocols {
			callers[protocol] = make(map[string]servicetest.Caller)
			for _, token := range []string{stays, goes, comes} {
				callers[protocol][token] = r.caller(protocol, token)
				assert.Equal(t, token != comes, served(protocol, token) == nil, protocol)
			}
		}
		both := r.rpc() // a proxy's connection
		moves := func(token string) error {
			_, err := tickflakev1.NewTickflakeServiceClient(both).Take(metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer "+token), &tickflakev1.TakeRequest{})
			return err
		}
		require.NoError(t, moves(shares.Tokens[0]))
		require.NoError(t, moves(goes))
		idle := r.connect(resp, command("AUTH", stays)+command("ID")+command("AUTH", goes))
		var answers strings.Builder
		ended := make(chan time.Time)
		go func() { _, _ = io.Copy(&answers, idle); ended <- time.Now() }()
		synctest.Wait()

		clients := []service.Client{{Name: "comes", Tokens: []string{comes}}, {Name: "stays", Tokens: []string{stays}, NoIDs: true, Metrics: true, Sequences: []string{"orders"}}, shares}
		clients[2].Tokens = []string{shares.Tokens[1], "its-third-token-0123"}
		began := time.Now()
		require.NoError(t, r.ReloadClients(func() ([]service.Client, error) { return clients, nil }))
		for _, protocol := range servicetest.Protocols {
			refused(t, protocol, map[bool]wire.Code{true: wire.Unauthenticated, false: wire.WrongToken}[protocol == resp], served(protocol, goes))
			refused(t, protocol, wire.Forbidden, served(protocol, stays))
			require.NoError(t, func() error { _, err := r.caller(protocol, comes).IDs(t.Context(), 1); return err }())
		}
		assert.Equal(t, codes.Unauthenticated, status.Code(moves(goes)))
		require.NoError(t, moves(shares.Tokens[1]))
		_, err := io.WriteString(idle, command("PING"))
		require.NoError(t, err)
		assert.Equal(t, read, (<-ended).Sub(began))
		assert.Contains(t, answers.String(), "\n-NOAUTH ", "any command")
		for _, protocol := range servicetest.Protocols {
			_, err := callers[protocol][stays].Numbers(t.Context(), "orders", 1)
			assert.NoError(t, err, "%s: its connection stays", protocol)
		}
		require.NoError(t, moves("its-third-token-0123"))
		assert.Equal(t, codes.ResourceExhausted, status.Code(moves(shares.Tokens[1])), "its limit stays, with what it has spent, by all tokens")

		away := errors.New("the file is away")
		for want, read := range map[string]func() ([]service.Client, error){
			away.Error(): func() ([]service.Client, error) { return clients[:1], away },
			"there are 0 clients, and at the start there were 3": func() ([]service.Client, error) { return nil, nil },
			`Config.Clients[0]: client "short": its token has 5 bytes`: func() ([]service.Client, error) {
				return []service.Client{{Name: "short", Tokens: []string{"short"}}}, nil
			},
		} {
			require.ErrorContains(t, r.ReloadClients(read), want)
			assert.Len(t, lines(r.log(), strings.ReplaceAll(want, `"`, `\"`)), 1)
			assert.Contains(t, r.metrics(stays), "\ntickflake_config_last_reload_successful 0\n")
			require.NoError(t, r.ReloadClients(func() ([]service.Client, error) { return clients, nil }))
		}
		text := r.metrics(stays)
		assert.Contains(t, text, "\ntickflake_config_last_reload_successful 1\n")
		assert.Contains(t, text, `tickflake_service_client_items_total{tickflake_service_client="stays"} 7`)
		assert.Contains(t, text, `tickflake_service_client_items_total{tickflake_service_client="shares"} 3`)
	})
}

// What each call of gRPC answers.
func TestAnswersOfRPC(t *testing.T) {
	t.Parallel()
	layout, err := snowflake.ParseLayout("time=40,sequence=12,node=8,tick=10ms,epoch=2020-01-01")
	require.NoError(t, err)
	r := start(t, listen, func(c *service.Config) {
		c.Generator, c.Strategy, c.UseWithin = newGenerator(t, generator.WithLayout(layout)), "wait 1s", 1500*time.Millisecond
	})
	require.NoError(t, sequence.Create(t.Context(), r.store, "tickets", sequence.Definition{Mode: sequence.Ordered, Start: 100, Stride: sequence.Every(10, 3), Max: 10_000}))
	c := tickflakev1.NewTickflakeServiceClient(r.rpc())
	equal := func(want, got proto.Message, err error) {
		t.Helper()
		require.NoError(t, err)
		assert.True(t, proto.Equal(want, got), "%v", got)
	}
	use := durationpb.New(1500 * time.Millisecond)
	described, err := c.Describe(t.Context(), &tickflakev1.DescribeRequest{})
	equal(&tickflakev1.DescribeResponse{
		Layout: layout.String(), Epoch: timestamppb.New(layout.Epoch), Tick: durationpb.New(layout.Tick), TimeBits: 40, NodeBits: 8, SequenceBits: 12, NodeLast: true,
		Node: 1, Strategy: "wait 1s", UseWithin: use, MaxBatch: 10_000, MaxNumbers: 1_000_000,
	}, described, err)
	taken, err := c.Take(t.Context(), &tickflakev1.TakeRequest{})
	require.NoError(t, err)
	run := &tickflakev1.Run{First: taken.Runs[0].First, Count: 1, Stride: 256, UseWithin: use}
	equal(&tickflakev1.TakeResponse{Runs: []*tickflakev1.Run{run}, LayoutFingerprint: wire.Fingerprint(layout.String())}, taken, err)
	number, err := c.Number(t.Context(), &tickflakev1.NumberRequest{Name: "orders"})
	equal(&tickflakev1.NumberResponse{First: 1, Last: 1, Count: 1, Stride: 1, Mode: tickflakev1.Mode_MODE_SEGMENTED}, number, err)
	number, err = c.Number(t.Context(), &tickflakev1.NumberRequest{Name: "tickets", Count: new(int64(2))})
	equal(&tickflakev1.NumberResponse{First: 103, Last: 113, Count: 2, Stride: 10, Mode: tickflakev1.Mode_MODE_ORDERED}, number, err)
	_, err = c.Take(t.Context(), &tickflakev1.TakeRequest{After: math.MaxInt64})
	assert.Equal(t, codes.InvalidArgument, status.Code(err), "an ID that the layout does not have")
}

// The metrics tell of connections, of the generator, and of some sequences. TestRequests looks at those of requests.
func TestMetrics(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		r := start(t, pipe, func(c *service.Config) {
			c.MaxObserved = 1
			c.StoreName = "etcd://a:2379"
		})
		redis := r.caller(resp, "")
		for i, name := range []string{"orders", "orders2", "orders3"} {
			_, err := redis.Numbers(t.Context(), name, int64(5+i))
			require.NoError(t, err)
		}
		_, err := r.caller(rpc, "").IDs(t.Context(), 10)
		require.NoError(t, err)
		text := r.metrics("")
		for _, want := range []string{
			`service_items_total{.*protocol="resp"} 18`,
			`service_connections{.*protocol="resp"} 1`,
			`service_connections_opened_total{.*protocol="resp"} 1`,
			`service_connections_refused_total{.*protocol="resp"} 0`,
			`service_connections_limit{.*protocol="resp"} 16384`,
			`service_sequences 3`,
			`service_sequences_limit 10000`,
			`service_ready 1`,
			`generator_node 1`,
			`sequence_issued_total{.*tickflake_sequence="orders"} 5`,
			`sequence_issued_total{.*tickflake_sequence="\(others\)"} 13`,
		} {
			assert.True(t, regexp.MustCompile("(?m)^tickflake_"+want+"$").MatchString(text), want)
		}
		r.get(web, "/v1/ids/x")
		text = r.metrics("")
		for _, want := range []string{`code="ok",tickflake_service_protocol="grpc"} 1`, `code="ok",tickflake_service_protocol="http"} 1`, `code="bad_input",tickflake_service_protocol="http"} 1`} {
			assert.Contains(t, text, "tickflake_service_duration_seconds_count{tickflake_service_"+want)
		}
		assert.Contains(t, text, "go_goroutines ")
		assert.Contains(t, text, `target_info{service_name="tickflake",tickflake_store="etcd://a:2379"} 1`)
		assert.NotContains(t, text, "otel_scope_")
	})
}

// The README lists the metrics that there are, and the dashboard and the alerts use these and no
// others.
func TestMetricsAreDocumented(t *testing.T) {
	t.Parallel()
	read := func(path, pattern string) (found []string) {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		for _, match := range regexp.MustCompile(pattern).FindAllStringSubmatch(string(text), -1) {
			found = append(found, strings.TrimSuffix(match[1], "_bucket"))
		}
		slices.Sort(found)
		return slices.Compact(found)
	}
	r := start(t, listen, func(c *service.Config) {
		c.Clients = []service.Client{{Name: "shop", Tokens: []string{shop}, Metrics: true}}
	})
	r.metrics(shop) // the first request, of which the second has a duration
	var there []string
	for _, match := range regexp.MustCompile(`(?m)^# TYPE (tickflake_(?:service|config)_\w+)`).FindAllStringSubmatch(r.metrics(shop), -1) {
		there = append(there, match[1])
	}
	shown := read("README.md", "(?m)^\\| `[a-z_.]+` \\| `([a-z_]+)`")
	assert.ElementsMatch(t, there, shown)
	shown = append(shown, "tickflake_service_client", "tickflake_service_code", "tickflake_service_protocol") // the attributes
	used := append(read("../oteltickflake/dashboard/service_alerts.yml", `\b((?:tickflake_service|tickflake_config)_[a-z_]+)`), read("../oteltickflake/dashboard/service.json", `\b((?:tickflake_service|tickflake_config)_[a-z_]+)`)...)
	slices.Sort(used)
	assert.ElementsMatch(t, shown, slices.Compact(used))
}
