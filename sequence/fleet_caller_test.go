package sequence_test

import (
	"context"
	"errors"
	"time"

	"github.com/tickflake/tickflake/sequence"
)

// keep polls the sequences, as the goroutines of a Sequence do by themselves.
func (p *process) keep(t *thread) {
	for !p.closing {
		for _, s := range p.opened {
			ctx, cancel := t.deadline(p.f.timeout)
			_, err := s.s.Poll(ctx)
			cancel()
			if err != nil {
				p.expect(t, err)
			}
		}
		often := p.f.Period / 16
		if p.f.Calm {
			often = p.f.bound() / 32
		}
		t.Sleep(time.Duration(p.f.Between(often/16, often)))
	}
}

// issue is the work of a thread that takes numbers.
func (p *process) issue(t *thread) {
	f := p.f
	for round := 0; !f.Over; round++ {
		if f.Calm {
			t.Pass(f.Between(1, f.bound()/8))
		} else if round > 0 && !f.Often(f.pBurst) {
			t.Pass(f.Between(1, f.think))
		}
		if f.Numbers > f.most && !f.Calm {
			t.Pass(f.Period)
		}
		s := p.opened[f.Rng.IntN(len(p.opened))]
		if f.Calm {
			s = p.opened[round%len(p.opened)]
		}
		n := int64(1)
		if f.batch > 1 && f.Often(f.pBatch) {
			n += f.Rng.Int64N(f.batch)
		}
		timeout := f.timeout
		if f.Calm || f.alone {
			timeout = 4 * f.Period
		}
		ctx, cancel := t.deadline(timeout)
		t.begin(s, n)
		var first int64
		var err error
		switch {
		case n > 1:
			first, err = s.s.NextN(ctx, n)
			f.Batches++
		default:
			first, err = s.s.Next(ctx)
		}
		cancel()
		s.running -= n
		if err == nil {
			s.served = f.Now
			f.issued(t, s, first, n)
			continue
		}
		f.Refusals++
		s.err = err
		if n > s.s.Definition().MaxStep {
			s.abandoned += n
		}
		if f.Trace != nil {
			t.Tracef("fails: %v", err)
		}
		p.expect(t, err)
		switch {
		case errors.Is(err, sequence.ErrDeleted):
			p.Shutdown()
		case errors.As(err, new(*sequence.ExhaustedError)):
			s.served = f.Now
		}
		t.Pass(f.Between(f.Period/64+1, f.Period/8+2)) // as a caller who tries again does
	}
}

func (t *thread) begin(s *opened, n int64) {
	l := s.life()
	t.began, t.late, t.warned, t.floor, t.latest = t.p.f.Now, t.p.closed, s.noticed, s.returned, l.latest
	t.grants = s.grants
	s.running += n
	s.largest = max(s.largest, n)
}

// Shutdown closes the process in good order.
func (p *process) Shutdown() {
	if p.closing || len(p.opened) < len(p.f.names) {
		return
	}
	p.closing = true
	f := p.f
	f.Shutdowns++
	p.spawn("closer", func(t *thread) {
		timeout := int64(time.Hour)
		if !f.Calm && !f.alone && f.Often(256) {
			timeout = f.Between(0, p.Timeout)
		}
		clean := true
		for _, s := range p.opened {
			ctx, cancel := t.deadline(timeout)
			var err error
			if f.mutant != nil && f.mutant.close != nil {
				err = f.mutant.close(s, t, ctx)
			} else {
				err = s.s.CloseContext(ctx)
			}
			cancel()
			if f.Trace != nil {
				t.Tracef("has closed %s: %v; %+v", s.c.name, err, s.s.Stats())
			}
			if errors.Is(err, context.Canceled) {
				clean = false
			}
			if err != nil && !errors.Is(err, sequence.ErrNotGivenBack) {
				f.Fail("close", "%s: %v", p.Name, err)
			}
		}
		p.closed, p.clean = true, clean
		t.Pass(f.Between(0, f.Period)) // others may still try
		p.End()
		if !p.last {
			p.M.StartLater(f.Between(0, f.Period))
		}
	})
}

// Restored is the work of a process that is told that its memory was restored.
func (p *process) Restored() {
	if len(p.opened) == len(p.f.names) && !p.closing {
		p.f.Restores++
		p.spawn("restored", p.restored)
	}
}

func (p *process) restored(t *thread) {
	for _, s := range p.opened {
		ctx, cancel := t.deadline(p.f.timeout)
		if err := s.s.Restored(ctx); err != nil {
			p.expect(t, err)
		}
		cancel()
	}
}
