package sequence

import (
	"context"
	"errors"

	"github.com/tickflake/tickflake/stores"
)

// Info is the state of a sequence in a store.
type Info struct {
	Name       string
	Definition Definition // complete
	Next       int64      // the number that the next grant begins with
	Last       int64      // the highest number granted so far; one stride below the first if there is none
	Left       int64      // numbers from Next to the maximum
	Writes     uint64     // how often the sequence was written
	WentBack   bool       // the store lost writes: no numbers are granted until [Set] raises Next
}

var errTodo = errors.New("not yet")

// Create creates a sequence. It does nothing if the sequence exists with the same
// definition; with another one the error is a [*DefinitionError].
func Create(ctx context.Context, store stores.Store, name string, d Definition) error { return errTodo }

// Inspect returns the state of a sequence. The error wraps [ErrNotFound] if there is none.
func Inspect(ctx context.Context, store stores.Store, name string) (Info, error) {
	return Info{}, errTodo
}

// List returns the state of all sequences of the store, in the order of their names. If
// cells are damaged, the error wraps [stores.ErrDamaged], and comes with the others.
func List(ctx context.Context, store stores.Store) ([]Info, error) { return nil, errTodo }

// Change says what [Set] changes. A field that is 0 stays as it is.
type Change struct {
	Next             int64 // the number that the next grant begins with, or the next of the series above it; never lowered
	Max              int64 // the last number; math.MaxInt64 for none
	MinStep, MaxStep int64
}

// Set changes a sequence while processes use it, and returns its state before and after.
func Set(ctx context.Context, store stores.Store, name string, change Change) (before, after Info, err error) {
	return Info{}, Info{}, errTodo
}

// Delete deletes a sequence, and returns its last state.
func Delete(ctx context.Context, store stores.Store, name string) (Info, error) {
	return Info{}, errTodo
}
