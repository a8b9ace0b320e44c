package redis

import (
	"errors"
	"fmt"

	"github.com/tickflake/tickflake/stores/internal/remote"
)

// ErrReplicas is wrapped by the error of a Swap that was written, or of a Read of what
// was, that too few replicas have confirmed within a second. A failover may lose it.
var ErrReplicas = errors.New("too few replicas have confirmed the last writes within a second: look at the replicas, or ask for fewer")

// Error is what List, Read, Swap and Warnings return. It wraps its cause:
// [lease.ErrConflict], [ErrReplicas], a [*ValueError], a [*CellError], the context's
// error, or what the driver returned.
//
// [lease.ErrConflict]: https://pkg.go.dev/github.com/tickflake/tickflake/lease#ErrConflict
type Error struct {
	Op  string // what was to be done
	Key string // the key of the hash
	Err error
}

func (s *Store) fail(op string, err error) error {
	return &Error{Op: op, Key: s.key, Err: err}
}

func (e *Error) Error() string {
	return fmt.Sprintf("cannot %s in the hash %s: %s", e.Op, e.Key, e.Err)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// ValueError reports a cell that a Swap was to write and no store takes. Nothing was
// sent. Its field Problem says what is wrong with it, with the limit.
type ValueError = remote.ValueError

// CellError reports a field of the hash that this package has not written. It is left
// as it is.
type CellError struct {
	Field string
}

func (e *CellError) Error() string {
	field := e.Field
	if len(field) > 40 {
		field = field[:40] + "…"
	}
	return fmt.Sprintf("field %q holds no cell: find out who has written it, and use another namespace or delete the field", field)
}

// URLError reports a URL that names no store. Its text holds no part of the URL but
// the scheme, for where the password begins and ends in a URL that is wrong is
// anybody's guess. Its fields are Scheme, "rediss" or so, empty if the URL has none
// that is known; Problem; and Err, what a parameter was refused with, or nil.
type URLError = remote.URLError
