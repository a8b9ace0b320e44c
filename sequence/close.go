package sequence

import (
	"context"
	"fmt"

	"github.com/tickflake/tickflake/internal/drive"
)

// Close ends the sequence: no number is issued any more, and calls that wait fail with [ErrClosed]. Then it
// gives the reserved numbers back, if no other process has been granted numbers since: after a clean stop the
// next process continues where this one stopped. It takes at most two timeouts of [WithTimeout], and one more
// if a refill runs; without reserved numbers it asks no store. It does not close the store.
//
// The error wraps [ErrNotGivenBack]: the reserved numbers are then never issued, and the Sequence is closed in
// any case. Further calls return the same error.
func (s *Sequence) Close() error { return s.CloseContext(context.Background()) }

// CloseContext is [Sequence.Close], but returns as soon as ctx ends. No number is issued any more in any case,
// and the numbers are given back in the background if the store answers.
func (s *Sequence) CloseContext(ctx context.Context) error {
	s.seal()
	return s.ending.Wait(ctx, fmt.Errorf("sequence %q: %w", s.name, ErrNotGivenBack), s.giveBack)
}

// seal has no number issued any more.
func (s *Sequence) seal() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closing {
		s.closing = true
		close(s.done)
	}
	for _, c := range s.calls {
		c.done <- result{err: ErrClosed}
	}
	s.calls = nil
	s.window.Seal()
}

// giveBack gives the rest back, once an earlier call of the store has ended.
func (s *Sequence) giveBack(ctx context.Context) error {
	_ = s.turn.Take(context.WithoutCancel(ctx))
	defer s.turn.Leave()
	s.mu.Lock()
	rest := s.machine.Unused(s.window.Used())
	s.mu.Unlock()
	err := s.work(ctx, true)
	s.mu.Lock()
	unknown := s.machine.Unknown()
	s.settled = true
	s.mu.Unlock()
	if err == nil {
		return nil
	}
	s.config.log.Warn("sequence: numbers were not given back", "sequence", s.name, "numbers", rest, "err", err)
	missing := fmt.Sprintf("%d numbers are missing", rest)
	if unknown > 0 {
		missing += fmt.Sprintf(", and %d more if the last write has reached the store", unknown)
	}
	return drive.Wrap(fmt.Sprintf("sequence %q: %v: %s: %v", s.name, ErrNotGivenBack, missing, err), ErrNotGivenBack, err)
}
