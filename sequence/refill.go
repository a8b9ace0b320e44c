package sequence

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tickflake/tickflake/internal/cell"
	"github.com/tickflake/tickflake/internal/segment"
	"github.com/tickflake/tickflake/internal/window"
	"github.com/tickflake/tickflake/stores"
)

// roundsInARow bounds the rounds of one refill. After a conflict the next round follows at
// once.
const roundsInARow = 8

// Poll refills if a segment is due or a call waits, as a goroutine of the Sequence does by
// itself. It is meant for a Sequence that was made [WithPolling]. It returns soon after ctx
// ends. The errors are those of [Sequence.Next].
func (s *Sequence) Poll(ctx context.Context) error {
	if ctx == nil {
		return &OptionError{"context", fmt.Errorf("%w: give context.Background() if there is none", errNil)}
	}
	if err := s.take(ctx); err != nil {
		return err
	}
	defer s.leave()
	err := s.work(ctx, false)
	s.note(err)
	return err
}

// take takes the turn.
func (s *Sequence) take(ctx context.Context) error {
	if s.await != nil {
		s.await(func() bool { return len(s.turn) == 0 || ctx.Err() != nil })
		if ctx.Err() != nil { // or select would choose at random
			return s.ended(ctx, s.Err())
		}
	}
	select {
	case s.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return s.ended(ctx, s.Err())
	}
}

func (s *Sequence) leave() { <-s.turn }

// work runs rounds until there is nothing to do now. The caller has the turn. closing is true
// when Close calls it.
func (s *Sequence) work(ctx context.Context, closing bool) error {
	began := s.config.elapsed()
	defer func() { s.counters.waited.Add(uint64(max(s.config.elapsed()-began, 0))) }()
	var unknown error // the last write has an unknown outcome: read before the next write
	for range roundsInARow {
		if s.forget() && !closing {
			return ErrClosed
		}
		fresh := s.doubt
		if err := s.read(ctx); err != nil {
			if unknown != nil {
				return unknown
			}
			return err
		}
		d := s.decide(s.stateOf(), s.cell)
		if s.proof = d.Kind == segment.Mark; s.proof {
			s.seen.Top = max(s.seen.Top, d.Record.Most) // also if the write fails, and the store goes back once more
		}
		if s.cell.Version != s.base {
			s.pending, s.base = nil, s.cell.Version
		}
		if unknown != nil && d.Kind.Writes() && d.Kind != segment.Mark {
			return unknown // the write has not landed so far
		}
		if d.Kind != segment.Mark && s.cell.Record.ID == s.seen.ID {
			s.learn(s.cell)
		}
		if d.Kind == segment.Exhausted && !fresh {
			s.doubt = true // the maximum may have been raised
			continue
		}
		again, err := s.carryOut(ctx, d)
		switch {
		case err != nil && again:
			unknown = err
		case err != nil || !again:
			return err
		default:
			unknown = nil
		}
	}
	return &wrapped{
		text: fmt.Sprintf("sequence %q: %d writes in a row met those of other processes: it is written too often; use larger steps, or one service for all processes", s.name, roundsInARow),
		errs: []error{ErrStore, stores.ErrConflict},
	}
}

// forget drops the state of a restored memory, and reports whether the sequence is closing.
func (s *Sequence) forget() (closing bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.restored {
		s.restored = false
		s.owned, s.pending, s.base, s.seen.Top, s.doubt = nil, nil, 0, 0, true
	}
	return s.closing
}

// stateOf returns the state that the protocol decides by. It gives the reserved numbers to
// the calls that wait, and counts what the others want.
func (s *Sequence) stateOf() segment.State {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.ordered {
		s.serve()
	}
	used := s.window.Used()
	for len(s.owned) > 0 && s.owned[0].To <= used {
		s.owned = s.owned[1:]
	}
	state := segment.State{Name: s.random(), Closing: s.closed, Used: used, Owned: s.owned, Room: s.room(), Seen: s.seen, Pending: s.pending, Proof: s.proof}
	s.upto = s.arrived
	switch {
	case s.closed:
		return state
	case s.ordered:
		state.Want, state.Need = s.batch()
		return state
	}
	var waiting uint64
	s.calls(func(c *call) bool {
		waiting += c.n
		return waiting < uint64(s.shown.MaxStep)
	})
	switch {
	case waiting > 0:
		state.Need = s.ring.next.n
		state.Want = max(min(waiting, uint64(s.shown.MaxStep)), state.Need)
	case !s.window.Short():
		return state
	}
	state.Want = max(state.Want, s.rate.next(s.config.elapsed(), s.issued(), s.config.outage, s.cell.Record))
	return state
}

// room is how many numbers of the last range are not taken.
func (s *Sequence) room() uint64 {
	if len(s.owned) == 0 {
		return 0
	}
	last := s.owned[len(s.owned)-1]
	return last.To - min(max(last.From, s.window.Used()), last.To)
}

// batch is how many indexes the calls that wait in ordered mode want, without those that ask
// for more than are left.
func (s *Sequence) batch() (want, need uint64) {
	left := s.cell.Record.Left()
	s.calls(func(c *call) bool {
		if c.n <= left-want {
			want += c.n
		}
		return true
	})
	if want == 0 && s.waiting() {
		want = s.ring.next.n // it is more than are left
	}
	return want, want
}

// carryOut carries out a decision. again asks for another round at once; an error together
// with again is that of a write of unknown outcome.
func (s *Sequence) carryOut(ctx context.Context, d segment.Decision) (again bool, err error) {
	switch d.Kind {
	case segment.Grant, segment.GiveBack, segment.Mark:
		if d.Kind == segment.Mark {
			s.lose()
		}
		return s.write(ctx, d)
	case segment.Adopt:
		s.granted(d.Range, d.Upto)
		return true, nil
	case segment.GivenBack:
		s.givenBack(d.Range)
		return false, nil
	case segment.Marked:
		s.lose()
		return false, lostError(s.name, s.cell.Record)
	case segment.Deleted:
		s.revoke()
		return false, fmt.Errorf("sequence %q: %w by another process: open it again if it was created anew", s.name, ErrDeleted)
	case segment.Exported:
		return false, movedError(s.name, d.Record)
	case segment.Raised:
		s.revoke()
		return true, nil
	case segment.Exhausted:
		return false, s.exhausted()
	}
	return false, nil
}

// write makes the write of a decision.
func (s *Sequence) write(ctx context.Context, d segment.Decision) (again bool, err error) {
	found := s.cell
	began := s.config.elapsed()
	version, err := s.swap(ctx, d.Version, d.Record)
	s.takeTurns(began, err)
	if err != nil {
		// After a conflict as well: a driver may have sent the write twice.
		s.doubt = true
		if len(s.pending) >= segment.MaxPending {
			s.pending = s.pending[1:]
		}
		s.pending = append(s.pending[:len(s.pending):len(s.pending)], segment.Pending{Name: d.Record.Write, Range: d.Range, Upto: s.upto})
		switch {
		case errors.Is(err, stores.ErrConflict):
			s.counters.conflicts.Add(1)
			err = nil
		case errors.Is(err, stores.ErrDamaged):
			err = nil // the cell tells more
		}
		return true, err
	}
	s.pending, s.base = nil, version
	s.learn(segment.Cell{Version: version, Record: d.Record})
	switch d.Kind {
	case segment.Grant:
		s.granted(d.Range, s.upto)
	case segment.GiveBack:
		s.givenBack(d.Range)
	case segment.Mark:
		s.doubt, s.proof = true, false
		err = s.wentBack(found, d.Record)
	}
	return false, err
}

// takeTurns notes a write that began at an elapsed time.
func (s *Sequence) takeTurns(began time.Duration, err error) {
	elapsed := s.config.elapsed()
	took := max(elapsed-began, 0) // a clock may go back
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case err == nil:
		s.turns.wrote(elapsed, took, s.config.timeout/4) // or calls without a deadline would fail on a slow store
	case errors.Is(err, stores.ErrConflict):
		s.turns.conflict(elapsed, took)
	}
}

// learn notes the cell as it is in the store.
func (s *Sequence) learn(cell segment.Cell) {
	s.cell, s.doubt = cell, false
	if s.seen.Write == cell.Record.Write {
		return
	}
	s.seen.Sequence = &cell.Record
	s.mu.Lock()
	s.shown = s.seen.Sequence
	s.mu.Unlock()
}

// granted notes that a range is ours, and gives it to the window and to the calls that wait.
func (s *Sequence) granted(r segment.Range, upto uint64) {
	s.seen.Top = r.To
	s.counters.refills.Add(1)
	s.retry.Store(0)
	s.lost = false
	var served []*call
	defer func() {
		for _, c := range served { // without mu, which their callers need for their next calls
			c.done <- result{index: c.index}
		}
	}()
	s.mu.Lock()
	defer s.mu.Unlock()
	switch n := r.To - r.From; {
	case s.restored: // a copy of this process may have been granted it as well
		s.counters.lost.Add(n)
	case s.ordered:
		served = s.serveOrdered(r.From, r.To, upto)
		if now := s.config.elapsed(); now-s.rate.at >= time.Second {
			s.rate.next(now, s.issued(), 0, *s.shown)
		}
	default:
		if n > uint64(s.shown.MaxStep) {
			s.raiseLargest(n) // for a batch, whose call may have ended
		}
		if !s.closing { // else the window does not take it
			s.counters.granted.Add(n)
		}
		s.rate.step = min(n, uint64(s.shown.MaxStep))
		if last := len(s.owned) - 1; last >= 0 && s.owned[last].To == r.From {
			s.owned[last].To = r.To
		} else {
			s.owned = append(s.owned, r)
		}
		more := r.From // the next segment is due when this one is begun
		if s.config.outage == 0 {
			more = r.To
		}
		s.window.Queue(window.Range{From: r.From, To: r.To}, more)
		s.serve()
	}
}

// revoke takes the reserved numbers back: another process may have been granted them. The
// next round reads the cell again.
func (s *Sequence) revoke() {
	s.doubt = true
	s.mu.Lock()
	defer s.mu.Unlock()
	s.window.Revoke()
	if s.closing { // a sealed window revokes nothing, and so counts nothing as lost
		s.counters.lost.Add(s.unused())
	}
	s.owned = nil
}

// lose notes that the store has lost writes.
func (s *Sequence) lose() {
	s.revoke()
	if !s.lost {
		s.lost = true
		s.counters.wentBack.Add(1)
	}
}

// exhausted is the error for the first call that asks for more numbers than are left, or nil
// if no call waits: then the reserved numbers can still be taken.
func (s *Sequence) exhausted() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.waiting() {
		s.retry.Store(int64(s.config.elapsed() + time.Second))
		return nil
	}
	r := s.cell.Record
	left := r.Left()
	if n := len(s.owned); n > 0 && s.owned[n-1].To == r.Next {
		left += s.room()
	}
	return exhausted(s.name, r, left+1, left)
}

// wentBack is the error of a process that found that the store has lost writes.
func (s *Sequence) wentBack(found segment.Cell, mark cell.Sequence) error {
	state := "its cell is gone"
	if found.Version != 0 {
		state = fmt.Sprintf("its next number is %d", found.Record.Number(found.Record.Next))
	}
	return &wrapped{
		text: fmt.Sprintf("%v: sequence %q had granted all numbers up to %d, and %s: the store was restored from a backup, or failed over to a replica that was behind. Numbers up to there may have been issued twice. No process is granted a number until you raise the next one above all that are in use: tickflake sequence set %s --next N",
			stores.ErrWentBack, s.name, mark.LastNumber(), state, s.name),
		errs: []error{stores.ErrWentBack},
	}
}

// lostError is the error for a cell in which a process has noted that the store lost writes.
func lostError(name string, r cell.Sequence) error {
	return &wrapped{
		text: fmt.Sprintf("%v: a process found that the store had lost numbers of sequence %q, which had granted all up to %d: numbers may have been issued twice. No process is granted a number until you raise the next one above all that are in use: tickflake sequence set %s --next N",
			stores.ErrWentBack, name, r.LastNumber(), name),
		errs: []error{stores.ErrWentBack},
	}
}
