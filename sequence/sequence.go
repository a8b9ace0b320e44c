package sequence

import (
	"context"

	"github.com/tickflake/tickflake/stores"
)

// Sequence issues the numbers of one sequence.
type Sequence struct {
}

// Open opens a sequence that exists, or, with [WithDefinition], creates it.
func Open(ctx context.Context, store stores.Store, name string, options ...Option) (*Sequence, error) {
	return nil, errTodo
}

// Next returns the next number.
func (s *Sequence) Next(ctx context.Context) (int64, error) { return 0, errTodo }

// NextN takes n numbers in a row, and returns the first. The others follow it, each one
// stride above the one before.
func (s *Sequence) NextN(ctx context.Context, n int64) (first int64, err error) { return 0, errTodo }

// Name returns the name of the sequence.
func (s *Sequence) Name() string { return "" }

// Definition returns the definition as of the last time that this process read it.
func (s *Sequence) Definition() Definition { return Definition{} }

// Stats returns the counts so far.
func (s *Sequence) Stats() Stats { return Stats{} }

// Err returns why the last refill failed, or nil.
func (s *Sequence) Err() error { return errTodo }

// Poll fetches the next segment if it is due.
func (s *Sequence) Poll(ctx context.Context) error { return errTodo }

// Restored tells the Sequence that the memory of this process was restored or cloned.
func (s *Sequence) Restored(ctx context.Context) error { return errTodo }

// Close gives the unused numbers back.
func (s *Sequence) Close() error { return errTodo }

// CloseContext is Close, but returns soon after ctx ends.
func (s *Sequence) CloseContext(ctx context.Context) error { return errTodo }
