package stores

import (
	"errors"
	"fmt"
)

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
