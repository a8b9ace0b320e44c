package sqlstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/url"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/engine"
	"github.com/tickflake/tickflake/stores/engine/dial"
	"github.com/tickflake/tickflake/stores/storetest"
)

// opened is a Store on a server.
func opened(t *testing.T, dialect Dialect, server driver.Connector, dialer *dial.Dialer) stores.Store {
	t.Helper()
	s, err := Open(&engine.URL{Namespace: "a", URL: &url.URL{Host: "h:1"}}, dialect, server, dialer, time.Minute)
	require.NoError(t, err)
	return s
}

// silent is a connector to a server that never greets. As drivers do, it closes the
// connection when its context ends.
type silent struct {
	dial  func(context.Context) (net.Conn, error)
	ended chan error // the context's, or nil if it had not ended
}

func (s silent) Driver() driver.Driver { return nil }
func (s silent) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := s.dial(ctx)
	if err != nil {
		return nil, err
	}
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	_, err = conn.Read(make([]byte, 1))
	s.ended <- ctx.Err()
	return nil, err
}

// A connection without a greeting is kept when its caller gives up, since the server counts
// it, and closed with the Store.
func TestOpen(t *testing.T) {
	server, dialer := storetest.Serve(t, nil), new(dial.Dialer)
	ended := make(chan error, 1)
	dial := func(ctx context.Context) (net.Conn, error) { return dialer.Dial(ctx, "tcp", server) }
	s := opened(t, PostgreSQL(), silent{dial, ended}, dialer)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err := s.Read(ctx, "k")
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorContains(t, err, "postgres at h:1 table tickflake_cells: read k")
	require.NoError(t, s.Close())
	select {
	case err := <-ended:
		assert.NoError(t, err, "the end of the caller's context reached the driver")
	case <-time.After(20 * time.Second):
		t.Fatal("Close has closed no connection")
	}
}

// cancelled answers a statement with success when it is told to end it, as PostgreSQL does
// with a commit that waits for its standby.
type cancelled struct{ driver.Conn }

func (c cancelled) Connect(context.Context) (driver.Conn, error) { return c, nil }
func (c cancelled) Driver() driver.Driver                        { return nil }
func (cancelled) Close() error                                   { return nil }

func (c cancelled) ExecContext(ctx context.Context, _ string, _ []driver.NamedValue) (driver.Result, error) {
	<-ctx.Done()
	return driver.RowsAffected(1), nil
}

// A write that was cancelled is not acknowledged, whatever the server says.
func TestCancelledWriteIsNotAcknowledged(t *testing.T) {
	s := opened(t, PostgreSQL(), cancelled{}, new(dial.Dialer))
	for range 2000 { // the caller and the answer are in a race
		ctx, cancel := context.WithCancel(t.Context())
		go cancel()
		_, err := s.Swap(ctx, "k", 5, []byte("v"))
		require.ErrorIs(t, err, context.Canceled)
	}
}

// code is the error of a server, by its number or SQLSTATE.
type code string

func (c code) Error() string    { return "code " + string(c) }
func (c code) SQLState() string { return string(c) }

func number(err error) uint16 {
	c, _ := errors.AsType[code](err)
	n, _ := strconv.Atoi(string(c))
	return uint16(n)
}

// failing answers each statement with an error, and a question with a version, unless that is "".
type failing struct {
	cancelled
	err     error
	version string
}

func (f failing) Connect(context.Context) (driver.Conn, error) { return f, nil }

func (f failing) ExecContext(context.Context, string, []driver.NamedValue) (driver.Result, error) {
	return nil, f.err
}

func (f failing) QueryContext(context.Context, string, []driver.NamedValue) (driver.Rows, error) {
	if f.version == "" {
		return nil, f.err
	}
	return &one{f.version}, nil
}

// one is a row of one value.
type one struct{ value string }

func (*one) Columns() []string { return []string{"value"} }
func (*one) Close() error      { return nil }

func (o *one) Next(to []driver.Value) error {
	if o.value == "" {
		return io.EOF
	}
	to[0], o.value = o.value, ""
	return nil
}

// What a server says that starts, stops, is killed, fails over or refuses for load is passing, and the error says what helps.
func TestKinds(t *testing.T) {
	postgres, mysql := PostgreSQL(), MySQL(number)
	for _, tt := range []struct {
		failing
		dialect Dialect
		want    stores.Kind
		says    string
	}{
		{failing{err: code("57P03")}, postgres, stores.Transient, "the server starts"},
		{failing{err: code("57P01")}, postgres, stores.Transient, "ended the connection"},
		{failing{err: code("53300")}, postgres, stores.Transient, "raise max_connections"},
		{failing{err: code("55P03")}, postgres, stores.Transient, "look who holds locks"},
		{failing{err: code("40P01")}, postgres, stores.Transient, "look who writes"},
		{failing{err: code("53100")}, postgres, stores.Transient, "lacks disk space"},
		{failing{err: code("08P01")}, postgres, stores.Transient, "the proxy from the server"},
		{failing{err: code("57P04")}, postgres, stores.Permanent, "the database does not exist"},
		{failing{err: code("28P01")}, postgres, stores.Permanent, "fix the URL"},
		{failing{err: code("25006")}, postgres, stores.Permanent, "connect to the primary"},
		{failing{err: code("25006")}, postgres, stores.Permanent, "default_transaction_read_only"},
		{failing{err: code("XX000")}, postgres, stores.Unknown, "code XX000"},
		{failing{err: driver.ErrBadConn}, postgres, stores.Transient, "ended the connection"},
		{failing{err: code("1040")}, mysql, stores.Transient, "raise max_connections"},
		{failing{err: code("1203")}, mysql, stores.Transient, "the user's own limit"},
		{failing{err: code("1226")}, mysql, stores.Transient, "the user's own limit"},
		{failing{err: code("1053")}, mysql, stores.Transient, "ended the connection"},
		{failing{err: code("2013")}, mysql, stores.Transient, "ended the connection"},
		{failing{err: code("1205")}, mysql, stores.Transient, "look who writes"},
		{failing{err: code("1317")}, mysql, stores.Transient, "look who holds locks"},
		{failing{err: code("1047")}, mysql, stores.Transient, "cut off from its cluster"},
		{failing{err: code("1290")}, mysql, stores.Permanent, "connect to the primary"},
		{failing{err: code("1792")}, mysql, stores.Permanent, "transaction_read_only"},
		{failing{err: code("1")}, mysql, stores.Unknown, "code 1"},
	} {
		_, err := opened(t, tt.dialect, tt.failing, new(dial.Dialer)).Swap(t.Context(), "k", 5, nil)
		assert.Equal(t, tt.want, stores.KindOf(err), "%v", err)
		assert.ErrorContains(t, err, tt.says)
	}
}

// locked waits for a lock for too long, so many times.
type locked struct {
	cancelled
	left *int
}

func (l locked) Connect(context.Context) (driver.Conn, error) { return l, nil }

func (l locked) ExecContext(context.Context, string, []driver.NamedValue) (driver.Result, error) {
	if *l.left--; *l.left >= 0 {
		return nil, code("1205")
	}
	return driver.RowsAffected(1), nil
}

// A statement that has waited for a lock for too long is sent again.
func TestLockedRow(t *testing.T) {
	left := 3
	_, err := opened(t, MySQL(number), locked{left: &left}, new(dial.Dialer)).Swap(t.Context(), "k", 5, nil)
	require.NoError(t, err)
	require.Equal(t, -1, left)
}

// A server that only speaks the protocol is refused by its name, before it is asked for settings that it lacks.
func TestForeignServers(t *testing.T) {
	for name, version := range map[string]string{
		"CockroachDB": "CockroachDB CCL v23.1.11 (x86_64-pc-linux-gnu, built 2023/09/27)", "YugabyteDB": "PostgreSQL 11.2-YB-2.20.1.0-b0 on x86_64-pc-linux-gnu",
	} {
		_, err := stores.CheckDurability(t.Context(), opened(t, PostgreSQL(), failing{version: version}, new(dial.Dialer)))
		assert.ErrorIs(t, err, stores.Permanent)
		assert.ErrorContains(t, err, name+": the server only speaks")
	}
}

// A standby is late unless each write waits for it. The senders are + a standby and - another receiver of the log.
func TestLateStandbys(t *testing.T) {
	for _, tt := range []struct {
		names, senders string
		all, late      int
	}{
		{"", "", 0, 0},
		{"", "-debezium\n-pg_basebackup", 0, 0},
		{"", "+a\n+b", 2, 2},
		{"a", "+a", 1, 0},
		{"a", "", 1, 0}, // it is away, and writes wait
		{"a", "+a\n+b", 2, 1},
		{"a, b", "+a", 2, 1},
		{"FIRST 1 (a, b)", "+a\n+b", 2, 1},
		{"FIRST 2 (a, b)", "+a\n+b", 2, 0},
		{"first 2(A,\"b\")", "+a\n+B", 2, 0},
		{"2 (a, b, c)", "+a\n+b\n+c", 3, 1},
		{"ANY 1 (a, b)", "+a\n+b", 2, 2},
		{"any 1 (a, b)", "+b", 2, 2},
		{"ANY 2 (a, b)", "+a\n+b", 2, 0},
		{"*", "+a", 1, 0},
		{"*", "+a\n+a", 2, 2},
		{"FIRST 2 (*)", "+a\n+b", 2, 0},
		{"debezium", "+a\n-debezium", 1, 1},
		{"a, debezium", "+a\n-debezium", 1, 0},
		{"debezium, a", "+a\n-debezium", 1, 1},
		{"ANY 1 (a, debezium)", "+a\n-debezium", 1, 1},
		{"ANY 1 (*)", "+a\n-debezium", 1, 1},
		{`"x y, ""z"""`, "+x y, \"z\"", 1, 0},
	} {
		all, late := lateStandbys(tt.names, tt.senders)
		assert.Equal(t, fmt.Sprint(tt.all, tt.late), fmt.Sprint(all, late), "%q with %q", tt.names, tt.senders)
	}
}

// A replica that takes over has all writes only if each write waits for it. The names are those of MySQL from 8.0.26 on.
func TestReplication(t *testing.T) {
	const semi = "rpl_semi_sync_source_"
	safe := map[string]string{"log_bin": "ON", semi + "enabled": "ON", semi + "status": "ON", semi + "clients": "1", semi + "timeout": "18446744073709551615",
		semi + "wait_point": "AFTER_SYNC", semi + "wait_no_replica": "ON", semi + "wait_for_replica_count": "1"}
	for _, tt := range []struct {
		name, value string // of a change, unless it is ""
		replicas    int
		risk        string
	}{
		{"", "", 1, ""},
		{"", "", -1, ""},
		{"", "", 2, "2 replicas, and each write waits for 1"},
		{semi + "wait_for_replica_count", "2", 2, ""},
		{semi + "clients", "2", -1, "2 replicas, and each write waits for 1"},
		{semi + "wait_point", "AFTER_COMMIT", 1, "AFTER_COMMIT"},
		{semi + "timeout", "10000", 1, "after that many milliseconds"},
		{semi + "wait_no_replica", "OFF", 1, "wait_no_replica is OFF"},
		{semi + "status", "OFF", 1, "wait for no replica now"},
		{semi + "enabled", "OFF", 1, "waits for none"},
		{semi + "enabled", "OFF", 0, "waits for none"}, // as clients says
		{"log_bin", "OFF", 0, ""},
		{"wsrep_on", "ON", 2, ""},
		{"group_replication_group_name", "g", 2, "BEFORE_ON_PRIMARY_FAILOVER"},
		{"read_only", "ON", 0, "connect to the primary"},
		{"innodb_read_only", "1", 0, "connect to the primary"},
		{"slaves_running", "1", 1, "follows another"},
	} {
		set := maps.Clone(safe)
		set[tt.name] = tt.value
		var found stores.Durability
		replication(set, tt.replicas, &found)
		assert.Contains(t, fmt.Sprint(found.Risks), tt.risk, "%s %s", tt.name, tt.value)
		assert.Equal(t, tt.risk == "", len(found.Risks) == 0, "%v", found.Risks)
	}
	for replicas, unknown := range map[int]int{-1: 1, 0: 0} {
		var found stores.Durability
		replication(map[string]string{"log_bin": "ON"}, replicas, &found)
		assert.Empty(t, found.Risks)
		assert.Len(t, found.Unknown, unknown)
	}
}

func TestNewOfBadThings(t *testing.T) {
	db := sql.OpenDB(cancelled{})
	defer db.Close()
	for _, bad := range []struct {
		db               *sql.DB
		namespace, table string
		want             string
	}{{nil, "", "", "the pool is nil"}, {db, "A b", "", "namespace"}, {db, "", "a;b", `table "a;b": want`}} {
		_, err := New(bad.db, MySQL(nil), bad.namespace, bad.table)
		assert.ErrorContains(t, err, bad.want)
	}
}
