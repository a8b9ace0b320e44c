// Package subject has the generators that meet the faults, and the protocol by which their
// process tells their IDs.
//
// Many subjects share a process, since a start of a process takes a third of a second of an
// emulated processor. They meet the same faults: a signal is for all of them. Each prints lines, which
// begin with its number in the process:
//
//	ID TOOK LEAD MARKER LAG  an ID, as text without spaces, or several with "," between, how many nanoseconds the call took, less what the
//	                       process stood still, how many the ID is ahead of the generator's clock, the marker of VMClock after the call, or 0, and how
//	                       many nanoseconds the ID's time was behind CLOCK_REALTIME when the call began
//	! TOOK TEXT            a call failed, with the text of its error
//	# TEXT                 a record of its log
//	+                      its generator is made
//	=                      it holds: it issues nothing before the next command
//
// A program of a user prints only IDs, alone in a process. A generator that ends by itself counts
// as one failed call, and is made again. Standard input has commands, one per line, for all
// subjects: see [Restored] and [Hold]. The directory of a subject is its state: it is the same for
// each of its processes under one fault, and empty before.
//
// The lines of a burst are written at once, before the next burst begins. So a process
// that is killed has issued no more than one burst of IDs that were not printed.
package subject

import (
	"context"
	"io"
	"log/slog"
	"slices"
	"time"

	"github.com/tickflake/tickflake/cmd/tickflake-chaos/kernel/peers"
	"github.com/tickflake/tickflake/internal/vmclock"
)

// Group tells which subjects belong together.
type Group string

// The groups of subjects.
const (
	Ours    Group = "tickflake"
	Peers   Group = "peer"
	Mutants Group = "mutant"
	Program Group = "program" // of the user
)

// Subject is a generator.
type Subject struct {
	Name  string // "default, monoclock, lease"; unique
	Group Group
	How   string // how it is made, as its README says: "snowflake.NewNode(1)"
	// Ordered says that the IDs of one process ascend, whatever the clock does.
	Ordered bool
	// Steady says that no step of CLOCK_REALTIME reaches it: no call fails by one.
	Steady bool
	// Restarts says that it promises no duplicate across a restart.
	Restarts bool
	// Shares says that several processes may issue beside each other from one directory.
	Shares bool
	// Leased says that it issues under a lease: a copy of its memory has the same grant.
	Leased bool
	// Reserve is how many numbers it reserves at most: a copy of its memory has the same.
	Reserve int
	// Batch is how many IDs a call returns, if it is more than one.
	Batch int
	// Bound is the longest that a call may wait by its strategy; less than 0: nothing promised.
	Bound time.Duration
	// Counted says that a call waits for the store: Bound is at least the fault's Timeout.
	Counted bool
	// Open makes the generator, in its process.
	Open func(ctx context.Context, at Place) (Source, error)
}

// Place is where a subject runs.
type Place struct {
	Subject string
	Dir     string        // its state
	Store   string        // URL of its store; "": a directory in its state
	Window  time.Duration // of a lease; 0: its default
	Timeout time.Duration // of a sequence's calls of its store; 0: countLimit
	Busy    bool          // it issues almost without a pause
	Wait    bool          // its lease waits until the clock was set
	Log     io.Writer     `json:"-"`
	// Stood is that of Serve.
	Stood func(from, to time.Time) time.Duration `json:"-"`
}

// Source is a generator that was made.
type Source struct {
	Next     next
	Time     func(id string) time.Time       // of an ID; nil: not known, or of an ID in stock
	Restored func(ctx context.Context) error // nil: it has no such call
	Close    func() error                    // nil: nothing to do
}

// The commands. A process prints Held for each subject, and waits for Go before it makes their
// generators. Hold lets the subject finish its burst, answer with "=", and issue nothing
// before the next command: a snapshot that is taken then has no call in flight. Restored
// says that the memory was restored from a snapshot. Both Restored and Go end a hold.
const (
	Hold     = "hold"
	Restored = "restored"
	Go       = "go"
)

// further are the subjects that only tests have.
var further []Subject

// Add makes further subjects known, such as mutants. It must be called before the program notices
// that it is process 1 or a subject.
func Add(s ...Subject) { further = append(further, s...) }

// All returns all subjects in the order of the report, those that were added last.
func All() []Subject { return slices.Concat(ours(), others(), further) }

// Find returns the subject with a name.
func Find(name string) (Subject, bool) {
	for _, s := range All() {
		if s.Name == name {
			return s, true
		}
	}
	return Subject{}, false
}

// Marker is what the device VMClock shows in this copy of the memory, or 0 without such a device.
func Marker() uint64 {
	page, _ := vmclock.Open(vmclock.Auto, slog.New(slog.DiscardHandler)) // no device was named, so there is no error
	return page.Marker.Load()
}

// others returns the generators of other projects. Of those without a time in their IDs no
// fault of a clock can be seen.
func others() (all []Subject) {
	for _, p := range peers.List() {
		if p.Tick == 0 {
			continue
		}
		all = append(all, Subject{Name: p.Name, Group: Peers, How: p.How, Ordered: p.Ordered, Restarts: p.Restarts, Bound: -1,
			Open: func(context.Context, Place) (Source, error) {
				gen, err := p.New(peers.System)
				return Source{Time: p.Time, Next: func(context.Context) (string, time.Duration, error) {
					id, err := gen.Next()
					return id, max(p.Time(id).Sub(peers.System.Now()), 0), err
				}}, err
			}})
	}
	return all
}
