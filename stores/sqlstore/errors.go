package sqlstore

import (
	"errors"

	"github.com/tickflake/tickflake/stores"
)

var (
	// ErrNotPrimary is wrapped by the error of a Read that a standby or a read-only
	// server has answered, and of a Swap that such a server has refused. Replicas are read-only.
	ErrNotPrimary = stores.Permanent.New("server is a standby or read-only, and its answer may be out of date: connect to the primary")

	// ErrAutocommit is wrapped by the error of a Read or Swap on a connection to
	// MySQL or MariaDB whose autocommit is off. Nothing was written.
	ErrAutocommit = stores.Permanent.New("autocommit is off on this connection, so that nothing would be committed: switch it on in the driver's options or the server's settings")

	errDenied = stores.Permanent.New("the server refuses the user, the password or a right: fix the URL, or grant the rights that the engine's package doc lists")
	errOther  = stores.Permanent.New("the database does not exist, the table is another program's, with other columns, or the server does not take a parameter of the URL: fix the URL")
	errUnfit  = stores.Permanent.New("the table was not made by the statement of Schema, and IDs could be issued twice")

	errReadOnly = stores.Permanent.New("transactions of this session are read-only by default (default_transaction_read_only; in MySQL transaction_read_only or tx_read_only), so that nothing can be written: switch that off where it was set")
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
	stateNotPrimary   = "not primary"
	stateNoAutocommit = "no autocommit"
	stateUnsynced     = "unsynced" // a write may show before it is safe
)

var stateErrors = map[string]error{stateNotPrimary: ErrNotPrimary, stateNoAutocommit: ErrAutocommit}
