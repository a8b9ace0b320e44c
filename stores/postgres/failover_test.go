package postgres_test

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/internal/servertest"
	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/storetest"
)

// pair is a primary and its standby. Clients reach the primary by front, and the standby
// reaches it by link.
type pair struct {
	primary, standby *server
	front, link      *storetest.Proxy
}

// startPair starts a primary with the settings, and a standby with the name standby.
func startPair(t testing.TB, settings ...string) *pair {
	t.Helper()
	p := &pair{primary: start(t, settings...)}
	p.front, p.link = storetest.NewProxy(t, p.primary.addr), storetest.NewProxy(t, p.primary.addr)

	const bins = "/usr/lib/postgresql/*/bin"
	dir, port := servertest.Dir(t, "postgres"), servertest.Port(t)
	data := filepath.Join(dir, "data")
	host, from, err := net.SplitHostPort(p.primary.addr)
	require.NoError(t, err)
	servertest.Run(t, servertest.Config{
		Path: servertest.Find(t, "pg_basebackup", "postgresql", bins), Dir: dir, User: "postgres",
		Env:  []string{"PGPASSWORD=" + password},
		Args: []string{"-h", host, "-p", from, "-U", "postgres", "-D", data, "-R", "-c", "fast", "--no-sync"},
	})
	host, from, err = net.SplitHostPort(p.link.Addr())
	require.NoError(t, err)
	config := servertest.Config{
		Path: servertest.Find(t, "postgres", "postgresql", bins), Dir: dir, User: "postgres", Quit: syscall.SIGQUIT,
		Args: []string{"-D", data, "-k", dir, "-p", strconv.Itoa(port), "-c", "listen_addresses=127.0.0.1",
			"-c", "wal_retrieve_retry_interval=100ms",
			"-c", fmt.Sprintf("primary_conninfo=host=%s port=%s user=postgres password='%s' application_name=standby sslmode=disable", host, from, password)},
	}
	p.standby = &server{addr: net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), data: data}
	config.Ready = func(ctx context.Context) error {
		conn, err := pgx.Connect(ctx, p.standby.url("postgres", "postgres"))
		if err != nil {
			return err
		}
		return conn.Close(ctx)
	}
	p.standby.Process = servertest.Start(t, config)
	db := p.primary.admin(t)
	require.Eventually(t, func() bool {
		var n int
		return db.QueryRow("SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming'").Scan(&n) == nil && n == 1
	}, time.Minute, 20*time.Millisecond, "the standby does not follow")
	return p
}

// url leads to the one of the two that is the primary.
func (p *pair) url(namespace string) string {
	_, a, _ := net.SplitHostPort(p.front.Addr())
	_, b, _ := net.SplitHostPort(p.standby.addr)
	u := url.URL{Scheme: "postgres", User: url.UserPassword("postgres", password), Path: "postgres",
		RawQuery: fmt.Sprintf("host=127.0.0.1,127.0.0.1&port=%s,%s&sslmode=disable&namespace=%s", a, b, namespace)}
	return u.String()
}

// fleet starts processes on the pair.
func (p *pair) fleet(t testing.TB) *servertest.Fleet {
	t.Helper()
	return servertest.StartFleet(t, servertest.FleetConfig{Processes: 3, Window: 1500 * time.Millisecond, Timeout: time.Second,
		Open: func(ctx context.Context) (stores.Store, error) { return stores.Open(ctx, p.url("fleet")) }})
}

// promote makes the standby a primary, which waits for no other standby.
func (p *pair) promote(t testing.TB) {
	t.Helper()
	p.standby.exec(t, "SELECT pg_promote(true, 60)")
}

// isolate cuts the standby off.
func (p *pair) isolate() {
	p.link.Refuse()
	p.link.Cut()
}

// A write that the standby lacks is not acknowledged, and no Read shows it: when the client
// that wrote it has given up, when the primary was killed and started again, and when the
// standby has taken over and the primary still runs.
func TestReadWaitsForStandby(t *testing.T) {
	t.Parallel()
	p := startPair(t, "synchronous_standby_names=standby")
	old := p.primary.open(t, p.primary.addr, "readwaits")
	const key = "node/0000001"
	version, err := old.Swap(within(t), key, 0, []byte("safe"))
	require.NoError(t, err)

	p.isolate()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_, err = old.Swap(ctx, key, version, []byte("lost"))
	require.ErrorIs(t, err, context.DeadlineExceeded)
	// No time limit of a statement ends its wait for a standby.
	hasty := open(t, p.primary.url("postgres", "postgres", "namespace=readwaits", "statement_timeout=100"))
	noAnswer := func() {
		t.Helper()
		for _, s := range []stores.Store{old, hasty} {
			ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
			defer cancel()
			cell, err := s.Read(ctx, key)
			require.Error(t, err, "Read shows %q, and the standby lacks it", cell.Value)
		}
	}
	noAnswer()
	require.NoError(t, p.primary.Kill())
	require.NoError(t, p.primary.Process.Start())
	noAnswer()

	p.promote(t)
	taken := p.standby.open(t, p.standby.addr, "readwaits")
	cell, err := taken.Read(within(t), key)
	require.NoError(t, err)
	require.Equal(t, "safe", string(cell.Value))
	_, err = taken.Swap(within(t), key, cell.Version, []byte("next"))
	require.NoError(t, err)
	noAnswer()
}

// recoveryLimit is far above what a busy machine needs.
const recoveryLimit = 90 * time.Second

// A synchronous standby takes over from a primary that was killed. The clocks are stepped
// and a process crashes meanwhile.
func TestFailoverToSynchronousStandby(t *testing.T) {
	t.Parallel()
	p := startPair(t, "synchronous_standby_names=standby")
	fleet := p.fleet(t)
	fleet.Step(-time.Minute, 0)
	require.NoError(t, p.primary.Kill())
	fleet.Step(time.Minute, 1)
	fleet.Crash(2)
	p.promote(t)
	t.Logf("recovered %v after the promotion", fleet.WaitRecovered(t, 10, recoveryLimit))
	fleet.Close(t).Check(t)
}

// The primary cannot be reached and is replaced. Then it comes back without fencing: it is the
// first host of the URL, and acts as the primary. It answers nothing, because it waits for
// its standby.
func TestOldPrimaryComesBack(t *testing.T) {
	t.Parallel()
	p := startPair(t, "synchronous_standby_names=standby")
	fleet := p.fleet(t)
	for _, proxy := range []*storetest.Proxy{p.front, p.link} {
		proxy.Hold(storetest.ToServer)
		proxy.Hold(storetest.ToClient)
	}
	fleet.Step(-time.Minute, 0)
	p.promote(t)
	t.Logf("recovered %v after the promotion", fleet.WaitRecovered(t, 10, recoveryLimit))

	p.front.Resume()
	fleet.Step(time.Minute, 0)
	fleet.Crash(0)
	fleet.Crash(1)
	time.Sleep(2 * time.Second) // the fault: longer than a window
	p.link.Resume()
	require.NoError(t, p.primary.Kill())
	t.Logf("recovered %v after the fencing", fleet.WaitRecovered(t, 10, recoveryLimit))
	fleet.Close(t).Check(t)
}

// A standby that lacks the last writes takes over. The processes notice it, report it, and
// continue.
func TestFailoverToAsynchronousStandby(t *testing.T) {
	t.Parallel()
	p := startPair(t)
	fleet := p.fleet(t)
	p.isolate()
	fleet.WaitRecovered(t, 1, recoveryLimit)
	require.NoError(t, p.primary.Kill())
	fleet.Step(-time.Minute, 0)
	p.promote(t)
	t.Logf("recovered %v after the promotion", fleet.WaitRecovered(t, 10, recoveryLimit))
	report := fleet.Close(t)
	report.CheckCalls(t)
	require.NotZero(t, report.Stats.WentBack, "the processes have not noticed")
}

// While no host is the primary, a retry may succeed, also if the servers permit TLS only. By
// default, pgx tries a host without TLS when it was a standby, and that is refused.
func TestNoPrimaryIsPassing(t *testing.T) {
	t.Parallel()
	p := startPair(t)
	for _, s := range []*server{p.primary, p.standby} {
		s.permitOnlyTLS(t)
	}
	byDefault := strings.Replace(p.url("tls"), "&sslmode=disable", "", 1)
	_, err := open(t, byDefault).Read(within(t), "node/0000001")
	require.NoError(t, err)

	require.NoError(t, p.primary.Kill())
	_, err = open(t, byDefault).Read(within(t), "node/0000001")
	require.Error(t, err)
	require.Equal(t, stores.Passing, stores.KindOf(err), err)
}

func (s *server) permitOnlyTLS(t testing.TB) {
	t.Helper()
	other := httptest.NewTLSServer(nil) // which makes a certificate
	defer other.Close()
	certificate := other.TLS.Certificates[0]
	key, err := x509.MarshalPKCS8PrivateKey(certificate.PrivateKey)
	require.NoError(t, err)
	write := func(file, text string) string {
		return fmt.Sprintf("COPY (SELECT unnest(string_to_array('%s', E'\\n'))) TO PROGRAM 'umask 077; cat > %s'", text, filepath.Join(s.data, file))
	}
	s.exec(t,
		write("server.crt", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate.Certificate[0]}))),
		write("server.key", string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}))),
		write("pg_hba.conf", "hostssl all all all scram-sha-256\nhost replication all all scram-sha-256"),
		"ALTER SYSTEM SET ssl = on", "SELECT pg_reload_conf()")
}
