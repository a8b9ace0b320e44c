package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"strings"

	"github.com/tickflake/tickflake/stores"
)

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
