package sqlstore

import (
	"context"
	"database/sql"
	"strings"
)

// Dialect is what differs between the servers, as [PostgreSQL] and [MySQL] return it.
type Dialect struct {
	// The statements. TABLE_NAME stands for the table, and the arguments are
	// in the same order in all dialects.
	schema string
	list   string // namespace
	read   string // namespace, node; returns the session's state, version, value, the latter two NULL for no cell
	insert string // namespace, node, version, value
	update string // version, value, namespace, node, old version
	state  string // the session's state alone
	sync   string // namespace, node, version; syncs the cell, if it still has that version

	guarded    bool             // insert and update do nothing in a session that commits nothing
	noTable    func(error) bool // the error says that the table does not exist
	duplicate  func(error) bool // the error of an insert says that there is such a row
	rolledBack func(error) bool // the error says that another transaction was preferred, and nothing written

	warnings func(ctx context.Context, db *sql.DB, table string) ([]string, error)
}

func (d Dialect) withTable(table string) Dialect {
	for _, s := range []*string{&d.schema, &d.list, &d.read, &d.insert, &d.update, &d.sync} {
		*s = strings.ReplaceAll(*s, "TABLE_NAME", table)
	}
	return d
}

// Warnings asks the server, in one to three round trips, for settings with which an
// acknowledged write can be lost, and returns a sentence on each that it finds: what
// it is, what it leads to, what to set. None is no proof, for nobody can see from
// inside what a disk does, or what takes over when the server fails. Its error wraps
// the driver's or the context's.
func (s *Store) Warnings(ctx context.Context) ([]string, error) {
	found, err := s.dialect.warnings(ctx, s.db, s.table)
	if err != nil {
		return nil, s.fail("look at the server's settings", err)
	}
	return found, nil
}
