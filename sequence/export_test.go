package sequence

import (
	"context"
	"time"

	"github.com/tickflake/tickflake/internal/count"
	"github.com/tickflake/tickflake/internal/drive"
	"github.com/tickflake/tickflake/internal/window"
	"github.com/tickflake/tickflake/stores"
)

// The simulation of a fleet sees and replaces these parts of a Sequence.

// Driven is what a Sequence runs.
type Driven = driven

// Hook replaces the random names, the machine, and the wait of a call for others of its process.
func (s *Sequence) Hook(random func() string, machine func(*count.Machine) Driven, await func(ready func() bool)) {
	s.random, s.driven, s.await = random, machine(&s.machine), await
	s.ending.Inline = true
}

// WithPolling makes a Sequence without goroutines: Poll reserves the next segment.
func WithPolling() Option { return func(c *config) { c.polling = true } }

func (s *Sequence) Poll(ctx context.Context) (next time.Duration, err error) { return s.polled(ctx) }

// Machine is a copy of the machine of the Sequence.
func (s *Sequence) Machine() count.Machine { return s.machine }

// Used is the first index that the window has not handed out.
func (s *Sequence) Used() uint64 { return s.window.Used() }

// Arrived is the number of the last call that has waited.
func (s *Sequence) Arrived() uint64 { return s.arrived }

// Serve gives the first numbers of a range to the calls that wait, without the window.
func (s *Sequence) Serve(r count.Range) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.serveOrdered(r.From, r.To, s.arrived) {
		c.done <- result{index: c.index}
	}
}

// Clone returns a Sequence with a copy of what s knows, as a snapshot that is restored beside
// its original has, on a store of its own. It has not the numbers of the window, which Restored
// takes back.
func (s *Sequence) Clone(store stores.Store, options ...Option) *Sequence {
	config, err := configure(options)
	if err != nil {
		panic(err)
	}
	c := &Sequence{
		window: window.NewNumbers(), first: s.first, stride: s.stride,
		config: config, store: callsOf(store, s.name, config.timeout), name: s.name, ordered: s.ordered, done: make(chan struct{}),
		random: s.random, machine: s.machine, rate: s.rate, turn: drive.NewTurn(),
	}
	c.driven = &c.machine
	c.ring.next, c.ring.prev = &c.ring, &c.ring
	return c
}
