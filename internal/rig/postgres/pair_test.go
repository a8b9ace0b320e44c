package postgres

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/internal/rig/enginetest"
	"github.com/tickflake/tickflake/internal/rig/server"
	"github.com/tickflake/tickflake/internal/rig/servers"
	"github.com/tickflake/tickflake/internal/rig/servertest"
	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/storetest"
)

// startPair starts a primary, and a standby whose name is standby.
func startPair(t testing.TB, synchronous bool) *enginetest.Pair {
	t.Helper()
	var settings []string
	if synchronous {
		settings = []string{"-c", "synchronous_standby_names=standby"}
	}
	primary := servers.For(t, servers.PostgreSQL, settings...)
	p := &enginetest.Pair{Primary: primary, Front: storetest.NewProxy(t, primary.Addr), Link: storetest.NewProxy(t, primary.Addr)}

	const bins = "/usr/lib/postgresql/*/bin"
	basebackup, err := server.Find("pg_basebackup", "postgresql", bins)
	servertest.Need(t, err)
	postgres, err := server.Find("postgres", "postgresql", bins)
	servertest.Need(t, err)
	dir, err := server.Dir("", "postgres")
	require.NoError(t, err)
	standby := *primary
	standby.Dir, standby.Addr = dir, fmt.Sprint("127.0.0.1:", servers.Port(t))
	standby.URL = primary.At(standby.Addr)
	p.Standby = &standby
	data := filepath.Join(dir, "data")
	_, err = server.Run(t.Context(), server.Config{Path: basebackup, Dir: dir, User: "postgres", Env: []string{"PGPASSWORD=" + primary.Password},
		Args: []string{"-h", "127.0.0.1", "-p", primary.Port(), "-U", "postgres", "-D", data, "-R", "-c", "fast", "--no-sync"}})
	require.NoError(t, err)
	_, link, _ := strings.Cut(p.Link.Addr(), ":")
	standby.Process, err = server.Start(t.Context(), server.Config{Path: postgres, Dir: dir, User: "postgres", Quit: syscall.SIGQUIT,
		Args: []string{"-D", data, "-k", dir, "-p", standby.Port(), "-c", "listen_addresses=127.0.0.1", "-c", "wal_retrieve_retry_interval=100ms",
			"-c", fmt.Sprintf("primary_conninfo=host=127.0.0.1 port=%s user=postgres password='%s' application_name=standby sslmode=disable", link, primary.Password)},
		Ready: func(ctx context.Context) error {
			conn, err := pgx.Connect(ctx, standby.URL)
			if err != nil {
				return err
			}
			return conn.Close(ctx)
		}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, standby.Close()) })
	db := admin(t, primary, "postgres")
	require.Eventually(t, func() bool {
		return enginetest.Value(t, db, "SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming'") == "1"
	}, time.Minute, 20*time.Millisecond, "the standby does not follow")

	p.URL = pairURL(p) + "&sslmode=disable&namespace=fleet"
	p.Promote = func(t testing.TB) { enginetest.Exec(t, admin(t, &standby, "postgres"), "SELECT pg_promote(true, 60)") }
	p.Return = func(testing.TB) { p.Front.Resume() } // it is the first host of the URL
	p.Fence = func(t testing.TB) {
		p.Link.Resume()
		require.NoError(t, primary.Kill())
	}
	p.Hasty = "statement_timeout=100" // which must not end its wait for a standby
	return p
}

// pairURL leads to the one of the two that is the primary.
func pairURL(p *enginetest.Pair) string {
	_, front, _ := strings.Cut(p.Front.Addr(), ":")
	u := url.URL{Scheme: "postgres", User: url.UserPassword("postgres", p.Primary.Password), Path: "postgres",
		RawQuery: fmt.Sprintf("host=127.0.0.1,127.0.0.1&port=%s,%s", front, p.Standby.Port())}
	return u.String()
}

func TestFailover(t *testing.T) {
	t.Parallel()
	enginetest.TestPair(t, startPair)
}

// While no host is the primary, a retry may succeed, also if the servers permit TLS only. By
// default, pgx tries a host without TLS when it was a standby, and that is refused.
func TestNoPrimaryIsPassing(t *testing.T) {
	t.Parallel()
	p := startPair(t, false)
	permitOnlyTLS(t, p.Primary)
	permitOnlyTLS(t, p.Standby)
	byDefault := pairURL(p) + "&namespace=tls"
	enginetest.Works(t, enginetest.Open(t, byDefault))
	require.NoError(t, p.Primary.Kill())
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_, err := stores.Open(ctx, byDefault)
	require.Error(t, err)
	require.True(t, stores.KindOf(err).Retryable(), err)
}

func permitOnlyTLS(t testing.TB, s *servers.Server) {
	t.Helper()
	other := httptest.NewTLSServer(nil) // which makes a certificate
	defer other.Close()
	certificate := other.TLS.Certificates[0]
	key, err := x509.MarshalPKCS8PrivateKey(certificate.PrivateKey)
	require.NoError(t, err)
	db := admin(t, s, "postgres")
	write := func(file, text string) string {
		return fmt.Sprintf("COPY (SELECT unnest(string_to_array('%s', E'\\n'))) TO PROGRAM 'umask 077; cat > %s'", text, filepath.Join(s.Dir, "data", file))
	}
	enginetest.Exec(t, db,
		write("server.crt", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate.Certificate[0]}))),
		write("server.key", string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}))),
		write("pg_hba.conf", "hostssl all all all scram-sha-256\nhost replication all all scram-sha-256"),
		"ALTER SYSTEM SET ssl = on", "SELECT pg_reload_conf()")
}
