package sequence

import (
	"context"

	"github.com/tickflake/tickflake/internal/base"
	"github.com/tickflake/tickflake/monoclock"
	"github.com/tickflake/tickflake/stores"
)

// The simulation of a fleet sees and replaces these parts of a Sequence.

// WithClock lets another clock than that of the machine tell the time.
func WithClock(clock monoclock.Interface) Option {
	return func(c *config) { c.after, c.elapsed, _ = base.Waiting(clock) }
}

// Simulated is a Sequence without goroutines, for a simulation in which one thread runs at a time: a call that finds
// no number calls the store by itself.
type Simulated struct {
	*Sequence
	await func(ready func() bool) // lets other threads run until ready
}

// Simulate makes s a Simulated one, with these random names, and returns its ID as well.
func Simulate(s *Sequence, await func(ready func() bool), random func() string) (_ *Simulated, id string) {
	s.random, s.busy = random, true // no call starts the goroutine that refills
	return &Simulated{s, await}, s.machine.Known().Record.ID
}

// Poll does what a goroutine of the Sequence does by itself.
func (s *Simulated) Poll(ctx context.Context) error {
	s.await(func() bool { return s.turn.Free() || ctx.Err() != nil })
	return s.poll(ctx)
}

// NextN is [Sequence.NextN], and Next, too.
func (s *Simulated) NextN(ctx context.Context, n int64) (int64, error) {
	index, ok := s.window.Quick(uint64(n))
	if !ok {
		index, ok = s.count(uint64(n))
	}
	for again := !ok; again; {
		c, err := s.join(ctx, uint64(n))
		if err != nil {
			return 0, err
		}
		for len(c.done) == 0 && ctx.Err() == nil {
			if err := s.Poll(ctx); err != nil && s.quit(c) {
				return 0, err
			}
		}
		if index, again, err = s.answer(ctx, c); err != nil {
			return 0, err
		}
	}
	if n > 1 {
		s.raiseLargest(uint64(n))
	}
	return s.number(index), nil
}

// CloseContext is [Sequence.CloseContext], called once.
func (s *Simulated) CloseContext(ctx context.Context) error {
	s.seal()
	s.await(s.turn.Free)
	return s.giveBack(ctx)
}

// Restored is [Sequence.Restored].
func (s *Simulated) Restored(ctx context.Context) error {
	if err := s.forget(); err != nil {
		return err
	}
	return s.Poll(ctx)
}

// Noticed reports whether s knows that the store went back, or may have.
func (s *Sequence) Noticed() bool {
	return s.machine.Suspects() || stores.KindOf(s.Err()) == stores.Loss
}
