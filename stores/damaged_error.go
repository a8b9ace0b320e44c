package stores

import "fmt"

// DamagedError reports a cell that cannot be read as it was written, or whose helper file
// cannot be used. It wraps [ErrDamaged]. A command that lists cells takes the
// key from it. A store never overwrites such a cell: it may be the only record of the
// issued IDs.
type DamagedError struct {
	Key     string
	Problem string // the damage, its place, and what to do
	Err     error  // the cause, such as that of a file; or nil
}

func (e *DamagedError) Error() string {
	key := e.Key
	if len(key) > MaxKey {
		key = key[:MaxKey] + "…"
	}
	text := fmt.Sprintf("cell %q is damaged: %s", key, e.Problem)
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

// Unwrap returns [ErrDamaged] and the cause.
func (e *DamagedError) Unwrap() []error {
	if e.Err == nil {
		return []error{ErrDamaged}
	}
	return []error{ErrDamaged, e.Err}
}
