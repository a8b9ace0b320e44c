package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/engine"
)

// DefaultTable is the name of the table if [WithTable] gives no other.
const DefaultTable = "tickflake_cells"

// Store is a [stores.Store] in a table of a database. It is safe for use by several
// goroutines at once.
type Store struct {
	db        *sql.DB
	running   chan struct{} // see run
	sent      atomic.Int32  // see run
	owned     bool          // Close closes db
	dialect   Dialect
	namespace string
	table     string
}

var _ stores.DurabilityChecker = (*Store)(nil)

// Option is an option of [New].
type Option func(*Store) error

// WithTable sets the name of the table, which is [DefaultTable] by default. A name has
// ASCII letters, digits and underscores, and does not begin with a digit; it may be a reserved
// word. A schema (MySQL: a database) and a dot may precede it. PostgreSQL takes capitals for
// small letters. For any other name, New returns an error.
func WithTable(name string) Option {
	return func(s *Store) error {
		s.table = name
		return checkTable(name)
	}
}

func checkTable(name string) error {
	shown := name
	if len(shown) > 130 {
		shown = shown[:130] + "…"
	}
	bad := fmt.Errorf("table %q: want up to 63 ASCII letters, digits and underscores, not beginning with a digit, with the name of a schema and a dot before it or not", shown)
	parts := strings.Split(name, ".")
	for _, part := range parts {
		if len(parts) > 2 || len(part) == 0 || len(part) > 63 || '0' <= part[0] && part[0] <= '9' {
			return bad
		}
		for _, r := range part {
			if (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '_' {
				return bad
			}
		}
	}
	return nil
}

// New returns a Store of the cells of a namespace, in the database behind db. It
// sends nothing: the store connects at its first use. A name that [stores.CheckNamespace]
// refuses, a nil db or option, and a Dialect that [PostgreSQL] or [MySQL] did not return, are errors.
func New(db *sql.DB, dialect Dialect, namespace string, opts ...Option) (*Store, error) {
	if db == nil || dialect.read == "" {
		return nil, errors.New("sqlstore.New: no database, or a Dialect that PostgreSQL or MySQL did not return")
	}
	if err := stores.CheckNamespace(namespace); err != nil {
		return nil, err
	}
	s := &Store{db: db, running: make(chan struct{}, MaxRunning), namespace: namespace, table: DefaultTable}
	for i, opt := range opts {
		if opt == nil {
			return nil, fmt.Errorf("sqlstore.New: option %d of %d is nil", i+1, len(opts))
		}
		if err := opt(s); err != nil {
			return nil, err
		}
	}
	s.dialect = dialect.withTable(s.table)
	return s, nil
}

// Schema returns the statement that makes the table, for a DBA to run. It ends in a
// semicolon and a new line, and leaves a table that exists as it is.
func (s *Store) Schema() string { return s.dialect.schema + ";\n" }

// Close closes the database handle of a Store that [Open] made, and returns the
// driver's error.
func (s *Store) Close() error {
	if !s.owned {
		return nil
	}
	return s.db.Close()
}

// List returns the cells with keys in [from, to), at most limit of them, in one round
// trip. A row that is no cell is a [*stores.DamagedError].
func (s *Store) List(ctx context.Context, from, to string, limit int) ([]stores.Cell, error) {
	from, to = bound(from), bound(to)
	return engine.List(ctx, s.failed, func() (cells []stores.Cell, damaged []error, err error) {
		for limit > len(cells) && from < to {
			page, err := s.page(ctx, from, to, limit-len(cells))
			if err != nil && s.dialect.noTable(err) {
				break // the first Swap makes it
			}
			if err != nil {
				return nil, nil, err
			}
			cells, damaged = append(cells, page.cells...), append(damaged, page.damaged...)
			if len(page.damaged) == 0 {
				break // with problems, fewer cells than limit do not mean the end
			}
			next := bound(page.last + "\x00")
			if next <= from {
				break // the server has not kept to the range
			}
			from = next
		}
		return cells, damaged, nil
	})
}

// bound returns a text that compares with all keys as b does, and that every server
// accepts: servers refuse some strings, such as one with U+0000. It replaces the
// first byte that no key has with the next one that a key can have, or with one above
// them all, and drops the rest.
func bound(b string) string {
	const bytes = "-./0123456789_abcdefghijklmnopqrstuvwxyz{"
	if b == "" {
		return bytes[:1] // a server can take the empty string for NULL, which compares with nothing
	}
	for i := range len(b) {
		next := strings.IndexFunc(bytes, func(r rune) bool { return byte(r) >= b[i] })
		if next < 0 {
			next = len(bytes) - 1
		}
		if bytes[next] != b[i] || b[i] == '{' {
			return b[:i] + bytes[next:next+1]
		}
	}
	return b
}

// rows are those of one statement.
type rows struct {
	cells   []stores.Cell
	damaged []error
	last    string // the key of the last row of either kind
}

func (s *Store) page(ctx context.Context, from, to string, limit int) (rows, error) {
	return again(ctx, s, func(ctx context.Context, conn *sql.Conn) (got rows, err error) {
		found, err := conn.QueryContext(ctx, s.dialect.list, s.namespace, from, to, limit)
		if err != nil {
			return rows{}, err
		}
		defer found.Close()
		for found.Next() {
			var cell stores.Cell
			var version int64
			if err := found.Scan(&cell.Key, &version, &cell.Value); err != nil {
				return rows{}, err
			}
			cell.Version, got.last = uint64(version), cell.Key
			if problem := checkRow(cell.Key, version, cell.Value); problem != nil {
				got.damaged = append(got.damaged, problem)
			} else {
				got.cells = append(got.cells, cell)
			}
		}
		return got, found.Err()
	})
}

// checkRow returns an error for a row that no Swap can have written.
func checkRow(key string, version int64, value []byte) error {
	err := stores.CheckKey(key)
	if err == nil {
		err = stores.CheckValue(value)
	}
	if version > 0 && err == nil {
		return nil
	}
	return &stores.DamagedError{Key: key, Problem: fmt.Sprintf("its row has the version %d; restore it, or use another namespace", version), Err: err}
}

// Read returns the cell of a key, in one round trip, or in two with MySQL, MariaDB, and a
// PostgreSQL that has synchronous_standby_names. Its error wraps [ErrNotPrimary] if the
// answer may be out of date, and [ErrAutocommit] if it may come from an old transaction; or
// it is a [*stores.DamagedError].
func (s *Store) Read(ctx context.Context, key string) (stores.Cell, error) {
	return engine.Read(ctx, s.failed, key, s.read)
}

func (s *Store) read(ctx context.Context, key string) (stores.Cell, error) {
	var last uint64 // the version that the sync before has not found
	for range tries {
		cell, state, err := s.readOnce(ctx, key)
		if err == nil {
			err = stateError(state)
		}
		if err != nil {
			return stores.Cell{}, err
		}
		if state != stateUnsynced || cell.Version == 0 {
			return cell, nil
		}
		if cell.Version == last {
			return stores.Cell{}, fmt.Errorf("a write of its row changed nothing, so it is unknown whether the row is safe: compare table %s with Schema, and look for triggers, rules and policies on it", s.table)
		}
		last = cell.Version
		// A process that has lost the answer to a Swap relies on this cell. The server
		// can show a write before it is synced and a replica has it. It acknowledges another
		// write of the same row only after both writes are safe.
		synced, err := s.exec(ctx, s.dialect.sync, s.namespace, key, int64(cell.Version))
		if err != nil {
			return stores.Cell{}, err
		}
		if synced {
			return cell, nil
		}
		// There was another write in between.
	}
	return stores.Cell{}, fmt.Errorf("others wrote it during each of %d attempts", tries)
}

// readOnce returns a cell, and the state of the session.
func (s *Store) readOnce(ctx context.Context, key string) (stores.Cell, string, error) {
	type row struct {
		state   string
		version sql.Null[int64]
		value   []byte
	}
	got, err := again(ctx, s, func(ctx context.Context, conn *sql.Conn) (r row, err error) {
		err = conn.QueryRowContext(ctx, s.dialect.read, s.namespace, key).Scan(&r.state, &r.version, &r.value)
		return r, err
	})
	if err != nil && s.dialect.noTable(err) {
		// Without a table there is no cell, unless this is a replica that lacks the table so
		// far.
		got = row{}
		got.state, err = s.state(ctx)
	}
	if err == nil && got.version.Valid {
		err = checkRow(key, got.version.V, got.value)
	}
	return stores.Cell{Key: key, Version: uint64(got.version.V), Value: got.value}, got.state, err
}

// state returns the state of a session.
func (s *Store) state(ctx context.Context) (string, error) {
	return run(ctx, s, func(ctx context.Context, conn *sql.Conn) (state string, err error) {
		err = conn.QueryRowContext(ctx, s.dialect.state).Scan(&state)
		return state, err
	})
}

// Swap replaces the value of a cell, in one round trip; in three if the table must
// be made first; and in two if it finds another version, to see whether the row is damaged. It is one
// statement in its own transaction. It is sent again only if the driver says that it was
// not sent, or the server says that it was rolled back.
//
// If the error wraps [ErrAutocommit], or says that the table is missing and cannot
// be made, nothing was changed.
func (s *Store) Swap(ctx context.Context, key string, version uint64, value []byte) (uint64, error) {
	return engine.Swap(ctx, s.failed, key, version, value, s.swap)
}

func (s *Store) swap(ctx context.Context, version uint64, cell stores.Cell) error {
	written, err := s.write(ctx, version, cell)
	if err != nil && s.dialect.noTable(err) {
		if version != 0 {
			return stores.ErrConflict
		}
		written, err = s.makeTable(ctx, cell)
	}
	if err != nil || written {
		return err
	}
	return s.whyNot(ctx, cell.Key)
}

// write reports whether it has written the cell. If it has not, and returns no error, the
// cell has another version, or the session commits nothing.
func (s *Store) write(ctx context.Context, version uint64, cell stores.Cell) (bool, error) {
	// A copy, since a driver may read it after the context has ended.
	value := string(cell.Value)
	if version != 0 {
		return s.exec(ctx, s.dialect.update, int64(cell.Version), value, s.namespace, cell.Key, int64(version))
	}
	written, err := s.exec(ctx, s.dialect.insert, s.namespace, cell.Key, int64(cell.Version), value)
	if err != nil && s.dialect.duplicate(err) {
		return false, nil
	}
	return written, err
}

// exec reports whether a statement has written its row.
func (s *Store) exec(ctx context.Context, statement string, args ...any) (bool, error) {
	n, err := again(ctx, s, func(ctx context.Context, conn *sql.Conn) (int64, error) {
		result, err := conn.ExecContext(ctx, statement, args...)
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
func again[T any](ctx context.Context, s *Store, statement func(context.Context, *sql.Conn) (T, error)) (got T, err error) {
	for range tries {
		if got, err = run(ctx, s, statement); err == nil || !s.dialect.rolledBack(err) {
			break
		}
	}
	return got, err
}

// makeTable makes the table and writes a new cell. If another process
// makes the table at the same time, some servers report an error, so the write decides
// whether there is a table.
func (s *Store) makeTable(ctx context.Context, cell stores.Cell) (bool, error) {
	_, problem := s.exec(ctx, s.dialect.schema)
	written, err := s.write(ctx, 0, cell)
	if err != nil && problem != nil && s.dialect.noTable(err) {
		err = fmt.Errorf("table %s is missing, and making it failed: %w; have a user with the right to make it run: %s", s.table, problem, strings.Join(strings.Fields(s.Schema()), " "))
	}
	return written, err
}

// whyNot returns the reason for a write that did nothing: another version, unless the row is
// damaged or the session commits nothing.
func (s *Store) whyNot(ctx context.Context, key string) error {
	_, state, err := s.readOnce(ctx, key)
	switch {
	case errors.Is(err, stores.ErrDamaged), err != nil && s.dialect.guarded:
		return err
	case state == stateNoAutocommit:
		return ErrAutocommit
	}
	return stores.ErrConflict
}

// Durability asks the server for its settings, and whether the table keeps the promises of a
// Store if it was made by hand, in two or three round trips. If the table does not, the error is
// of the kind [stores.Refused], and has the statement that changes it.
func (s *Store) Durability(ctx context.Context) (stores.Durability, error) {
	promises, err := run(ctx, s, func(ctx context.Context, conn *sql.Conn) (stores.Durability, error) {
		return s.dialect.durability(ctx, conn, s.dialect)
	})
	if err != nil {
		return stores.Durability{}, engine.Failed(ctx, s.engine(), "ask for", "settings", "", s.refused(err))
	}
	return promises, nil
}

func (s *Store) engine() string { return s.dialect.name + " table " + s.table }

// failed returns the error of an operation.
func (s *Store) failed(ctx context.Context, op, key string, err error) error {
	return engine.Failed(ctx, s.engine(), op, key, s.namespace, s.refused(err))
}

// refused makes the server's refusal wrap [stores.Refused].
func (s *Store) refused(err error) error {
	if why := s.dialect.refused(err); why != nil {
		err = fmt.Errorf("%w: %w", why, err)
	}
	return err
}
