package sequence

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"slices"
	"time"

	"github.com/tickflake/tickflake/stores"
)

// call is a call that waits for the store.
type call struct {
	n       uint64
	arrival uint64
	result  result        // of a call that is served in ordered mode
	until   time.Duration // elapsed time at which a call without a deadline ends; else 0
	done    chan result   // capacity 1: who takes the call out of the queue sends once, but for quit
}

type result struct {
	index uint64
	mark  uint64 // of the memory that it was granted to
	err   error
}

// wait waits in the queue for n indexes in a row.
func (s *Sequence) wait(ctx context.Context, n uint64) (uint64, error) {
	for {
		c, err := s.join(ctx, n)
		if err != nil {
			return 0, err
		}
		if index, again, err := s.answer(ctx, c); !again {
			return index, err
		}
	}
}

// answer waits for what becomes of a call. again says that it was granted indexes of another memory, whose call
// returns them.
func (s *Sequence) answer(ctx context.Context, c *call) (index uint64, again bool, err error) {
	var r result
	select {
	case r = <-c.done:
	case <-ctx.Done():
		if s.quit(c) {
			return 0, false, s.noNumber(ctx)
		}
		r = <-c.done
	}
	if r.err == errTimeout {
		return 0, false, s.noNumber(ctx)
	}
	return r.index, r.err == nil && r.mark != s.config.page.Marker.Load(), r.err
}

// errTimeout stands for the error of a call without a deadline whose timeout has passed.
var errTimeout = errors.New("timeout")

// join puts a call at the end of the queue, and starts a refill if none runs. It fails if ctx has ended, if
// the sequence is closed, or if a call like this one has just failed for good.
func (s *Sequence) join(ctx context.Context, n uint64) (*call, error) {
	if ctx.Err() != nil {
		return nil, s.noNumber(ctx)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch f := &s.failure; {
	case s.closing:
		return nil, ErrClosed
	case f.final && n >= f.n && s.config.elapsed() < f.until:
		return nil, s.failureFor(n)
	}
	if !s.ordered {
		s.stats.Starved++
	}
	s.arrived++
	c := &call{n: n, arrival: s.arrived, done: make(chan result, 1)}
	if _, limited := ctx.Deadline(); !limited {
		c.until = s.config.elapsed() + s.config.timeout
	}
	s.calls = append(s.calls, c)
	s.start()
	return c, nil
}

// quit takes a call out of the queue, and reports whether it was still in it.
func (s *Sequence) quit(c *call) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.Index(s.calls, c)
	if i >= 0 {
		s.calls = slices.Delete(s.calls, i, i+1)
	}
	return i >= 0
}

// The caller of the following methods holds mu.

// failureFor is the last failure for a call for n numbers.
func (s *Sequence) failureFor(n uint64) error {
	var exhausted *ExhaustedError
	if errors.As(s.failure.err, &exhausted) {
		e := *exhausted
		e.Asked = int64(n)
		return &e
	}
	return s.failure.err
}

// ask starts a refill that no call waits for, unless the last one failed a moment ago.
func (s *Sequence) ask() {
	if s.config.elapsed() >= s.retry {
		s.start()
	}
}

// start starts the goroutine that refills, unless it runs. It ends when there is nothing to
// do, or soon after Close.
func (s *Sequence) start() {
	if !s.closing && !s.busy {
		s.busy = true
		go s.refill()
	}
}

// serve gives reserved numbers to the calls that wait, in their order.
func (s *Sequence) serve() {
	served := 0
	for _, c := range s.calls {
		index, _, ok := s.window.Count(c.n)
		if !ok {
			break
		}
		c.done <- result{index: index, mark: s.mark}
		served++
	}
	s.calls = slices.Delete(s.calls, 0, served)
}

// serveOrdered gives the indexes of one write to the calls that began before it was sent,
// in their order, and returns the calls. Those that want more than the write has left in the
// sequence fail: under load there would always be smaller ones to write for. The indexes of
// calls that have ended meanwhile are lost.
func (s *Sequence) serveOrdered(index, end, upto uint64) (served []*call) {
	s.regulars, s.served = s.arrived-s.served, upto
	begin, r := index, s.machine.Known().Record
	s.calls = slices.DeleteFunc(s.calls, func(c *call) bool {
		switch {
		case c.arrival > upto:
			return false
		case c.n <= end-index:
			c.result = result{index: index, mark: s.mark}
			index += c.n
		case c.n > r.Left():
			c.result = result{err: exhausted(s.name, r, c.n, r.Left())}
		default:
			return false
		}
		served = append(served, c)
		return true
	})
	s.stats.Issued += index - begin
	return served
}

// refill refills until no call waits, and no segment is due. It leaves the turn after each
// refill, or Poll, Restored and Close would wait as long as calls come.
func (s *Sequence) refill() {
	over := make(chan struct{})
	defer close(over)
	go s.watch(over)
	for again := true; again; {
		s.pause()
		_ = s.turn.Take(context.Background())
		s.gather()
		again = s.noteRefill(s.work(context.Background(), false))
		s.turn.Leave()
	}
}

// watch ends the calls without a deadline that have waited for the timeout, until the refill
// is over. A timer for each call would cost more than all else that it does.
func (s *Sequence) watch(over <-chan struct{}) {
	for {
		select {
		case <-s.config.after(s.expire()):
		case <-over:
			return
		}
	}
}

// expire ends the calls whose timeout has passed, and returns how long no other one ends.
func (s *Sequence) expire() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.config.elapsed()
	least := s.config.timeout
	s.calls = slices.DeleteFunc(s.calls, func(c *call) bool {
		ends := c.until != 0 && c.until <= now
		if ends {
			c.done <- result{err: errTimeout}
		} else if c.until != 0 {
			least = min(least, c.until-now)
		}
		return ends
	})
	return least
}

// gather waits until the callers that the last write has served have made their next calls, so
// that the next write serves them together with the calls that waited already. Else two groups
// of callers would take turns, and each would wait for the other's writes. It gives up soon
// after the last of them has come.
func (s *Sequence) gather() {
	for last, idle := uint64(0), 0; idle < 64; idle++ {
		s.mu.Lock()
		arrived, all := s.arrived, s.arrived-s.served >= s.regulars
		s.mu.Unlock()
		if all {
			return
		}
		if arrived > last {
			last, idle = arrived, 0
		}
		runtime.Gosched()
	}
}

// pause waits until a failed refill may be tried again, and until other processes had their
// turn, or the sequence is closed.
func (s *Sequence) pause() {
	s.mu.Lock()
	until := s.pauses.until
	if f := &s.failure; f.err != nil && !f.final {
		until = max(until, f.until)
	}
	s.mu.Unlock()
	if d := until - s.config.elapsed(); d > 0 {
		select {
		case <-s.config.after(d):
		case <-s.done:
		}
	}
}

// noteRefill notes the outcome of a refill, and reports whether there is more to do. If not, the
// goroutine ends.
func (s *Sequence) noteRefill(err error) (again bool) {
	s.note(err)
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.calls) > 0 {
		return true
	}
	// A call may have passed the soft limit while this goroutine was busy.
	s.busy = err == nil && !s.closing && s.window.Short() && s.config.elapsed() >= s.retry
	return s.busy
}

// note notes a failure, or that there is none, fails the calls that it concerns, and logs a
// change of state once. It logs without mu: the handler may be slow, or use the Sequence.
func (s *Sequence) note(err error) {
	if level, message, attrs := s.noted(err); message != "" {
		s.config.log.Log(context.Background(), level, message, append([]any{"sequence", s.name}, attrs...)...)
	}
}

// noted does what note does, and returns the line for the log, or no message.
func (s *Sequence) noted(err error) (level slog.Level, message string, attrs []any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := &s.failure
	if err == nil && f.err != nil && s.stats.Refills == f.refills && !f.final {
		return 0, "", nil // the calls that waited have ended: no refill has succeeded, and who asks is told why
	}
	if err == nil {
		if f.logged && f.kind.Retryable() {
			message, attrs = "sequence: recovered", []any{"after", s.config.elapsed() - f.since, "failures", f.count}
		}
		s.failure = failure{}
		return slog.LevelInfo, message, attrs
	}
	if s.closing { // Close has failed all calls
		return 0, "", nil
	}
	var exhausted *ExhaustedError
	n, kind, conflict := uint64(0), stores.KindOf(err), errors.Is(err, stores.ErrConflict)
	if errors.As(err, &exhausted) {
		n = uint64(exhausted.Asked)
	}
	if f.err == nil {
		f.since = s.config.elapsed()
	}
	ordinary := exhausted != nil && exhausted.Left > 0 || conflict && s.config.elapsed()-f.since < s.config.timeout
	f.logged = f.logged && kind == f.kind
	if !f.logged && !ordinary {
		f.logged = true
		level = slog.LevelWarn
		if kind == stores.Loss {
			level = slog.LevelError
		}
		message, attrs = "sequence: no refill", []any{"reserved", s.window.Rest(), "kind", kind.Error(), "err", err}
	}
	f.count++
	pause := time.Second
	switch {
	case conflict:
		pause = 0 // who has lost goes first: the others pause
	case f.count < 6 && kind.Retryable():
		pause = 20 * time.Millisecond << f.count
	}
	f.refills = s.stats.Refills
	f.err, f.kind, f.final, f.n, f.until = err, kind, !kind.Retryable(), n, s.config.elapsed()+pause
	s.retry = f.until
	s.calls = slices.DeleteFunc(s.calls, func(c *call) bool {
		ends := f.final && c.n >= n
		if ends {
			c.done <- result{err: s.failureFor(c.n)}
		}
		return ends
	})
	return level, message, attrs
}
