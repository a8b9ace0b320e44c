package sequence

import (
	"context"

	"github.com/tickflake/tickflake/internal/seam"
	"github.com/tickflake/tickflake/monoclock"
	"github.com/tickflake/tickflake/stores"
)

// The simulation of a fleet sees and replaces these parts of a Sequence.

// WithAwait makes a Sequence without goroutines: a call that finds no number calls the store by itself, and await
// lets others of the process run until ready. [Sequence.Poll] reserves the next segment.
func WithAwait(await func(ready func() bool)) Option { return func(c *config) { c.await = await } }

// WithClock lets another clock than that of the machine tell the time.
func WithClock(clock monoclock.Interface) Option {
	return func(c *config) { c.after, c.elapsed = seam.Waiting(clock) }
}

// Poll does what a goroutine of the Sequence does by itself.
func (s *Sequence) Poll(ctx context.Context) error { return s.poll(ctx) }

// Hook replaces the random names, and returns the ID of the sequence.
func (s *Sequence) Hook(random func() string) (id string) {
	s.random, s.ending.Inline = random, true
	return s.machine.Known().Record.ID
}

// Noticed reports whether s knows that the store went back, or may have.
func (s *Sequence) Noticed() bool {
	return s.machine.Suspects() || stores.KindOf(s.Err()) == stores.Loss
}
