package sequence

import (
	"github.com/tickflake/tickflake/internal/count"
	"github.com/tickflake/tickflake/stores"
)

// The simulation of a fleet sees and replaces these parts of a Sequence.

// Hook replaces the random names, and the wait of a call for others of its process. It returns the ID of the sequence.
func (s *Sequence) Hook(random func() string, await func(ready func() bool)) (id string) {
	s.random, s.await, s.ending.Inline = random, await, true
	return s.machine.Known().Record.ID
}

// Machine is a copy of the machine of the Sequence.
func (s *Sequence) Machine() count.Machine { return s.machine }

// Used is the first index that the window has not handed out.
func (s *Sequence) Used() uint64 { return s.window.Used() }

// Clone returns a Sequence with a copy of what s knows, as a snapshot that is restored beside
// its original has, on a store of its own. It has not the numbers of the window, which Restored
// takes back.
func (s *Sequence) Clone(store stores.Store, options ...Option) *Sequence {
	config, err := configure(options)
	if err != nil {
		panic(err)
	}
	return newSequence(config, store, s.name, s.machine)
}
