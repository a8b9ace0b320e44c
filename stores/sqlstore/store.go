package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/stores/internal/remote"
)

// DefaultTable is the name of the table if [WithTable] gives no other.
const DefaultTable = "tickflake_cells"

// Store is a [lease.Store] in a table of a database. It keeps nothing but the
// handle, and is safe for use by several goroutines at once.
type Store struct {
	db        *sql.DB
	dialect   Dialect
	namespace string
	table     string
}

var _ lease.Store = (*Store)(nil)

// Option is an option of [New].
type Option func(*Store) error

// WithTable keeps the cells in a table of another name than [DefaultTable]. The name is
// made of ASCII letters, digits and underscores, begins with no digit, and may have
// that of a schema (MySQL: of a database) and a dot before it. Any other makes New
// return a [*TableError].
func WithTable(name string) Option {
	return func(s *Store) error {
		s.table = name
		return checkTable(name)
	}
}

func checkTable(name string) error {
	parts := strings.Split(name, ".")
	for _, part := range parts {
		if len(parts) > 2 || len(part) == 0 || len(part) > 63 || '0' <= part[0] && part[0] <= '9' {
			return &TableError{Name: name}
		}
		for _, r := range part {
			if (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '_' {
				return &TableError{Name: name}
			}
		}
	}
	return nil
}

// New returns a Store of the cells of a namespace, in the database behind db. It
// sends nothing; the first use does. The caller closes db, once the Store is no
// longer used.
//
// The error is a [*lease.NamespaceError] or a [*TableError]; a nil db or option, and a
// Dialect that was not returned by [PostgreSQL] or [MySQL], are errors, too.
func New(db *sql.DB, dialect Dialect, namespace string, opts ...Option) (*Store, error) {
	if db == nil || dialect.read == "" {
		return nil, errors.New("sqlstore.New: no database, or a Dialect that PostgreSQL or MySQL did not return")
	}
	if err := lease.CheckNamespace(namespace); err != nil {
		return nil, err
	}
	s := &Store{db: db, namespace: namespace, table: DefaultTable}
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

// List returns all cells of the namespace, in the order of their node numbers, in
// one round trip. Its error wraps the driver's or the context's; or [lease.ErrDamaged] for
// each row that is no cell, and then comes with the cells of the others.
func (s *Store) List(ctx context.Context) ([]lease.Cell, error) {
	cells, err := s.list(ctx)
	if err != nil && s.dialect.noTable(err) {
		return nil, nil // the first Swap makes it
	}
	if err != nil {
		return cells, s.fail("list the cells", err)
	}
	return cells, nil
}

func (s *Store) list(ctx context.Context) ([]lease.Cell, error) {
	var cells []lease.Cell
	err := s.again(func() (err error) {
		cells, err = s.listOnce(ctx)
		return err
	})
	return cells, err
}

func (s *Store) listOnce(ctx context.Context) ([]lease.Cell, error) {
	rows, err := s.db.QueryContext(ctx, s.dialect.list, s.namespace)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var cells []lease.Cell
	var damaged []error
	for rows.Next() {
		var cell lease.Cell
		var version int64
		if err := rows.Scan(&cell.Node, &version, &cell.Value); err != nil {
			return nil, err
		}
		if err := checkRow(cell.Node, version); err != nil {
			damaged = append(damaged, err)
			continue
		}
		cell.Version = uint64(version)
		cells = append(cells, cell)
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	return cells, errors.Join(damaged...)
}

// checkRow returns an error for a row that no Swap has written.
func checkRow(node, version int64) error {
	if version <= 0 || remote.CheckNode(node) != nil {
		return fmt.Errorf("%w: the row of node %d has the version %d; restore it, or use another namespace", lease.ErrDamaged, node, version)
	}
	return nil
}

// Read returns the cell of a node number, in one round trip, or two with MySQL and
// MariaDB unless the binary log is on and synced. Its error wraps [ErrNotPrimary] if the
// answer may be out of date, [ErrAutocommit] if it may be that of an old transaction,
// [lease.ErrDamaged] if the row is no cell, the driver's or the context's.
func (s *Store) Read(ctx context.Context, node int64) (lease.Cell, error) {
	cell, err := s.read(ctx, node)
	if err != nil {
		return lease.Cell{}, s.fail(fmt.Sprintf("read the cell of node %d", node), err)
	}
	return cell, nil
}

func (s *Store) read(ctx context.Context, node int64) (lease.Cell, error) {
	for {
		cell, state, err := s.readOnce(ctx, node)
		if err == nil {
			err = stateError(state)
		}
		if err != nil {
			return lease.Cell{}, err
		}
		if state != stateUnsynced || cell.Version == 0 {
			return cell, nil
		}
		// Whoever has lost the answer to a Swap relies on what it reads here. The server
		// shows a write before it is synced; one more write of the same row is acknowledged
		// only after both are.
		synced, err := s.exec(ctx, s.dialect.sync, s.namespace, node, int64(cell.Version))
		if err != nil {
			return lease.Cell{}, err
		}
		if synced {
			return cell, nil
		}
		// Somebody has written in between.
	}
}

// readOnce returns a cell, and what the session is like.
func (s *Store) readOnce(ctx context.Context, node int64) (lease.Cell, string, error) {
	var state string
	var version sql.Null[int64]
	var value []byte
	err := s.again(func() error {
		return s.db.QueryRowContext(ctx, s.dialect.read, s.namespace, node).Scan(&state, &version, &value)
	})
	if err != nil && s.dialect.noTable(err) {
		// No table, no cell; unless this is a replica to which the table has not come.
		version, value = sql.Null[int64]{}, nil
		err = s.db.QueryRowContext(ctx, s.dialect.state).Scan(&state)
	}
	if err == nil && version.Valid {
		err = checkRow(node, version.V)
	}
	return lease.Cell{Node: node, Version: uint64(version.V), Value: value}, state, err
}

// versionStep is the greatest step from one version of a cell to the next. Random
// ones leave room for about 2³² writes to each cell.
const versionStep = 1 << 32

const lastVersion = 1<<63 - 1 // of a BIGINT

// Swap replaces the value of a cell, in one round trip; in three if the table must
// be made first; and with MySQL in two if it finds another version. It is one
// statement, committed by itself. It is sent again only if the driver says that none of
// it was sent, or the server that it was rolled back.
//
// Its error wraps [lease.ErrConflict] if the cell has another version, a [*SchemaError]
// if there is no table and it cannot be made, or [ErrAutocommit], and nothing was
// changed. A node number or value that no cell may have is an error, with nothing sent.
// After any other, which wraps the driver's or the context's, it is not known whether
// the value was, or will be, written.
func (s *Store) Swap(ctx context.Context, old lease.Cell, value []byte) (lease.Cell, error) {
	cell := lease.Cell{Node: old.Node, Value: append([]byte(nil), value...)}
	if err := remote.CheckCell(cell, false); err != nil {
		return lease.Cell{}, s.fail(fmt.Sprintf("swap the cell of node %d", old.Node), err)
	}
	if old.Version > lastVersion-versionStep {
		return lease.Cell{}, s.fail(fmt.Sprintf("swap the cell of node %d", old.Node), lease.ErrConflict)
	}
	cell.Version = old.Version + 1 + rand.Uint64N(versionStep)

	written, err := s.write(ctx, old, cell)
	if err != nil && s.dialect.noTable(err) {
		if old.Version != 0 {
			written, err = false, nil
		} else {
			written, err = s.makeTable(ctx, cell)
		}
	}
	if err == nil && !written {
		if err = s.whyNot(ctx); err == nil {
			err = lease.ErrConflict
		}
	}
	if err != nil {
		return lease.Cell{}, s.fail(fmt.Sprintf("swap the cell of node %d", old.Node), err)
	}
	return cell, nil
}

// write reports whether it has written the cell. If not, and without an error, the
// version is another, or the session is one that commits nothing.
func (s *Store) write(ctx context.Context, old, cell lease.Cell) (bool, error) {
	if old.Version != 0 {
		return s.exec(ctx, s.dialect.update, int64(cell.Version), string(cell.Value), s.namespace, cell.Node, int64(old.Version))
	}
	written, err := s.exec(ctx, s.dialect.insert, s.namespace, cell.Node, int64(cell.Version), string(cell.Value))
	if err != nil && s.dialect.duplicate(err) {
		err = lease.ErrConflict
	}
	return written, err
}

// exec reports whether a statement has written its row.
func (s *Store) exec(ctx context.Context, statement string, args ...any) (bool, error) {
	var n int64
	err := s.again(func() error {
		result, err := s.db.ExecContext(ctx, statement, args...)
		if err == nil {
			n, err = result.RowsAffected()
		}
		return err
	})
	return n == 1, err
}

// again runs a statement until the server does not roll it back in favour of another,
// as it does if the default isolation is higher than read committed, or in a deadlock.
// One that was rolled back has written nothing.
func (s *Store) again(statement func() error) (err error) {
	for range 100 {
		if err = statement(); err == nil || !s.dialect.rolledBack(err) {
			return err
		}
	}
	return err
}

// makeTable makes the table and writes a cell that is not there yet. That somebody
// else has made the table in the meantime shows as an error in some servers, so the
// write decides whether there is one.
func (s *Store) makeTable(ctx context.Context, cell lease.Cell) (bool, error) {
	_, problem := s.db.ExecContext(ctx, s.dialect.schema)
	written, err := s.write(ctx, lease.Cell{Node: cell.Node}, cell)
	if err != nil && problem != nil && s.dialect.noTable(err) {
		err = &SchemaError{Table: s.table, Schema: s.Schema(), Err: problem}
	}
	return written, err
}

// whyNot returns what else than another version can have kept a write from
// being made.
func (s *Store) whyNot(ctx context.Context) error {
	if !s.dialect.guarded {
		return nil
	}
	var state string
	if err := s.db.QueryRowContext(ctx, s.dialect.state).Scan(&state); err != nil {
		return err
	}
	if state == stateNoAutocommit {
		return ErrAutocommit
	}
	return nil
}
