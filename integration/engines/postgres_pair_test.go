package engines

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/integration/servers"
	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/storetest"
)

// startPostgresPair starts a primary, and a standby whose name is standby.
func startPostgresPair(t testing.TB, synchronous bool) *Pair {
	t.Helper()
	var settings []string
	if synchronous {
		settings = []string{"-c", "synchronous_standby_names=standby"}
	}
	primary := servers.For(t, servers.PostgreSQL, settings...)
	p := &Pair{Primary: primary, Front: storetest.NewProxy(t, primary.Addr), Link: storetest.NewProxy(t, primary.Addr)}

	_, link, _ := strings.Cut(p.Link.Addr(), ":")
	p.Standby = servers.ForAll(t, servers.Wanted{Kind: servers.PostgreSQL, Copy: primary, Settings: []string{"-c", "wal_retrieve_retry_interval=100ms",
		"-c", fmt.Sprintf("primary_conninfo=host=127.0.0.1 port=%s user=postgres password='%s' application_name=standby sslmode=disable", link, primary.Password)}})[0]
	db := postgresAdmin(t, primary, "postgres")
	require.Eventually(t, func() bool {
		return Value(t, db, "SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming'") == "1"
	}, time.Minute, 20*time.Millisecond, "the standby does not follow")

	p.URL = pairURL(p) + "&sslmode=disable&namespace=fleet"
	p.Promote = func(t testing.TB) { Exec(t, postgresAdmin(t, p.Standby, "postgres"), "SELECT pg_promote(true, 60)") }
	p.Return = func(testing.TB) { p.Front.Resume() } // it is the first host of the URL
	p.Fence = func(t testing.TB) {
		p.Link.Resume()
		require.NoError(t, primary.Kill())
	}
	p.Hasty = "statement_timeout=100" // which must not end its wait for a standby
	return p
}

// pairURL leads to the one of the two that is the primary.
func pairURL(p *Pair) string {
	_, front, _ := strings.Cut(p.Front.Addr(), ":")
	u := url.URL{Scheme: "postgres", User: url.UserPassword("postgres", p.Primary.Password), Path: "postgres",
		RawQuery: fmt.Sprintf("host=127.0.0.1,127.0.0.1&port=%s,%s", front, p.Standby.Port())}
	return u.String()
}

func TestPostgresFailover(t *testing.T) {
	t.Parallel()
	testPair(t, startPostgresPair)
}

// While no host is the primary, a retry may succeed, also if the servers permit TLS only. By
// default, pgx tries a host without TLS when it was a standby, and that is refused.
func TestPostgresWithoutPrimary(t *testing.T) {
	t.Parallel()
	p := startPostgresPair(t, false)
	permitOnlyTLS(t, p.Primary)
	permitOnlyTLS(t, p.Standby)
	byDefault := pairURL(p) + "&namespace=tls"
	Works(t, Open(t, byDefault))
	require.NoError(t, p.Primary.Kill())
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_, err := stores.Open(ctx, byDefault)
	require.Error(t, err)
	require.True(t, stores.KindOf(err).Retryable(), err)
}

// What is said of each setting while a standby, a session of change data capture and a base backup follow.
func TestPostgresTopologies(t *testing.T) {
	t.Parallel()
	p := startPostgresPair(t, false)
	q := postgresTable(p.Primary)
	root := q.Database(t, "poor")
	store := Open(t, q.At("poor", "poor")) // whose user has no right to look at others
	Works(t, store)
	for name, replication := range map[string]string{"debezium": "database", "pg_basebackup": "true"} {
		conn, err := pgconn.Connect(Within(t), q.At("postgres", "postgres", "application_name="+name, "replication="+replication))
		require.NoError(t, err)
		defer func() { _ = conn.Close(context.Background()) }()
	}
	set := func(names string) {
		Exec(t, root, "ALTER SYSTEM SET synchronous_standby_names = '"+names+"'", "SELECT pg_reload_conf()")
		require.Eventually(t, func() bool { return Value(t, root, "SHOW synchronous_standby_names") == names }, time.Minute, 10*time.Millisecond)
	}
	for names, risk := range map[string]string{
		"":                           "1 of 1 standbys",
		"standby":                    "",
		"standby, debezium":          "",
		"debezium":                   "1 of 1 standbys",
		"pg_basebackup, standby":     "1 of 1 standbys",
		"ANY 1 (standby, debezium)":  "1 of 1 standbys",
		"FIRST 1 (standby, another)": "1 of 2 standbys",
		"ANY 1 (standby, another)":   "2 of 2 standbys",
		"FIRST 2 (standby, another)": "",
	} {
		t.Run(names, func(t *testing.T) {
			set(names)
			Judged(t, store, risk)
		})
	}
	set("")
	Judged(t, Open(t, q.At("postgres", "poor")), "1 of 1 standbys") // a user who may see everything
	Judged(t, Open(t, p.Standby.At(p.Standby.Addr, "namespace=standby")), "connect to the primary")
	require.NoError(t, p.Standby.Kill())
	require.Eventually(t, func() bool {
		return Value(t, root, "SELECT count(*) FROM pg_stat_replication") == "2"
	}, time.Minute, 20*time.Millisecond, "the standby is gone")
	Judged(t, store, "")
}

func permitOnlyTLS(t testing.TB, s *servers.Server) {
	t.Helper()
	other := httptest.NewTLSServer(nil) // which makes a certificate
	defer other.Close()
	certificate := other.TLS.Certificates[0]
	key, err := x509.MarshalPKCS8PrivateKey(certificate.PrivateKey)
	require.NoError(t, err)
	db := postgresAdmin(t, s, "postgres")
	write := func(file, text string) string {
		return fmt.Sprintf("COPY (SELECT unnest(string_to_array('%s', E'\\n'))) TO PROGRAM 'umask 077; cat > %s'", text, filepath.Join(s.Dir, "data", file))
	}
	Exec(t, db,
		write("server.crt", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate.Certificate[0]}))),
		write("server.key", string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}))),
		write("pg_hba.conf", "hostssl all all all scram-sha-256\nhost replication all all scram-sha-256"),
		"ALTER SYSTEM SET ssl = on", "SELECT pg_reload_conf()")
}
