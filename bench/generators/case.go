// Package generators has the generators that the report compares: those of tickflake, those of
// others, and the least that an ID can cost.
//
// You need these names: [Ours], [Others] and [Floor] return cases to measure, which a [Set] makes
// loads of. [Peers], [Fixed] and [Leasing] return generators to put through the faults of package
// generatortest by [Run].
package generators

import (
	"context"
	"time"

	"github.com/tickflake/tickflake/bench/measure"
	"github.com/tickflake/tickflake/bench/report"
)

// Case is a way to make IDs, with the generator's own settings. Where the format of the IDs
// limits the rate, there is a second case with a wider sequence, if the generator allows it.
type Case struct {
	Name  string // unique
	Group report.Group
	Limit Limit
	Note  string
	// Clockless says that it reads no clock, as counted numbers do not.
	Clockless bool
	// Unit is how many IDs a call makes; 0 stands for 1.
	Unit int
	// Open returns a new source of IDs. The caller closes it; ctx bounds how long Open
	// takes.
	Open func(ctx context.Context) (Source, error)
}

// Source makes the IDs of one case, as one process does.
type Source struct {
	// Loop returns a loop for one goroutine. Loops of one source may run at the same
	// time, and share what the generator shares.
	Loop func() Loop
	// Close ends the source. It is nil if there is nothing to end.
	Close func() error
}

// Loop makes n calls, one after the other.
type Loop func(n int) error

// loop calls next. So each generator is called through one function value, and the floor too.
func loop[T any](next func() (T, error)) Loop {
	return func(n int) error {
		for range n {
			if _, err := next(); err != nil {
				return err
			}
		}
		return nil
	}
}

// shared is a source whose loops are all the same.
func shared(l Loop, err error) (Source, error) { return Source{Loop: func() Loop { return l }}, err }

// Limit is how many different IDs a format has: so many in each unit of its time. A generator
// that is asked for more waits. The zero Limit is none: it does not wait.
type Limit struct {
	IDs int
	Per time.Duration
}

// NanosecondsPerID is the time per ID at the limit, or 0 if there is none.
func (l Limit) NanosecondsPerID() float64 { return float64(l.Per) / max(float64(l.IDs), 1) }

// Binds reports whether the limit may be what a loop measures: an ID at the limit takes longer
// than 50 ns, which is less than most generators need.
func (l Limit) Binds() bool { return l.NanosecondsPerID() > 50 }

// Set is loads of cases, and what to close after them.
type Set struct {
	Target time.Duration // of a turn
	// Places is how many sources a load has, at different addresses, which the turns take in
	// turn: how fast goroutines share a word depends on its address.
	Places  int
	Loads   []*measure.Load
	closers measure.Closers
}

// Open opens a source of the case until [Set.End].
func (s *Set) Open(ctx context.Context, c Case) (Source, error) {
	source, err := c.Open(ctx)
	if source.Close != nil {
		s.closers.Add(source.Close)
	}
	return source, err
}

// Load makes a load of goroutines that share a source of the case, or of as many as there are
// places. base is the case that it is compared with, or nil.
func (s *Set) Load(ctx context.Context, c Case, base *Case, goroutines int) *measure.Load {
	b := &measure.Batch{Unit: c.Unit, Target: s.Target}
	l := &measure.Load{Row: c.Name, Group: c.Group, Note: c.Note, Turn: b.Turn}
	if c.Limit.Binds() { // whole ticks, after what is left of one
		b.Unit, b.LeadIn = c.Limit.IDs, c.Limit.IDs+goroutines
	}
	for range max(s.Places, 1) {
		source, err := s.Open(ctx, c)
		if err != nil {
			l.Err = err
			break
		}
		loops := make([]Loop, goroutines)
		for i := range loops {
			loops[i] = source.Loop()
		}
		b.Do = append(b.Do, func(_ context.Context, n int) (measure.Figures, error) { return nil, together(loops, n/max(c.Unit, 1)) })
	}
	if base != nil {
		l.Base = s.Load(ctx, *base, nil, goroutines)
	}
	return l
}

// Add makes a load that the tables show.
func (s *Set) Add(ctx context.Context, c Case, base *Case, goroutines int) *measure.Load {
	l := s.Load(ctx, c, base, goroutines)
	s.Loads = append(s.Loads, l)
	return l
}

// End closes the sources, and notes what has failed.
func (s *Set) End(out *report.Section) {
	measure.Failed(out, s.Loads)
	if err := s.closers.Close(); err != nil {
		out.Note("A generator could not be closed: %v.", err)
	}
}

// together runs the loops at the same time, each in a goroutine, with n calls between them. Those that begin a few
// microseconds late are no matter in batches of milliseconds.
func together(loops []Loop, n int) error {
	if len(loops) == 1 {
		return loops[0](n)
	}
	return measure.Together(len(loops), func(i int) error { return loops[i](n*(i+1)/len(loops) - n*i/len(loops)) })
}
