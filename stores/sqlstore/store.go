package sqlstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/engine"
)

// DefaultTable is the name of the table for a URL that gives no other.
const DefaultTable = "tickflake_cells"

// Store is a [stores.Store] in a table of a database. It is safe for use by several
// goroutines at once. Each operation is one statement in its own transaction and one round trip. A Read takes two with
// MySQL, MariaDB, and a PostgreSQL that has synchronous_standby_names; a Swap two if it finds another version, to see why,
// and three if the table must be made first. A Swap is sent again only if the driver says that it was not sent, or the
// server says that it was rolled back. If its error wraps [ErrAutocommit], or says that the table is missing and cannot
// be made, nothing was changed.
type Store struct {
	store
	cells   *engine.Skeleton[uint64] // the store
	db      *sql.DB
	dialect Dialect
	table   string
}

// store is embedded under a name that no user can set.
type store = stores.Store

var _ stores.Store = (*Store)(nil)

var tableName = regexp.MustCompile(`^([A-Za-z_][A-Za-z0-9_]{0,62}\.)?[A-Za-z_][A-Za-z0-9_]{0,62}$`)

func checkTable(name string) error {
	if tableName.MatchString(name) {
		return nil
	}
	if len(name) > 130 {
		name = name[:130] + "…"
	}
	return fmt.Errorf("table %q: want up to 63 ASCII letters, digits and underscores, not beginning with a digit, with the name of a schema and a dot before it or not", name)
}

// New returns a Store of the cells of a namespace, in a table of the database behind db, such as [DefaultTable]. It
// sends nothing: the store connects at its first use. The caller closes db.
//
// The name of the table has ASCII letters, digits and underscores, and does not begin with a digit; it may be a reserved
// word. A schema (MySQL: a database) and a dot may precede it. PostgreSQL takes capitals for
// small letters. Any other name, a namespace that [stores.CheckNamespace] refuses, a nil db, and a Dialect
// that [PostgreSQL] or [MySQL] did not return, are errors.
func New(db *sql.DB, dialect Dialect, namespace, table string) (*Store, error) {
	if db == nil || dialect.read == "" {
		return nil, errors.New("sqlstore.New: no database, or a Dialect that PostgreSQL or MySQL did not return")
	}
	if err := stores.CheckNamespace(namespace); err != nil {
		return nil, err
	}
	if err := checkTable(table); err != nil {
		return nil, err
	}
	s := &Store{db: db, table: table, dialect: dialect.withTable(table)}
	s.cells = &engine.Skeleton[uint64]{
		Texts: texts{s}, Namespace: namespace, Version: func(version uint64) uint64 { return version },
		At: dialect.name + " table " + table, Explain: s.explain,
		Ask: func(ctx context.Context) (stores.Durability, error) { return dialect.durability(ctx, db, s.dialect) },
	}
	s.store = s.cells
	return s, nil
}

// Schema returns the statement that makes the table, for a DBA to run. It ends in a
// semicolon and a new line, and leaves a table that exists as it is.
func (s *Store) Schema() string { return s.dialect.schema + ";\n" }

// texts are the rows of a namespace, for the skeleton. The revision of a text is its version.
type texts struct{ *Store }

func (t texts) Scan(ctx context.Context, from, to string, most int, found func(string, []byte)) (more bool, err error) {
	type row struct {
		key  string
		text []byte
	}
	rows, err := again(t.Store, func() (page []row, err error) {
		rows, err := t.db.QueryContext(ctx, t.dialect.list, t.cells.Namespace, from, to, most)
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

// Get reads a row. Its error wraps [ErrNotPrimary] if the answer may be out of date, and [ErrAutocommit] if it may come
// from an old transaction.
func (t texts) Get(ctx context.Context, key string, _ bool) (text engine.Text[uint64], err error) {
	var last uint64 // the version that the sync before has not found
	for range tries {
		text, state, err := t.row(ctx, key)
		if err == nil {
			err = stateErrors[state]
		}
		if err != nil || state != stateUnsynced || !text.Found {
			return text, err
		}
		if text.Revision == last {
			return text, fmt.Errorf("a write of its row changed nothing, so it is unknown whether the row is safe: compare table %s with Schema, and look for triggers, rules and policies on it", t.table)
		}
		last = text.Revision
		// A process that has lost the answer to a Swap relies on this cell. The server
		// can show a write before it is synced and a replica has it. It acknowledges another
		// write of the same row only after both writes are safe.
		synced, err := t.exec(ctx, t.dialect.sync, t.cells.Namespace, key, int64(text.Revision))
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
	got, err := again(t.Store, func() (r row, err error) {
		err = t.db.QueryRowContext(ctx, t.dialect.read, t.cells.Namespace, key).Scan(&r.state, &r.version, &r.value)
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
	_, state, err := t.row(ctx, key)
	switch {
	case errors.Is(err, stores.ErrDamaged), err != nil && t.dialect.guarded:
		return err
	case state == stateNoAutocommit:
		return ErrAutocommit
	}
	return stores.ErrConflict
}

// write reports whether it has written the cell. If it has not, and returns no error, the
// cell has another version, or the session commits nothing.
func (t texts) write(ctx context.Context, version uint64, cell stores.Cell) (bool, error) {
	value := string(cell.Value)
	if version != 0 {
		return t.exec(ctx, t.dialect.update, int64(cell.Version), value, t.cells.Namespace, cell.Key, int64(version))
	}
	written, err := t.exec(ctx, t.dialect.insert, t.cells.Namespace, cell.Key, int64(cell.Version), value)
	if t.dialect.says(err) == errDuplicate {
		return false, nil
	}
	return written, err
}

// exec reports whether a statement has written its row.
func (s *Store) exec(ctx context.Context, statement string, args ...any) (bool, error) {
	n, err := again(s, func() (int64, error) {
		result, err := s.db.ExecContext(ctx, statement, args...)
		if err == nil {
			err = ctx.Err() // PostgreSQL acknowledges a write whose wait for a standby was cancelled
		}
		if err != nil {
			return 0, err
		}
		return result.RowsAffected()
	})
	return n == 1, err
}

// tries bounds the loops of an operation that end when no other process is first.
const tries = 100

// again runs a statement until the server does not roll it back, at most tries times. A
// server rolls back if the default isolation is higher than read committed, in a
// deadlock, or when a lock is held for too long. A statement that was rolled back has
// written nothing.
func again[T any](s *Store, statement func() (T, error)) (got T, err error) {
	for range tries {
		if got, err = statement(); s.dialect.says(err) != errRolledBack {
			break
		}
	}
	return got, err
}

// makeTable makes the table and writes a new cell. If another process
// makes the table at the same time, some servers report an error, so the write decides
// whether there is a table.
func (t texts) makeTable(ctx context.Context, cell stores.Cell) (bool, error) {
	_, problem := t.exec(ctx, t.dialect.schema)
	written, err := t.write(ctx, 0, cell)
	if problem != nil && t.dialect.says(err) == errNoTable {
		err = fmt.Errorf("table %s is missing, and making it failed: %w; have a user with the right to make it run: %s", t.table, problem, strings.Join(strings.Fields(t.Schema()), " "))
	}
	return written, err
}

// explain gives the server's error its kind and the advice, and tells why there was no answer in time.
func (s *Store) explain(ctx context.Context, err error) error {
	pool := s.db.Stats()
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) && pool.MaxOpenConnections > 0 && pool.InUse >= pool.MaxOpenConnections {
		err = fmt.Errorf("%w: all %d connections of the database handle are in use or being made: look for locks on table %s, or raise SetMaxOpenConns", err, pool.InUse, s.table)
	}
	why := s.dialect.says(err)
	switch {
	case errors.Is(err, driver.ErrBadConn):
		why = errEnded
	case why == ErrNotPrimary && s.dialect.readOnly != "":
		source, problem := engine.Wait(ctx, func() (source string, err error) {
			return source, s.db.QueryRowContext(ctx, s.dialect.readOnly).Scan(&source)
		})
		if problem == nil {
			why = fmt.Errorf("%w (source: %s)", errReadOnly, source)
		}
	}
	if kind := stores.KindOf(why); kind == stores.Permanent || kind == stores.Transient && ctx.Err() == nil { // else the end of ctx is the cause
		err = fmt.Errorf("%w: %w", why, err)
	}
	return err
}
