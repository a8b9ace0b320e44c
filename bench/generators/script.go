package generators

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/tickflake/tickflake/bench/report"
	"github.com/tickflake/tickflake/chaos_test/kernel/peers"
	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/generator/generatortest"
	"github.com/tickflake/tickflake/lease/leasetest"
	"github.com/tickflake/tickflake/monoclock/clocktest"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/strategies"
)

// Subject is a generator that scripts of package generatortest can drive, in virtual time.
//
// A peer that takes a clock, or a time per call, gets the virtual clock of clocktest and meets
// every fault. One that reads package time runs in a bubble of testing/synctest, whose time is
// virtual but never wrong: it meets exhaustion, the end of time, a clock before its epoch, and
// restarts. A bubble's time passes only when every goroutine in it waits, so a peer that spins
// never leaves its loop. Each bubble is in a process of its own, which is ended at a limit of real
// time. A restart is a new generator with the same settings; where the state is in package
// variables, or the clock steps back between two processes, the processes are real.
//
// No peer may issue an ID twice, or one whose time has wrapped. A call may take as long as the
// peer's documentation says, and an ID be as far ahead of the clock; where it says nothing, not at
// all. Order is judged where it is promised whatever the clock does. A generator that a reader
// added is held to nothing but that no ID comes twice.
type Subject struct {
	peers.Peer // Name and Tick, and of a peer what is known of it
	Group      report.Group

	restarts bool // a new generator is a new process
	// run puts it through a script, and keeps the IDs if keep is set. It must be called in a
	// bubble if it is driven by package time.
	run func(script generatortest.Script, keep bool) life
}

// life is the outcome of a script.
type life struct {
	Result generatortest.Result `json:"result"`
	IDs    []string             `json:"ids,omitempty"` // of single calls, in order, if they were kept
}

// runner returns the run of a [Subject].
func runner[ID cmp.Ordered](s generatortest.Subject[ID], restarts bool) func(generatortest.Script, bool) life {
	return func(script generatortest.Script, keep bool) life {
		var l life
		var mu sync.Mutex // guards l.IDs
		var start func(clock *clocktest.Virtual) (generatortest.Process[ID], error)
		start = func(clock *clocktest.Virtual) (generatortest.Process[ID], error) {
			process, err := s.New(clock)
			if err != nil || process.Next == nil {
				return process, err
			}
			if restarts {
				process.Restart = func() (generatortest.Process[ID], error) { return start(clock) }
			}
			if next := process.Next; keep {
				process.Next = func() (ID, error) {
					id, err := next()
					mu.Lock()
					defer mu.Unlock()
					if err == nil {
						l.IDs = append(l.IDs, fmt.Sprint(id))
					}
					return id, err
				}
			}
			return process, nil
		}
		subject := s
		subject.New = start
		// The suite expects order across a restart, which no peer promises.
		subject.Claim.Unordered = s.Claim.Unordered || slices.ContainsFunc(script.Steps, func(s generatortest.Step) bool {
			return s.Do == generatortest.Restart || s.Do == generatortest.Crash
		})
		l.Result = generatortest.RunScript(subject, script)
		return l
	}
}

// Peers returns the other generators, those that a reader added last.
func Peers() []Subject {
	var all []Subject
	for _, p := range driven() {
		// An ID without a time meets no fault of a clock. A second configuration differs in its
		// randomness only.
		if p.Tick > 0 && !strings.Contains(p.Name, ", ") {
			all = append(all, peer(p))
		}
	}
	return all
}

func peer(p peers.Peer) Subject {
	claim := generatortest.Claim{Unordered: !p.Ordered}
	switch {
	case p.Module == "":
		anything := generatortest.Bound{Wait: generatortest.Forever, Borrow: generatortest.Forever}
		claim.Exhausted, claim.Behind, p.Claim = anything, anything, "no ID twice"
	case p.Full == peers.Waits:
		claim.Exhausted.Wait = p.Tick
	case p.Full == peers.Ahead:
		claim.Exhausted.Borrow, claim.Behind.Borrow = generatortest.Forever, generatortest.Forever
	}
	s := generatortest.Subject[string]{Name: p.Name, Claim: claim, Time: p.Time, Tick: p.Tick, Epoch: p.Epoch, End: p.End, SystemTime: p.Driven == peers.Package,
		New: func(clock *clocktest.Virtual) (generatortest.Process[string], error) {
			at := peers.System
			if clock != nil {
				at = clock
			}
			g, err := p.New(at)
			if err == nil && p.Integer { // as texts that sort like the numbers
				g.Next = func() (string, error) {
					id, err := g.Integer()
					return fmt.Sprintf("%020d", id), err
				}
			}
			return generatortest.Process[string]{Next: g.Next}, err
		}}
	if p.EndErr != nil {
		s.CheckError = func(err error) error {
			if !errors.Is(err, p.EndErr) {
				return fmt.Errorf("the error is not %v", p.EndErr)
			}
			return nil
		}
	}
	return Subject{Peer: p, Group: report.Peers, restarts: !p.Shared, run: runner(s, !p.Shared)}
}

// Setting is the clock and the source of the node number under a strategy of tickflake.
type Setting string

// The settings.
const (
	InLease Setting = "lease"     // a monoclock, and a leased node number, with the cells in memory
	InMono  Setting = "monoclock" // a monoclock, and a fixed node number
	InRaw   Setting = "raw clock" // the wall clock, and a fixed node number
)

// Tickflake returns tickflake in the default layout, with the strategy of the name.
func Tickflake(name string, s strategies.Strategy, in Setting) Subject {
	layout := snowflake.Default()
	through, restarts := "lease.WithClock; the lease's cells are in memory", in != InLease
	run := leasetest.Leased{Strategy: s, Clock: generatortest.Mono, Layout: layout}.Subject()
	if restarts {
		through = "generator.WithClock; a fixed node number does not promise uniqueness across a restart"
		run = generatortest.Tickflake(s, map[Setting]generatortest.ClockKind{InMono: generatortest.Mono, InRaw: generatortest.Raw}[in], generator.WithLayout(layout))
	}
	return tickflake(fmt.Sprintf("tickflake %s, %s", name, in), through, run, restarts)
}

// Starting returns tickflake with a sequence start and a fixed node number. It waits when
// a tick is used up.
func Starting(start strategies.SequenceStart) Subject {
	return tickflake(fmt.Sprintf("tickflake, start %s", start), "generator.WithClock", generatortest.Tickflake(strategies.Wait(), generatortest.Mono,
		generator.WithLayout(snowflake.Default()), generator.WithSequenceStart(start)), false)
}

func tickflake(name, through string, s generatortest.Subject[snowflake.ID], restarts bool) Subject {
	s.Name = name
	low := func(id string) (byte, error) {
		n, err := strconv.ParseInt(id, 10, 64)
		return byte(n), err
	}
	return Subject{Group: report.Ours, restarts: restarts, run: runner(s, restarts),
		Peer: peers.Peer{Name: name, Driven: peers.Supplied, Through: through, Ordered: !s.Claim.Unordered, Tick: s.Tick, Low: low, End: s.End}}
}

// IDs has the subject issue n IDs in virtual time, one in each period from a whole second on,
// and returns the lowest byte of each. A process that a bubble needs must answer within
// limit of real time.
func (s Subject) IDs(ctx context.Context, n int, period, limit time.Duration) ([]byte, error) {
	text := fmt.Sprintf("begin 2026-06-01T12:00:00Z; ids %d over %s", n, time.Duration(n)*period)
	l, err := s.live(ctx, text, true, limit)
	if err != nil {
		return nil, err
	}
	if len(l.IDs) < n { // the suite adds a call at the end
		return nil, fmt.Errorf("%s issued %d IDs of %d: %s", s.Name, len(l.IDs), n, cmp.Or(l.Result.Skipped, l.Result.Summary()))
	}
	low := make([]byte, n)
	for i, id := range l.IDs[:n] {
		if low[i], err = s.Low(id); err != nil {
			return nil, fmt.Errorf("%s issued %q: %w", s.Name, id, err)
		}
	}
	return low, nil
}
