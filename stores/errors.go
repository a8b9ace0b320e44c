package stores

import (
	"fmt"
)

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
	text := fmt.Sprintf("%q is damaged: %s", key, e.Problem)
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

// OptionError reports an option or argument that a function of this module refuses: one out of
// range, nil, or in contradiction to another. A program that takes its options from flags or a
// file decides by Option which flag to name. It is of the kind [Permanent].
type OptionError struct {
	Option string // the name of the option or argument, such as "WithWindow", "name" or "definition"
	Err    error  // why its value is refused, with the numbers
}

func (e *OptionError) Error() string { return e.Option + ": " + e.Err.Error() }

// Unwrap returns why the value is refused.
func (e *OptionError) Unwrap() error { return e.Err }

// Is reports whether target is [Permanent].
func (e *OptionError) Is(target error) bool { return target == Permanent }

// URLError reports a URL that names no store. By the type, a command sees that an
// argument is wrong, and not a server.
//
// Its text and its causes show no part of the URL that can be a password: only the
// scheme, the names of options that the engine or its driver knows, and, if they are
// wrong, the values of the options namespace and table, and the names of files.
type URLError struct {
	Scheme  string // such as "postgres"; empty if it is unknown
	Problem string // the mistake, and what to write instead
	Err     error  // the cause, such as that of a file of certificates; or nil
}

func (e *URLError) Error() string {
	text := "store URL: " + e.Problem
	if e.Scheme != "" {
		text = e.Scheme + " " + text
	}
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

// Unwrap returns the cause, or nil.
func (e *URLError) Unwrap() error { return e.Err }

// Is reports whether target is [Permanent].
func (e *URLError) Is(target error) bool { return target == Permanent }
