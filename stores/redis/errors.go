package redis

import (
	"errors"
	"fmt"

	"github.com/tickflake/tickflake/lease"
)

// ErrReplicas is wrapped by the error of a Swap that was written, or of a Read of what
// was, that too few replicas have confirmed within a second. A failover may lose it.
var ErrReplicas = errors.New("too few replicas have confirmed the last writes within a second: look at the replicas, or ask for fewer")

// fail returns the error of an operation.
func (s *Store) fail(op string, err error) error {
	return fmt.Errorf("cannot %s in the hash %s: %w", op, s.key, err)
}

// CellError reports a field of the hash that this package has not written. It is left
// as it is. It is a [lease.ErrDamaged].
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

// Is reports whether target is [lease.ErrDamaged].
func (e *CellError) Is(target error) bool { return target == lease.ErrDamaged }
