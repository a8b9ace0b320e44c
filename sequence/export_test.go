package sequence

import (
	"slices"

	"github.com/tickflake/tickflake/internal/segment"
	"github.com/tickflake/tickflake/internal/window"
	"github.com/tickflake/tickflake/stores"
)

// The simulation of a fleet sees and replaces these parts of a Sequence.

// Hook replaces the random names, the decision, and the wait of a call for others of its
// process.
func (s *Sequence) Hook(random func() string, decide func(segment.State, segment.Cell) segment.Decision, await func(ready func() bool)) {
	s.random, s.decide, s.await = random, decide, await
}

// Sealed returns a floor with the digest that an export would give it.
func Sealed(f Floor) Floor {
	f.SHA256 = f.digest()
	return f
}

// Seen is the most that the Sequence has read or owned.
func (s *Sequence) Seen() segment.Seen { return s.seen }

// Closing is the state by which Close would give the rest back now.
func (s *Sequence) Closing() segment.State {
	state := s.stateOf()
	state.Closing, state.Want, state.Need = true, 0, 0
	return state
}

// Cell is the cell as the Sequence has read it last.
func (s *Sequence) Cell() segment.Cell { return s.cell }

// ServeAll gives numbers of the present write to every call that waits.
func (s *Sequence) ServeAll() { s.upto = s.arrived }

// Serve gives the first numbers of a range to the calls that wait, without the window.
func (s *Sequence) Serve(r segment.Range) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.serveOrdered(r.From, r.To, s.upto) {
		c.done <- result{index: c.index}
	}
}

// Clone returns a Sequence with a copy of s's memory, as a snapshot that is restored beside
// its original has, on a store of its own.
func (s *Sequence) Clone(store stores.Store, options ...Option) *Sequence {
	config, err := configure(options)
	if err != nil {
		panic(err)
	}
	c := &Sequence{
		window: window.NewNumbers(), first: s.first, stride: s.stride,
		config: config, store: store, name: s.name, ordered: s.ordered, random: s.random, decide: s.decide,
		done: make(chan struct{}), turn: make(chan struct{}, 1),
		cell: s.cell, doubt: s.doubt, owned: slices.Clone(s.owned), seen: s.seen,
		pending: slices.Clone(s.pending), base: s.base, upto: s.upto, shown: s.shown, rate: s.rate,
	}
	c.ring.next, c.ring.prev = &c.ring, &c.ring
	for _, r := range s.owned {
		c.window.Queue(window.Range{From: max(r.From, s.window.Used()), To: r.To}, r.From)
	}
	c.counters.granted.Store(c.window.Rest()) // it has issued nothing
	return c
}
