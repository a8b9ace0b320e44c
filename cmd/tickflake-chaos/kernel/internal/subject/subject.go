// Package subject has the generators that meet the faults, and the protocol by which their
// process tells their IDs.
//
// Many subjects share a process, since a start of a process takes a third of a second of an
// emulated processor. They meet the same faults: a signal is for all of them. Standard output has values of
// [Told] by encoding/gob. A generator that ends by itself counts as one failed call, and is made
// again. Standard input has commands, one per line, for all subjects: see [Restored] and [Hold]. The
// directory of a subject is its state: it is the same for each of its processes under one fault, and empty before.
//
// The calls of a burst are told at once, before the next burst begins. So a process
// that is killed has issued no more than one burst of IDs that were not told.
package subject

import (
	"bufio"
	"context"
	"encoding/gob"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/tickflake/tickflake/cmd/tickflake-chaos/kernel/internal/check"
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

// Told is what a subject tells: the calls of a burst, or one of the rest.
type Told struct {
	Subject int // its number in the process
	Calls   []check.ID
	Made    bool   // its generator is made
	Held    bool   // it issues nothing before the next command
	Log     string // a record of its log
}

// And stands between the IDs of one call.
const And = ","

// The commands. A process tells Held for each subject, and waits for Go before it makes their
// generators. Hold lets the subject finish its burst, answer with Held, and issue nothing
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

const (
	// restoreLimit is how long a subject may take to hear that its memory was restored.
	restoreLimit = 10 * time.Second
	// Again is the pause before a generator that has ended is made again.
	Again = 500 * time.Millisecond
)

// Pace: a process issues burst IDs as fast as it can, or fewer if they take longer than
// interval, and then it sleeps for interval, give or take up to jitter. It is that of about
// thirty subjects beside each other on two emulated processors. Without jitter, bursts would
// meet the milliseconds of an earlier process always or never.
const (
	burst    = 10
	interval = 10 * time.Millisecond
	jitter   = 5 * time.Millisecond
)

// teller tells of one subject. A process that nobody reads ends.
type teller struct {
	number int
	out    *gob.Encoder // of all subjects
	end    func()       // of all subjects
}

func (t teller) tell(told Told) {
	told.Subject = t.number
	if t.out.Encode(told) != nil {
		t.end()
	}
}

// Write tells a record of the log.
func (t teller) Write(record []byte) (int, error) {
	t.tell(Told{Log: string(record)})
	return len(record), nil
}

// errorText is how much of an error is told, in bytes.
const errorText = 600

// failure is a call that failed, with the text of its error on one line.
func failure(took time.Duration, err error) check.ID {
	text := strings.Join(strings.Fields(err.Error()), " ")
	return check.ID{Took: took, Err: strings.ToValidUTF8(text[:min(len(text), errorText)], "")}
}

// Serve runs the subjects of the places, in JSON, in this process, until its output is closed
// or its input ends. It returns the exit code. stood tells how long the process stood still between two instants: no call takes as long.
func Serve(places string, stood func(from, to time.Time) time.Duration) int {
	// A write to a pipe that was closed is an error then, and does not kill the process
	// before it has closed its generators.
	signal.Ignore(syscall.SIGPIPE)
	var all []Place
	if err := json.Unmarshal([]byte(places), &all); err != nil {
		fmt.Fprintf(os.Stderr, "the places of the subjects: %v\n", err)
		return 2
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	told := gob.NewEncoder(os.Stdout)
	var running sync.WaitGroup
	commands := make([]chan string, len(all))
	for i, at := range all {
		commands[i] = make(chan string, 2) // the host waits for an answer before it sends a third
		out := teller{i, told, cancel}
		at.Log = out
		at.Stood = stood
		running.Go(func() { serve(ctx, at, commands[i], out) })
	}
	lines := bufio.NewScanner(os.Stdin)
	go func() { // ends with the process, or with standard input
		defer cancel()
		for lines.Scan() {
			for _, c := range commands {
				select {
				case c <- lines.Text():
				case <-ctx.Done():
				}
			}
		}
	}()
	running.Wait()
	return 0
}

// serve runs a subject, again when it has ended.
func serve(ctx context.Context, at Place, commands <-chan string, out teller) {
	hold(ctx, commands, out)
	for ctx.Err() == nil {
		if err := live(ctx, at, commands, out); err != nil && ctx.Err() == nil {
			out.tell(Told{Calls: []check.ID{failure(0, fmt.Errorf("its generator has ended: %w", err))}})
		}
		select {
		case <-ctx.Done():
		case <-time.After(Again):
		}
	}
}

// live makes the generator, and issues until ctx ends.
func live(ctx context.Context, at Place, commands <-chan string, out teller) (err error) {
	s, ok := Find(at.Subject)
	if !ok {
		return errors.New("there is no such generator")
	}
	source, err := s.Open(ctx, at)
	if err != nil {
		return fmt.Errorf("make the generator: %w", err)
	}
	if source.Close != nil {
		defer func() { err = errors.Join(err, source.Close()) }()
	}
	out.tell(Told{Made: true})
	timer := time.NewTimer(0)
	defer timer.Stop()
	var calls []check.ID
	for {
		select {
		case <-ctx.Done():
			return nil
		case command := <-commands:
			if command == Hold {
				command = hold(ctx, commands, out)
			}
			if command == Restored && source.Restored != nil {
				bounded, cancel := context.WithTimeout(ctx, restoreLimit)
				if err := source.Restored(bounded); err != nil {
					out.tell(Told{Calls: []check.ID{failure(0, fmt.Errorf("restored: %w", err))}}) // no strategy bounds it
				}
				cancel()
			}
			continue
		case <-timer.C:
		}
		calls = calls[:0]
		for n, began := 0, time.Now(); n < burst && (n == 0 || time.Since(began) < interval); n++ {
			begin := time.Now()
			id, lead, err := source.Next(ctx)
			marker := Marker() // at once: what was returned before a snapshot is the copy's too
			end := time.Now()
			took := end.Sub(begin) - at.Stood(begin, end)
			if err != nil && ctx.Err() != nil {
				break // the call was ended from here
			}
			call := check.ID{Text: id, Took: took, Lead: lead, Marker: marker}
			if err != nil {
				call = failure(took, err)
			} else if source.Time != nil {
				call.Lag = max(0, begin.Round(0).Sub(source.Time(id)))
			}
			calls = append(calls, call)
		}
		out.tell(Told{Calls: calls})
		pause := interval - jitter + rand.N(2*jitter+1)
		if at.Busy {
			pause /= 10
		}
		timer.Reset(pause)
	}
}

// hold holds the subject until the next command, which it returns.
func hold(ctx context.Context, commands <-chan string, out teller) string {
	out.tell(Told{Held: true})
	select {
	case <-ctx.Done():
		return ""
	case command := <-commands:
		return command
	}
}
