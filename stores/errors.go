package stores

import (
	"errors"
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

// Kind says what helps against an error of a store, of a lease, or of a sequence. It is an error,
// so that errors.Is(err, stores.Permanent) asks for one kind. [KindOf] returns the kind of an error.
type Kind uint8

const (
	// Unknown: no engine has classified the error. It is retried as Transient.
	Unknown Kind = iota
	// Transient: a retry may succeed. The store does not answer, another process was first,
	// or a node number is held.
	Transient
	// Permanent: a retry fails until an operator has changed the thing that the message names:
	// wrong credentials, a missing right, data of another program in the cells' place, a
	// read-only server, a layout, a clock, an option out of range. [Open] and the claim of a
	// lease end with such an error at once.
	Permanent
	// Loss: the store has lost writes that it acknowledged, or a cell is damaged. IDs may have
	// been issued twice. Such an error is never Permanent alone.
	Loss
)

// Error returns the word for logs: "unknown", "transient", "permanent" or "loss".
func (k Kind) Error() string {
	if names := [...]string{"unknown", "transient", "permanent", "loss"}; int(k) < len(names) {
		return names[k]
	}
	return fmt.Sprintf("Kind(%d)", uint8(k))
}

// Retryable reports whether a retry may succeed without an operator: Unknown and Transient.
func (k Kind) Retryable() bool { return k <= Transient }

// New returns an error that has this text and is of the kind k. An engine wraps it in the error of
// an operation. The text says what to do.
func (k Kind) New(text string) error { return sentinel{text, k} }

type sentinel struct {
	text string
	kind Kind
}

func (s sentinel) Error() string { return s.text }

func (s sentinel) Is(target error) bool { return target == s.kind }

// KindOf returns the kind of an error: the first of Loss, Permanent and Transient that it is for
// errors.Is, else Unknown.
func KindOf(err error) Kind {
	for _, k := range [...]Kind{Loss, Permanent, Transient} {
		if errors.Is(err, k) {
			return k
		}
	}
	return Unknown
}

// ErrOverloaded is wrapped by the error of a [github.com/tickflake/tickflake/lease.Keeper] that was woken too late for a call of
// the store, which may have answered in time.
var ErrOverloaded = Transient.New("this process gets too little processor time")

// ErrWentBack is wrapped by the error for a cell that this process wrote and that is gone,
// or holds an earlier state than the store has acknowledged: the store was restored from a
// backup, or failed over to a replica that was behind. IDs of the time that it lost may
// have been issued twice by processes that started since.
var ErrWentBack = Loss.New("store went back")
