package generators

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tickflake/tickflake/bench/measure"
	"github.com/tickflake/tickflake/bench/report"
	"github.com/tickflake/tickflake/cmd/tickflake-chaos/kernel/peers"
	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/generator/generatortest"
	"github.com/tickflake/tickflake/monoclock/clocktest"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/strategies"
)

// Subject is a generator on a virtual clock, for the scripts of package generatortest.
//
// No peer may issue an ID twice, or one whose time has wrapped. A call may take as long as the
// peer's documentation says, and an ID be as far ahead of the clock; where it says nothing, not at
// all. Order is judged where it is promised whatever the clock does. A restart is a new generator with the
// same settings, unless its state is in package variables.
type Subject struct {
	peers.Peer // Name and Tick, and of a peer what is known of it
	Group      report.Group
	// Run puts it through a script. It is nil if the subject reads package time, which no script
	// changes.
	Run func(generatortest.Script) generatortest.Result

	open func(*clocktest.Virtual) (next func() (string, error), err error)
}

// subject makes a [Subject] of one of the suite.
func subject[ID cmp.Ordered](p peers.Peer, group report.Group, s generatortest.Subject[ID], restarts bool) Subject {
	s.Name = p.Name
	made := Subject{Peer: p, Group: group, open: func(clock *clocktest.Virtual) (func() (string, error), error) {
		process, err := s.New(clock)
		return func() (string, error) {
			id, err := process.Next()
			return fmt.Sprint(id), err
		}, err
	}}
	suite := s
	if restarts {
		suite.New = func(clock *clocktest.Virtual) (generatortest.Process[ID], error) {
			process, err := s.New(clock)
			process.Restart = func() (generatortest.Process[ID], error) { return suite.New(clock) }
			return process, err
		}
	}
	made.Run = func(script generatortest.Script) generatortest.Result {
		subject := suite
		// The suite expects order across a restart, which no peer promises.
		subject.Claim.Unordered = s.Claim.Unordered || slices.ContainsFunc(script.Steps, func(s generatortest.Step) bool {
			return s.Do == generatortest.Restart || s.Do == generatortest.Crash
		})
		return generatortest.RunScript(subject, script)
	}
	return made
}

// Peers returns the other generators.
func Peers() []Subject {
	var all []Subject
	for _, p := range peers.List() {
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
	case p.Full == peers.Waits:
		claim.Exhausted.Wait = p.Tick
	case p.Full == peers.Ahead:
		claim.Exhausted.Borrow, claim.Behind.Borrow = generatortest.Forever, generatortest.Forever
	}
	s := generatortest.Subject[string]{Claim: claim, Time: p.Time, Tick: p.Tick, Epoch: p.Epoch, End: p.End,
		New: func(clock *clocktest.Virtual) (generatortest.Process[string], error) {
			g, err := p.New(clock)
			if err == nil && p.Integer { // as texts that sort like the numbers
				g.Next = func() (string, error) {
					id, err := g.Integer()
					return fmt.Sprintf("%020d", id), err
				}
			}
			return generatortest.Process[string]{Next: g.Next}, err
		}}
	made := subject(p, report.Peers, s, !p.Shared)
	if p.PackageTime {
		made.Run = nil
	}
	return made
}

// Fixed returns tickflake with the default strategy and layout, on a clock, and with a fixed node number.
func Fixed(clock generatortest.ClockKind) Subject {
	return tickflake(fmt.Sprint("tickflake, ", clock), generatortest.Tickflake(strategies.Default(), clock, generator.WithLayout(snowflake.Default())), true)
}

// Leasing returns tickflake with the default strategy and layout, on a monoclock, with a node number that is leased of cells in
// memory.
func Leasing() Subject {
	return tickflake("tickflake, mono, lease", generatortest.Leased{Strategy: strategies.Default(), Clock: generatortest.Mono, Layout: snowflake.Default()}.Subject(), false)
}

// Starting returns tickflake with a sequence start and a fixed node number. It waits when
// a tick is used up.
func Starting(start strategies.SequenceStart) Subject {
	return tickflake(fmt.Sprintf("tickflake, start %s", start), generatortest.Tickflake(strategies.Wait(), generatortest.Mono,
		generator.WithLayout(snowflake.Default()), generator.WithSequenceStart(start)), false)
}

func tickflake(name string, s generatortest.Subject[snowflake.ID], restarts bool) Subject {
	low := func(id string) (byte, error) {
		n, err := strconv.ParseInt(id, 10, 64)
		return byte(n), err
	}
	return subject(peers.Peer{Name: name, Ordered: !s.Claim.Unordered, Tick: s.Tick, Low: low, End: s.End}, report.Ours, s, restarts)
}

// Run puts subjects through the catalogue, and returns the results of each by fault. When ctx ends,
// the rest is skipped.
//
// With several callers at once it is unknown who waits for what, so the longest stall of
// such a script is that of another run with one caller.
func Run(ctx context.Context, list []Subject) []map[string]generatortest.Result {
	all := make([]map[string]generatortest.Result, len(list))
	_ = measure.Together(len(list), func(i int) error { // which does not fail
		all[i] = map[string]generatortest.Result{}
		for _, fault := range generatortest.Catalogue() {
			got := generatortest.Result{Skipped: "the run was interrupted"}
			if ctx.Err() == nil {
				got = list[i].Run(fault.Script)
				if fault.Script.Callers > 1 {
					alone := fault.Script
					alone.Callers = 1
					got.LongestStall = list[i].Run(alone).LongestStall
				}
			}
			got.Fault, got.Name = fault.Fault, fault.Name
			all[i][fault.Fault] = got
		}
		return nil
	})
	return all
}

// IDs has the subject issue n IDs, one in each period, and returns the lowest byte of each. The time
// is virtual, unless the subject reads package time.
func (s Subject) IDs(ctx context.Context, n int, period time.Duration) ([]byte, error) {
	clock := clocktest.NewVirtual(time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC))
	next, err := s.open(clock)
	low := make([]byte, n)
	for i := range low {
		if err = cmp.Or(err, ctx.Err()); err != nil {
			break
		}
		if s.PackageTime {
			time.Sleep(period)
		} else {
			clock.Advance(period)
		}
		var id string
		if id, err = next(); err == nil {
			low[i], err = s.Low(id)
		}
	}
	return low, err
}
