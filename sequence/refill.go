package sequence

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tickflake/tickflake/internal/cell"
	"github.com/tickflake/tickflake/internal/count"
	"github.com/tickflake/tickflake/internal/drive"
	"github.com/tickflake/tickflake/internal/window"
	"github.com/tickflake/tickflake/stores"
)

// poll refills if a segment is due or a call waits. It returns soon after ctx ends.
func (s *Sequence) poll(ctx context.Context) error {
	if s.turn.Take(ctx) != nil {
		return s.noNumber(ctx)
	}
	defer s.turn.Leave()
	err := s.work(ctx, false)
	s.note(err)
	return err
}

// work runs the machine until a write has landed, or there is nothing to do now. The caller has
// the turn. closing is true when Close calls it.
func (s *Sequence) work(ctx context.Context, closing bool) error {
	began := s.config.elapsed()
	err := drive.Run(ctx, &driver{Sequence: s, closing: closing})
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stats.Waited += s.config.elapsed() - began
	return err
}

// driver is the [drive.Driver] of a Sequence.
type driver struct {
	*Sequence
	closing bool          // the rest is to be given back
	took    time.Duration // for the last swap
	in      count.Input
	op      count.Op
	result  count.Result

	// Without mu: callers need it for their next calls, and a handler of the log may use the
	// Sequence.
	served  []*call // in ordered mode: they are to be told their numbers
	copied  bool    // a copy was noticed, as the log is to be told
	unclear uint64  // how many numbers were given up, as the log is to be told
	refused uint64  // the version of the last swap that met a conflict, or 0
	lags    bool    // the last read showed that version, which was replaced: it is out of date
}

func (d *driver) Lock() { d.mu.Lock() }

func (d *driver) Unlock() {
	served, copied, unclear := d.served, d.copied, d.unclear
	d.served, d.copied, d.unclear = nil, false, 0
	d.mu.Unlock()
	for _, c := range served {
		c.done <- c.result
	}
	if copied {
		d.config.log.Warn("sequence: memory was restored, and its numbers are left to the original", "sequence", d.name, "by", d.config.page.By)
	}
	if unclear > 0 {
		d.config.log.Warn("sequence: numbers were given up: a read showed an older state than was known, and too many writes followed to know whether the store went back", "sequence", d.name, "numbers", unclear)
	}
}

// Next gives the reserved numbers to the calls that wait, and counts what the others want.
func (d *driver) Next() (drive.Kind, error) {
	s := d.Sequence
	if s.closing && !d.closing {
		return drive.None, ErrClosed
	}
	d.copied = s.distrust(false) || d.copied
	d.in = count.Input{Name: s.random(), Arrived: s.arrived, Closing: d.closing, Restored: s.restored}
	s.restored = false
	if !d.closing {
		d.in.Want, d.in.Need = s.wanted()
	}
	d.in.Used = s.window.Used()
	d.op = s.machine.Next(d.in)
	switch op := d.op; {
	case op.Why == count.Exhausted:
		return drive.None, d.exhausted()
	case op.Kind == count.None:
		return drive.None, nil
	case op.Why == count.Mark:
		return drive.Prepare, nil
	case op.Kind == count.Swap:
		return drive.Write, nil
	}
	return drive.Ask, nil
}

// Done acts on what has happened before mu is unlocked, so that no Close and no Restored comes in between.
func (d *driver) Done() (settled bool, err error) {
	switch elapsed := d.config.elapsed(); {
	case d.result.Status == count.Conflict:
		d.stats.Conflicts++
		d.pauses.conflict(elapsed, d.took)
	case d.result.Status == count.Failed:
		d.stats.Failures++
	case d.op.Kind == count.Swap:
		d.pauses.wrote(elapsed, d.took, d.config.timeout/4) // or calls without a deadline would fail on a slow store
	}
	d.in.Used, d.in.Restored = d.window.Used(), d.restored // which Next resets, once more: to forget twice does no harm
	return drive.Act(d.machine.Done(d.in, d.op, d.result), d.apply)
}

// Do carries the operation out.
func (d *driver) Do(ctx context.Context) (err error) {
	s, op, r := d.Sequence, d.op, &d.result
	*r = count.Result{}
	switch op.Kind {
	case count.Read:
		r.Cell, err = s.read(ctx)
		d.lags = r.Cell.Version == d.refused && d.refused != 0
	case count.Swap:
		began := s.config.elapsed()
		r.Version, err = s.swap(ctx, op.Version, op.Record)
		d.took = s.config.elapsed() - began
	}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, stores.ErrConflict):
		d.refused, r.Status = op.Version, count.Conflict
		return nil
	}
	r.Status = count.Failed
	return err
}

// apply acts on an event.
func (d *driver) apply(e count.Event) (settled bool, err error) {
	s := d.Sequence
	switch e.Kind {
	case count.Granted:
		d.served = s.granted(e.Range, e.Upto)
	case count.Forgot: // a copy of this process may have been granted it as well
		s.received += e.Range.To - e.Range.From
	case count.GivenBack:
		s.received -= e.Range.To - e.Range.From
	case count.Suspected: // until it ends
		s.window.Revoke()
		return false, nil
	case count.Trusted:
		s.returned(e.Ranges)
		return false, nil
	case count.Raised:
		s.window.Revoke()
	case count.Unclear: // the window was revoked on the suspicion
		if !s.closing { // else Close tells
			d.unclear = e.Lost
		}
	case count.Deleted:
		s.window.Revoke()
		err = fmt.Errorf("sequence %q: %w by another process: open it again if it was created anew", s.name, ErrDeleted)
	case count.Marked:
		s.lose()
		err = lostError(s.name, e.Cell.Record, marked)
	case count.WentBack:
		s.lose()
		state := "its cell is gone"
		if e.Cell.Version != 0 {
			state = fmt.Sprintf("its next number is %d", e.Cell.Record.Number(e.Cell.Record.Next))
		}
		err = lostError(s.name, s.machine.Known().Record, state)
	}
	return true, err
}

// Busy returns the error of writes that all met those of other processes, or that followed from reads that are
// out of date. The latter is no conflict: the next try waits, and the log is told.
func (d *driver) Busy() error {
	if d.lags || d.machine.Suspects() {
		return drive.Wrap(fmt.Sprintf("sequence %q: the store answers reads that are out of date, so no number is granted until a read shows the last write: check that its reads are linearizable", d.name), ErrStore)
	}
	return drive.Busy(fmt.Sprintf("sequence %q: %d writes in a row met those of other processes: it is written too often; use larger steps, or one service for all processes", d.name, drive.InARow))
}

// The caller of the following methods holds mu.

// wanted is how many indexes a refill is to ask for, and how many it needs at least. It gives the
// reserved numbers to the calls that wait, and counts what the others want.
func (s *Sequence) wanted() (want, need uint64) {
	r := s.machine.Known().Record
	if s.ordered {
		want = s.batch(r.Left())
		return want, want
	}
	s.serve()
	var waiting uint64
	for i := 0; i < len(s.calls) && waiting < uint64(r.MaxStep); i++ {
		waiting += s.calls[i].n
	}
	switch {
	case waiting > 0:
		need = s.calls[0].n
		want = max(min(waiting, uint64(r.MaxStep)), need)
	case !s.window.Short():
		return 0, 0
	}
	return max(want, s.rate.next(s.config.elapsed(), s.issued(), s.config.outage, r)), need
}

// batch is how many indexes the calls that wait in ordered mode want, without those that ask
// for more than are left.
func (s *Sequence) batch(left uint64) (want uint64) {
	for _, c := range s.calls {
		if c.n <= left-want {
			want += c.n
		}
	}
	if want == 0 && len(s.calls) > 0 {
		want = s.calls[0].n // it is more than are left
	}
	return want
}

// granted gives a range to the window and to the calls that wait. It returns the calls that
// were served and are to be told.
func (s *Sequence) granted(r count.Range, upto uint64) (served []*call) {
	s.stats.Refills++
	s.lost = false
	record := s.machine.Known().Record
	n := r.To - r.From
	s.received += n
	if s.ordered {
		served = s.serveOrdered(r.From, r.To, upto)
		if now := s.config.elapsed(); now-s.rate.at >= time.Second {
			s.rate.next(now, s.issued(), 0, record)
		}
		return served
	}
	if n > uint64(record.MaxStep) {
		s.raiseLargest(n) // for a batch, whose call may have ended
	}
	s.rate.step = min(n, uint64(record.MaxStep))
	s.queue(r)
	s.serve()
	return nil
}

// queue gives a range to the window. A sealed window does not take it.
func (s *Sequence) queue(r count.Range) {
	more := r.From // the next segment is due when this one is begun
	if s.config.outage == 0 {
		more = r.To
	}
	s.window.Queue(window.Range{From: r.From, To: r.To}, more)
}

// returned gives the window the ranges that were taken back on a suspicion.
func (s *Sequence) returned(ranges []count.Range) {
	for _, r := range ranges {
		s.queue(r)
	}
	s.serve()
}

// lose takes the reserved numbers back since the store has lost writes: another process may have been granted them.
func (s *Sequence) lose() {
	s.window.Revoke()
	if !s.lost {
		s.lost = true
		s.stats.WentBack++
	}
}

// exhausted is the error for the first call that asks for more numbers than are left, or nil
// if no call waits: then the reserved numbers can still be taken.
func (s *Sequence) exhausted() error {
	if len(s.calls) == 0 {
		s.retry = s.config.elapsed() + time.Second
		return nil
	}
	left := s.machine.Left(s.window.Used())
	return exhausted(s.name, s.machine.Known().Record, left+1, left)
}

// marked is the state of a store that another process has found.
const marked = "a process found that the store had lost numbers"

// lostError is the error for a sequence of which the store has lost writes. state is what is in the store.
func lostError(name string, r cell.Sequence, state string) error {
	return drive.Wrap(fmt.Sprintf("%v: sequence %q had granted all numbers up to %d, and %s: numbers up to there may have been issued twice, and none is granted until you raise the next one above all that are in use: tickflake sequence set %s --next N",
		stores.ErrWentBack, name, r.LastNumber(), state, name), stores.ErrWentBack)
}
