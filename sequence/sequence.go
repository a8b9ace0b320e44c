package sequence

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tickflake/tickflake/internal/cell"
	"github.com/tickflake/tickflake/internal/count"
	"github.com/tickflake/tickflake/internal/drive"
	"github.com/tickflake/tickflake/internal/pause"
	"github.com/tickflake/tickflake/internal/window"
	"github.com/tickflake/tickflake/stores"
	_ "github.com/tickflake/tickflake/stores/directory" // the store that needs no server
)

// Sequence issues the numbers of one sequence. Make one with [Open] and share it: its methods
// are safe for use by any number of goroutines, and one is enough for a process. Any number
// of them may share a store. It has no goroutine while no number is needed. The zero Sequence
// is not usable.
//
// A number that was returned is never issued again, by any process. A call that fails, or
// whose answer the caller loses, may have used up numbers: every call can be repeated.
type Sequence struct {
	// Set by Open and not written again.
	window *window.Numbers // hands out the indexes; always empty in ordered mode
	first  int64           // the number of index 0
	stride int64
	*config
	ordered bool
	done    chan struct{} // closed by the first Close
	random  func() string // draws names of writes

	largest atomic.Uint64 // batch that was asked for

	mu       sync.Mutex    // guards the fields from here to turn, and the window, but for Quick
	calls    []*call       // the calls that wait, in their order
	busy     bool          // a goroutine refills
	retry    time.Duration // elapsed time before which a refill that no call waits for is not begun
	arrived  uint64        // calls that ever waited
	failure  failure       // the last, if no refill has succeeded since
	closing  bool          // set by the first Close, before the window is sealed, and never reset
	settled  bool          // Close has given the rest back, or could not
	restored bool          // the memory is a copy, the window was revoked, and the machine is to be told
	lost     bool          // the store went back, and nothing was granted since
	stats    Stats         // the counts; Issued without the numbers out of the window
	received uint64        // numbers that were granted and not given back
	mark     uint64        // the marker of the page in the memory that all grants since were made to
	rate     rate
	pauses   pauses
	// machine decides what is written to the store. What it says has happened is carried out
	// before mu is unlocked, so that no Close and no Restored comes in between.
	machine count.Machine
	// In ordered mode: the last call that a write has served, and how many calls waited when
	// that write returned, the served ones included.
	served, regulars uint64

	turn   drive.Turn // its owner alone runs the machine
	ending drive.Ending
}

// failure is why there is no number.
type failure struct {
	err     error         // what a call fails with
	n       uint64        // a call for n numbers or more fails, if this is final
	final   bool          // a retry at once does not help
	until   time.Duration // elapsed time of the next try
	count   int           // failures in a row
	since   time.Duration // elapsed time of the first of the failures in a row
	kind    stores.Kind   // the kind of the last failure
	logged  bool          // the log was told of a failure of this kind
	refills uint64        // refills that had succeeded by then
}

// Open opens a sequence that exists, or, with [WithDefinition], creates it. To open a period, such as
// "orders.2027", give no definition: the period has that of its sequence, and Open makes it if it does not
// exist. Open reads the sequence once, and reserves nothing before the first number is asked for. The Sequence
// does not close the store.
//
// The error is an [*stores.OptionError] if an argument or option is out of range or nil, and a
// [*DefinitionError] if the sequence exists with another definition than that of WithDefinition. Else it wraps
//
//   - [ErrNotFound]: there is no such sequence, and no WithDefinition; or, with [ErrDeleted], it was deleted:
//     only [Create] makes it anew, since it may be continued in another store,
//   - [ErrByPeriod]: the sequence is by period,
//   - [stores.ErrWentBack]: the store lost writes, and nothing is granted until [Set],
//   - [stores.ErrDamaged]: the cell cannot be read, as after it was edited by hand,
//   - [ErrStore]: the store failed.
func Open(ctx context.Context, store stores.Store, name string, options ...Option) (*Sequence, error) {
	c, err := configure(store, name, options)
	if err != nil {
		return nil, err
	}
	if c.definition != nil && c.definition.Period != (Period{}) {
		return nil, &stores.OptionError{Option: "WithDefinition", Err: fmt.Errorf("it is by period, %s: want OpenPeriods", c.definition.Period)}
	}
	var found count.Cell
	if c.definition != nil {
		found, err = c.create(ctx, *c.definition, creation{onDemand: true})
	} else if found, err = c.read(ctx); err == nil && found.Version == 0 {
		found, err = c.demand(ctx, c.named)
	}
	switch {
	case err != nil:
		return nil, err
	case found.Record.Deleted:
		return nil, c.gone()
	case found.Record.Period != "":
		return nil, byPeriodError(name, found.Record)
	case found.Record.Lost:
		return nil, lostError(name, found.Record, marked)
	}
	r := found.Record
	s := &Sequence{
		window: window.NewNumbers(), first: r.Start + r.Offset, stride: r.Stride,
		config: c, ordered: Mode(r.Mode) == Ordered, done: make(chan struct{}),
		random: cell.Token, mark: c.page.Marker.Load(), turn: drive.NewTurn(), stats: Stats{VMClock: c.page.By},
	}
	s.window.Watch(c.page.Marker)
	s.machine = count.New(found, s.ordered)
	return s, nil
}

// Next returns the next number. In segmented mode it mostly takes a number that is reserved
// already, and does not look at ctx. Else it waits for the store until ctx ends, or, if ctx
// has no deadline, for the timeout of [WithTimeout].
//
// The error is an [*ExhaustedError] when the sequence is at its maximum. Else it wraps
//
//   - the error of ctx if it ended, or [ErrTimeout], and the last error of the store,
//   - [stores.ErrWentBack]: the store lost writes, and numbers may have been issued twice;
//     nothing is granted until [Set],
//   - [stores.ErrDamaged]: the cell cannot be read, as after it was edited by hand,
//   - [ErrStore] with an error of the kind [stores.Permanent]: a retry does not help,
//   - [ErrDeleted] or [ErrClosed].
func (s *Sequence) Next(ctx context.Context) (int64, error) {
	if index, ok := s.window.Quick(1); ok {
		return s.first + int64(index)*s.stride, nil
	}
	return s.take(ctx, 1)
}

// NextN takes n numbers in a row, and returns the first. The others follow it, each one
// stride above the one before. n is 1 or more; if that many are not left up to the maximum,
// the error is an [*ExhaustedError], and nothing is taken. When fewer than n reserved numbers
// are in a row, these are given up, which [Stats] counts. Else it is as [Sequence.Next].
func (s *Sequence) NextN(ctx context.Context, n int64) (first int64, err error) {
	if err := checkCount(n); err != nil {
		return 0, err
	}
	if index, ok := s.window.Quick(uint64(n)); ok {
		first = s.number(index)
	} else if first, err = s.take(ctx, uint64(n)); err != nil {
		return 0, err
	}
	s.raiseLargest(uint64(n))
	return first, nil
}

// checkCount returns an error unless a call can ask for n numbers.
func checkCount(n int64) error {
	if n < 1 || n > window.MaxNumbers {
		return &stores.OptionError{Option: "n", Err: fmt.Errorf("%d numbers: want 1 to %d", n, int64(window.MaxNumbers))}
	}
	return nil
}

func (s *Sequence) raiseLargest(n uint64) {
	for old := s.largest.Load(); old < n && !s.largest.CompareAndSwap(old, n); old = s.largest.Load() {
	}
}

// take is NextN when Quick has failed.
func (s *Sequence) take(ctx context.Context, n uint64) (int64, error) {
	if index, ok := s.count(n); ok {
		return s.number(index), nil
	}
	index, err := s.wait(ctx, n)
	if err != nil {
		return 0, err
	}
	return s.number(index), nil
}

// count takes n reserved numbers in a row, if there are so many.
func (s *Sequence) count(n uint64) (first uint64, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	first, more, ok := s.window.Count(n)
	if ok && more {
		s.ask()
	}
	return first, ok
}

func (s *Sequence) number(index uint64) int64 { return s.first + int64(index)*s.stride }

// Name returns the name of the sequence.
func (s *Sequence) Name() string { return s.name }

// Definition returns the definition as this process has read it last, with its defaults
// filled in. Its steps and maximum may have changed since.
func (s *Sequence) Definition() Definition {
	s.mu.Lock()
	defer s.mu.Unlock()
	return definitionOf(s.machine.Known().Record)
}

// Err returns why the last refill failed, or nil if none has failed since the last one that
// succeeded. Numbers that are reserved can still be taken, unless the store went back. It
// never waits for the store.
func (s *Sequence) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing {
		return ErrClosed
	}
	return s.failure.err
}

// Stats returns the counts so far. Those of numbers are read one after the other, not at one instant. It
// never waits for the store.
func (s *Sequence) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	stats, r := s.stats, s.machine.Known().Record
	used := s.window.Used()
	stats.Issued += s.window.Taken(used)
	if stats.Lost = s.received - stats.Issued; !s.settled {
		stats.Lost -= s.machine.Unused(used)
	}
	stats.Rate = s.rate.now(s.config.elapsed(), stats.Issued)
	stats.Last, stats.Left = r.LastNumber(), int64(r.Left())
	if s.ordered {
		return stats
	}
	stats.Step = int64(clamp(s.rate.step, r))
	stats.GapBound = 2*r.MaxStep + int64(min(s.largest.Load(), window.MaxNumbers/2))
	if !s.settled {
		stats.Reserved = int64(s.window.Rest())
	}
	return stats
}

// issued is how many numbers were handed out. The caller holds mu.
func (s *Sequence) issued() uint64 {
	return s.stats.Issued + s.window.Taken(s.window.Used())
}

// noNumber is the error of a call whose ctx has ended, or whose timeout has. It wraps the last
// error of the store.
func (s *Sequence) noNumber(ctx context.Context) error {
	reason, errs := fmt.Sprintf("within %s", s.config.timeout), []error{ErrTimeout}
	last := s.Err()
	if ctx.Err() != nil {
		errs[0], reason = pause.Ended(ctx), "before the call's context ended"
		if over := errs[0].Error(); last == nil || !strings.Contains(last.Error(), over) {
			reason += ": " + over
		}
	}
	if last == nil {
		reason += ": the store has not answered yet"
	} else {
		reason, errs = reason+": "+last.Error(), append(errs, last)
	}
	return drive.Wrap(fmt.Sprintf("sequence %q: no number %s", s.name, reason), errs...)
}
