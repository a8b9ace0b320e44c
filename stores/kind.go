package stores

import (
	"errors"
	"fmt"
	"io/fs"
)

// Kind says what helps against an error of a store, or of a lease: see [KindOf].
type Kind uint8

const (
	// Passing: a retry may succeed. The store does not answer, another process was first,
	// or a node number is held.
	Passing Kind = iota
	// Refused: a retry fails until an operator has changed the thing that the message names:
	// a password, a right, another program's data, a read-only server, a layout, a clock.
	Refused
	// Loss: the store has lost writes that it acknowledged, or a cell is damaged. IDs may have
	// been issued twice.
	Loss
)

// String returns the words for logs: "passing", "refused" or "loss".
func (k Kind) String() string {
	if names := [...]string{"passing", "refused", "loss"}; int(k) < len(names) {
		return names[k]
	}
	return fmt.Sprintf("Kind(%d)", uint8(k))
}

// KindOf returns the kind of an error: Loss if it wraps [ErrWentBack] or [ErrDamaged], else
// Refused if it wraps [ErrRefused] or [fs.ErrPermission], else Passing.
func KindOf(err error) Kind {
	switch {
	case errors.Is(err, ErrWentBack), errors.Is(err, ErrDamaged):
		return Loss
	case errors.Is(err, ErrRefused), errors.Is(err, fs.ErrPermission):
		return Refused
	}
	return Passing
}

// ErrRefused is wrapped by every error of the kind [Refused]: wrong credentials, a missing
// right, data of another program in the cells' place, a read-only server, and settings
// that do not fit. [Open] and the claim of a lease end with it at once.
var ErrRefused = errors.New("the store refuses, and a retry does not help")

// Refusal returns an error that has this text and is [ErrRefused] for errors.Is. An engine
// wraps it in the error of an operation that the server refused. The text says what to
// change.
func Refusal(text string) error { return refusal(text) }

type refusal string

func (r refusal) Error() string { return string(r) }

func (refusal) Is(target error) bool { return target == ErrRefused }

// ErrWentBack is wrapped by the error for a cell that this process wrote and that is gone,
// or holds an earlier state than the store has acknowledged: the store was restored from a
// backup, or failed over to a replica that was behind. IDs of the time that it lost may
// have been issued twice by processes that started since.
var ErrWentBack = errors.New("store went back")
