package sqlstore

import (
	"errors"
	"fmt"
)

var (
	// ErrNotPrimary is wrapped by the error of a Read that was answered by a
	// standby, or by a server that is read-only, as replicas are.
	ErrNotPrimary = errors.New("server is a standby or read-only, and what it says may be out of date: connect to the primary")

	// ErrAutocommit is wrapped by the error of a Read or Swap on a connection to
	// MySQL or MariaDB whose autocommit is off. Nothing was written.
	ErrAutocommit = errors.New("autocommit is off on this connection, so that nothing would be committed: switch it on in the driver's options or the server's settings")
)

// What the statements say of the session they run in.
const (
	stateGood         = ""
	stateNotPrimary   = "not primary"
	stateNoAutocommit = "no autocommit"
	stateUnsynced     = "unsynced" // a write may show before it is synced
)

func stateError(state string) error {
	switch state {
	case stateGood, stateUnsynced:
		return nil
	case stateNoAutocommit:
		return ErrAutocommit
	default:
		return ErrNotPrimary
	}
}

// fail returns the error of an operation.
func (s *Store) fail(op string, err error) error {
	return fmt.Errorf("cannot %s in namespace %s, table %s: %w", op, s.namespace, s.table, err)
}

// TableError reports a name that [WithTable] does not take.
type TableError struct {
	Name string
}

func (e *TableError) Error() string {
	name := e.Name
	if len(name) > 130 {
		name = name[:130] + "…"
	}
	return fmt.Sprintf("table %q: want up to 63 ASCII letters, digits and underscores, not beginning with a digit, with the name of a schema and a dot before it or not", name)
}

// SchemaError reports that the table is missing and cannot be made. It wraps what
// the server said to that.
type SchemaError struct {
	Table  string
	Schema string // the statement for a DBA to run
	Err    error
}

func (e *SchemaError) Error() string {
	return fmt.Sprintf("table %s is missing, and making it failed: %s; have a user run this who may:\n%s", e.Table, e.Err, e.Schema)
}

// Unwrap returns what the server said.
func (e *SchemaError) Unwrap() error { return e.Err }
