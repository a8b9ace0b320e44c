package sqlstore

import (
	"errors"

	"github.com/tickflake/tickflake/stores"
)

var (
	// ErrNotPrimary is wrapped by the error of a Read that a standby or a read-only
	// server has answered, and of a Swap that such a server has refused. Replicas are read-only.
	ErrNotPrimary = stores.Refused.New("server is a standby or read-only, and its answer may be out of date: connect to the primary")

	// ErrAutocommit is wrapped by the error of a Read or Swap on a connection to
	// MySQL or MariaDB whose autocommit is off. Nothing was written.
	ErrAutocommit = stores.Refused.New("autocommit is off on this connection, so that nothing would be committed: switch it on in the driver's options or the server's settings")

	errDenied = stores.Refused.New("the server refuses the user, the password or a right: fix the URL, or grant the rights that the engine's package doc lists")
	errOther  = stores.Refused.New("the database does not exist, the table is another program's, with other columns, or the server does not take a parameter of the URL: fix the URL")
	errUnfit  = stores.Refused.New("the table was not made by the statement of Schema, and IDs could be issued twice")

	// These are no refusals: the store goes on.
	errNoTable    = errors.New("the table does not exist")
	errDuplicate  = errors.New("there is such a row")
	errRolledBack = errors.New("another transaction was preferred, and nothing written")
)

// The states of the session that a statement runs in, unless all is well.
const (
	stateNotPrimary   = "not primary"
	stateNoAutocommit = "no autocommit"
	stateUnsynced     = "unsynced" // a write may show before it is safe
)

var stateErrors = map[string]error{stateNotPrimary: ErrNotPrimary, stateNoAutocommit: ErrAutocommit}
