package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/engine"
	"github.com/tickflake/tickflake/stores/engine/dial"
)

var tableName = regexp.MustCompile(`^([A-Za-z_][A-Za-z0-9_]{0,62}\.)?[A-Za-z_][A-Za-z0-9_]{0,62}$`)

// Open returns a Store for the URL of an engine, whose own parameter table is the name of the table, or tickflake_cells without
// it. The name has ASCII letters, digits and underscores, and does not begin with a digit; it may be a reserved word. A schema
// (MySQL: a database) and a dot may precede it. PostgreSQL takes capitals for small letters.
//
// There are up to [dial.MaxConns] connections, of which one is kept for the given time without use. connector must connect with
// dialer. Closing the Store closes both. Open sends nothing. The error is a [*stores.URLError].
//
// Each operation is one statement in its own transaction and one round trip. A Read takes two with
// MySQL, MariaDB, and a PostgreSQL that has synchronous_standby_names; a Swap two if it finds another version, to see why,
// and three if the table must be made first. A Swap is sent again only if the driver says that it was not sent, or the
// server says that it was rolled back. If its error says that the table is missing and cannot be made, nothing was changed.
func Open(u *engine.URL, dialect Dialect, connector driver.Connector, dialer *dial.Dialer, idle time.Duration) (stores.Store, error) {
	table, ok := u.Options["table"]
	if !ok {
		table = defaultTable
	}
	if err := checkTable(table); err != nil {
		return nil, u.Refuse("the parameter table cannot be used", err)
	}
	db := sql.OpenDB(patient{connector})
	db.SetMaxOpenConns(dial.MaxConns)
	db.SetMaxIdleConns(1) // so that a thousand processes do not keep thousands of connections
	db.SetConnMaxIdleTime(idle)
	s := newStore(texts{db: db, dialect: dialect.withTable(table), namespace: u.Namespace, table: table})
	if u.URL.Host != "" {
		s.At = dialect.name + " at " + u.URL.Host + " table " + table
	}
	s.Conns, s.Done = dialer, db.Close
	return s, nil
}

// New returns a Store for a pool of the caller's, who closes it after the Store. namespace and table are as in the URLs; an empty
// one is the default. New sends nothing. Operations are as with [Open], but each statement of MySQL and MariaDB is in a
// transaction that the Store begins, since a session of the pool may have autocommit off: three round trips.
func New(db *sql.DB, dialect Dialect, namespace, table string) (stores.Store, error) {
	namespace, table = cmp.Or(namespace, stores.DefaultNamespace), cmp.Or(table, defaultTable)
	if db == nil {
		return nil, errors.New("the pool is nil")
	}
	if err := cmp.Or(stores.CheckNamespace(namespace), checkTable(table)); err != nil {
		return nil, err
	}
	return newStore(texts{db: db, dialect: dialect.withTable(table), namespace: namespace, table: table, begins: dialect.begins}), nil
}

const defaultTable = "tickflake_cells"

func checkTable(name string) error {
	if !tableName.MatchString(name) {
		return fmt.Errorf("table %.130q: want up to 63 ASCII letters, digits and underscores, not beginning with a digit, with the name of a schema and a dot before it or not", name)
	}
	return nil
}

func newStore(t texts) *engine.Skeleton[uint64] {
	return &engine.Skeleton[uint64]{
		Texts: t, Namespace: t.namespace, Version: func(version uint64) uint64 { return version },
		At: t.dialect.name + " table " + t.table, Explain: t.explain,
		Ask: func(ctx context.Context) (stores.Durability, error) {
			return t.dialect.durability(ctx, t.db, t.dialect)
		},
	}
}

// patient is a connector that does not stop when a context ends: a server also counts a connection
// before its login.
type patient struct{ driver.Connector }

func (p patient) Connect(ctx context.Context) (driver.Conn, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), dial.MaxSilence)
	defer cancel()
	return p.Connector.Connect(ctx)
}

// texts are the rows of a namespace, for the skeleton. The revision of a text is its version.
type texts struct {
	db        *sql.DB
	dialect   Dialect
	namespace string
	table     string
	begins    bool // a transaction for each statement
}

func (t texts) Scan(ctx context.Context, from, to string, most int, found func(string, []byte)) (more bool, err error) {
	type row struct {
		key  string
		text []byte
	}
	rows, err := again(ctx, t, func(db querier) (page []row, err error) {
		rows, err := db.QueryContext(ctx, t.dialect.list, t.namespace, from, to, most)
		if err != nil {
			return nil, err
		}
		defer rows.Close()
		for rows.Next() {
			var key string
			var version int64
			var value []byte
			if err := rows.Scan(&key, &version, &value); err != nil {
				return nil, err
			}
			page = append(page, row{key, engine.FormatCell(uint64(version), value)})
		}
		return page, rows.Err()
	})
	if t.dialect.says(err) == errNoTable {
		return false, nil // the first Swap makes it
	}
	if err != nil {
		return false, err
	}
	for _, r := range rows {
		found(r.key, r.text)
	}
	return len(rows) == most, nil
}

// Get reads a row. Its error wraps errNotPrimary if the answer may be out of date.
func (t texts) Get(ctx context.Context, key string, _ bool) (text engine.Text[uint64], err error) {
	var last uint64 // the version that the sync before has not found
	for range tries {
		text, state, err := t.row(ctx, key)
		if err == nil && state == stateNotPrimary {
			err = errNotPrimary
		}
		if err != nil || state != stateUnsynced || !text.Found {
			return text, err
		}
		if text.Revision == last {
			return text, fmt.Errorf("a write of its row changed nothing, so it is unknown whether the row is safe: look for triggers, rules and policies on table %s, and compare it with one that tickflake has made", t.table)
		}
		last = text.Revision
		// A process that has lost the answer to a Swap relies on this cell. The server
		// can show a write before it is synced and a replica has it. It acknowledges another
		// write of the same row only after both writes are safe.
		synced, err := t.exec(ctx, t.dialect.sync, t.namespace, key, int64(text.Revision))
		if err != nil || synced {
			return text, err
		}
		// There was another write in between.
	}
	return text, fmt.Errorf("others wrote it during each of %d attempts", tries)
}

// row reads a row, and the state of the session.
func (t texts) row(ctx context.Context, key string) (text engine.Text[uint64], state string, err error) {
	type row struct {
		state   string
		version sql.Null[int64]
		value   []byte
	}
	got, err := again(ctx, t, func(db querier) (r row, err error) {
		err = db.QueryRowContext(ctx, t.dialect.read, t.namespace, key).Scan(&r.state, &r.version, &r.value)
		return r, err
	})
	if t.dialect.says(err) == errNoTable {
		// Without a table there is no cell, unless this is a replica that lacks the table so
		// far.
		got = row{}
		err = t.db.QueryRowContext(ctx, t.dialect.state).Scan(&got.state)
	}
	if err == nil && got.version.Valid {
		version := uint64(got.version.V)
		text = engine.Text[uint64]{Bytes: engine.FormatCell(version, got.value), Found: true, Revision: version}
		_, err = engine.ParseCell(key, text.Bytes)
	}
	return text, got.state, err
}

// Put writes a row, and makes the table if there is none.
func (t texts) Put(ctx context.Context, key string, version uint64, text []byte) error {
	cell, err := engine.ParseCell(key, text)
	if err != nil {
		return err
	}
	written, err := t.write(ctx, version, cell)
	if t.dialect.says(err) == errNoTable {
		if version != 0 {
			return stores.ErrConflict
		}
		written, err = t.makeTable(ctx, cell)
	}
	if err != nil || written {
		return err
	}
	if _, _, err = t.row(ctx, key); errors.Is(err, stores.ErrDamaged) {
		return err
	}
	return stores.ErrConflict
}

// write reports whether it has written the cell. If it has not, and returns no error, the
// cell has another version.
func (t texts) write(ctx context.Context, version uint64, cell stores.Cell) (bool, error) {
	value := string(cell.Value)
	if version != 0 {
		return t.exec(ctx, t.dialect.update, int64(cell.Version), value, t.namespace, cell.Key, int64(version))
	}
	written, err := t.exec(ctx, t.dialect.insert, t.namespace, cell.Key, int64(cell.Version), value)
	if t.dialect.says(err) == errDuplicate {
		return false, nil
	}
	return written, err
}

// exec reports whether a statement has written its row.
func (t texts) exec(ctx context.Context, statement string, args ...any) (bool, error) {
	n, err := again(ctx, t, func(db querier) (int64, error) {
		result, err := db.ExecContext(ctx, statement, args...)
		if err != nil {
			return 0, err
		}
		return result.RowsAffected()
	})
	if err == nil {
		err = ctx.Err() // PostgreSQL acknowledges a write whose wait for a standby was cancelled
	}
	return n == 1 && err == nil, err
}

// tries bounds the loops of an operation that end when no other process is first.
const tries = 100

// again runs a statement until the server does not roll it back, at most tries times. A
// server rolls back if the default isolation is higher than read committed, in a
// deadlock, or when a lock is held for too long. A statement that was rolled back has
// written nothing.
func again[T any](ctx context.Context, t texts, statement func(querier) (T, error)) (got T, err error) {
	for range tries {
		if got, err = within(ctx, t, statement); t.dialect.says(err) != errRolledBack {
			break
		}
	}
	return got, err
}

// querier is a [*sql.DB] or a [*sql.Tx].
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// within runs a statement in a transaction of its own, which the server makes or, if there may be no autocommit, this.
func within[T any](ctx context.Context, t texts, statement func(querier) (T, error)) (got T, err error) {
	if !t.begins {
		return statement(t.db)
	}
	tx, err := t.db.BeginTx(ctx, nil)
	if err != nil {
		return got, err
	}
	if got, err = statement(tx); err != nil {
		_ = tx.Rollback() // or the driver closes the connection
		return got, err
	}
	return got, tx.Commit()
}

// makeTable makes the table and writes a new cell. If another process
// makes the table at the same time, some servers report an error, so the write decides
// whether there is a table.
func (t texts) makeTable(ctx context.Context, cell stores.Cell) (bool, error) {
	_, problem := t.exec(ctx, t.dialect.schema)
	written, err := t.write(ctx, 0, cell)
	if problem != nil && t.dialect.says(err) == errNoTable {
		err = fmt.Errorf("table %s is missing, and making it failed: %w; have a user with the right to make it run: %s", t.table, problem, strings.Join(strings.Fields(t.dialect.schema), " "))
	}
	return written, err
}

// explain gives the server's error its kind and the advice, and tells why there was no answer in time.
func (t texts) explain(ctx context.Context, err error) error {
	if used := t.db.Stats().InUse; ctx.Err() != nil && errors.Is(err, ctx.Err()) && used == dial.MaxConns {
		err = fmt.Errorf("%w: all %d connections are in use or being made: look for locks on table %s", err, used, t.table)
	}
	why := t.dialect.says(err)
	if errors.Is(err, driver.ErrBadConn) {
		why = errEnded
	}
	if kind := stores.KindOf(why); kind == stores.Permanent || kind == stores.Transient && ctx.Err() == nil { // else the end of ctx is the cause
		err = fmt.Errorf("%w: %w", why, err)
	}
	return err
}

// Dialect has the differences between the servers. [PostgreSQL] and [MySQL] return one.
type Dialect struct {
	name  string                   // in errors
	quote func(name string) string // as an identifier, which may be a reserved word
	table string                   // quoted

	// The statements. TABLE_NAME stands for the table, and the arguments are
	// in the same order in all dialects.
	schema string
	list   string // namespace, from, to, limit
	read   string // namespace, cell; returns the session's state, version, value, the latter two NULL for no cell
	insert string // namespace, cell, version, value
	update string // version, value, namespace, cell, old version
	state  string // the session's state alone
	sync   string // namespace, cell, version; syncs the cell, if it still has that version

	begins bool // a session that the Store has not made may commit nothing by itself

	says func(error) error // what the server's error stands for, of those below, or nil

	// durability asks the server for its settings, in one to four round trips.
	durability func(ctx context.Context, db *sql.DB, d Dialect) (stores.Durability, error)
}

func (d Dialect) withTable(table string) Dialect {
	parts := strings.Split(table, ".")
	for i, part := range parts {
		parts[i] = d.quote(part)
	}
	d.table = strings.Join(parts, ".")
	for _, s := range []*string{&d.schema, &d.list, &d.read, &d.insert, &d.update, &d.sync} {
		*s = strings.ReplaceAll(*s, "TABLE_NAME", d.table)
	}
	return d
}

var (
	errNotPrimary = stores.Permanent.New("server is a standby or read-only, and its answer may be out of date: connect to the primary")

	errDenied  = stores.Permanent.New("the server refuses the user, the password or a right: fix the URL, or grant the rights that the engine's package doc lists")
	errOther   = stores.Permanent.New("the database does not exist, the table is another program's, with other columns, or the server does not take a parameter of the URL: fix the URL")
	errKeyless = stores.Permanent.New("no key of namespace and cell is unique in the table, so IDs would be issued twice")

	errReadOnly = stores.Permanent.New("the server is a standby, or transactions of this session are read-only by default (default_transaction_read_only; in MySQL transaction_read_only or tx_read_only): connect to the primary, or switch that off where it was set")
	errForeign  = stores.Permanent.New("the server only speaks the protocol of PostgreSQL, and is not supported: use PostgreSQL, or another store")

	// The server starts, stops, is killed, fails over, or refuses for load.
	errStarts    = stores.Transient.New("the server starts, stops, or is no primary yet: wait, and look at its log if that lasts")
	errEnded     = stores.Transient.New("the server or a proxy has ended the connection, as in a stop, a restart or a failover: look at its log if that lasts")
	errFull      = stores.Transient.New("the server takes no more connections: raise max_connections, or the user's own limit, or let fewer clients connect")
	errGivenUp   = stores.Transient.New("the server has given the statement up, by a time-out for statements or locks, or for an administrator: look who holds locks on the table")
	errExhausted = stores.Transient.New("the server lacks disk space, memory or another resource: free some, or raise its limit")
	errNoServer  = stores.Transient.New("the server is cut off from its cluster, or the proxy from the server: look at both")

	// The store goes on after these.
	errNoTable    = errors.New("the table does not exist")
	errDuplicate  = errors.New("there is such a row")
	errRolledBack = stores.Transient.New("the server preferred other transactions, and nothing was written: look who writes to the table")
)

// The states of the session that a statement runs in, unless all is well.
const (
	stateNotPrimary = "not primary"
	stateUnsynced   = "unsynced" // a write may show before it is safe
)
