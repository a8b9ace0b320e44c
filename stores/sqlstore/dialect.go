package sqlstore

import (
	"context"
	"database/sql"
	"strings"

	"github.com/tickflake/tickflake/stores"
)

// Dialect has the differences between the servers. [PostgreSQL] and [MySQL] return one.
type Dialect struct {
	name string // in errors

	// The statements. TABLE_NAME stands for the table, and the arguments are
	// in the same order in all dialects.
	schema string
	list   string // namespace, from, to, limit
	read   string // namespace, cell; returns the session's state, version, value, the latter two NULL for no cell
	insert string // namespace, cell, version, value
	update string // version, value, namespace, cell, old version
	state  string // the session's state alone
	sync   string // namespace, cell, version; syncs the cell, if it still has that version

	guarded    bool             // insert and update do nothing in a session that commits nothing
	cancels    bool             // the driver asks the server to cancel a statement whose context ends
	noTable    func(error) bool // the error says that the table does not exist
	duplicate  func(error) bool // the error of an insert says that there is such a row
	rolledBack func(error) bool // the error says that another transaction was preferred, and nothing written

	refused func(error) error // the refusal that the server's error stands for, or nil

	durability func(ctx context.Context, conn *sql.Conn, table string) (stores.Durability, error)
}

func (d Dialect) withTable(table string) Dialect {
	for _, s := range []*string{&d.schema, &d.list, &d.read, &d.insert, &d.update, &d.sync} {
		*s = strings.ReplaceAll(*s, "TABLE_NAME", table)
	}
	return d
}
