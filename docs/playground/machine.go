//go:build js && wasm

package main

import (
	"errors"
	"sync"
	"time"

	"github.com/tickflake/tickflake/generator/generatortest"
	"github.com/tickflake/tickflake/monoclock/clocktest"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/strategies"
)

var layout = snowflake.Default()

// subjects are the generators that are compared, both with the default layout.
func subjects(s strategies.Strategy, kind generatortest.ClockKind, pinned bool) []generatortest.Subject[snowflake.ID] {
	ours := generatortest.Leased{
		Strategy: s, Clock: kind, Layout: layout, AnyNode: !pinned,
	}.Subject()
	ours.Name = "tickflake with a store"
	return []generatortest.Subject[snowflake.ID]{{
		Name: "bwmarrin's rule",
		New: func(clock *clocktest.Virtual) (generatortest.Process[snowflake.ID], error) {
			return common(clock), nil
		},
		Claim: generatortest.Claim{Exhausted: generatortest.Bound{Wait: generatortest.Forever}},
		Time:  ours.Time, Tick: ours.Tick,
	}, ours}
}

// common is a process with the rule of bwmarrin/snowflake: the wall clock of its start and
// monotonic time since, a sequence that begins at 0 in each tick, and node 0.
func common(clock *clocktest.Virtual) generatortest.Process[snowflake.ID] {
	base := clock.Wall().Add(-clock.Elapsed())
	now := func() time.Time { return base.Add(clock.Elapsed()) }
	var mu sync.Mutex
	var last time.Time
	var sequence int64
	return generatortest.Process[snowflake.ID]{
		Now: now,
		Next: func() (snowflake.ID, error) {
			mu.Lock()
			defer mu.Unlock()
			tick := now().Truncate(layout.Tick)
			if tick.Equal(last) {
				sequence = (sequence + 1) % layout.Capacity().IDsPerTick
				for sequence == 0 && !tick.After(last) {
					clock.Sleep(layout.Tick)
					tick = now().Truncate(layout.Tick)
				}
			} else {
				sequence = 0
			}
			last = tick
			return layout.Compose(tick, 0, sequence)
		},
		Restart: func() (generatortest.Process[snowflake.ID], error) { return common(clock), nil },
	}
}

// machine is a computer with a clock that goes wrong, and the process of a generator on it.
type machine struct {
	name    string
	clock   *clocktest.Virtual
	process generatortest.Process[snowflake.ID]
	seen    map[snowflake.ID]bool
	passed  time.Duration // true time of the page
	slept   time.Duration // in suspends, which are no time of the page
	shown   view
}

// view is what the page draws of a machine. Calls are the new ones.
type view struct {
	Name                        string
	Wall                        time.Time
	Issued, Duplicates, Refused int
	Waiting                     bool // in a call, until the page's time has come to its end
	Calls                       []issued
}

// issued is the outcome of a call.
type issued struct {
	ID            snowflake.ID
	Time          time.Time     // that the ID carries
	At            time.Duration // true time
	Waited, Ahead time.Duration // Ahead of the wall clock
	Duplicate     bool
	Error         string
	Sequence      int64
}

func newMachine(s generatortest.Subject[snowflake.ID]) (*machine, error) {
	m := &machine{name: s.Name, clock: clocktest.NewVirtual(start), seen: map[snowflake.ID]bool{}}
	m.clock.AutoAdvance(true) // a call that waits moves the time of its machine
	var err error
	m.process, err = s.New(m.clock)
	return m, err
}

// pass lets true time pass, and then makes calls, unless a call before is still waiting.
func (m *machine) pass(c call) {
	m.passed += millis(c)
	m.clock.Advance(m.passed - m.clock.Passed())
	for range c.IDs {
		if m.clock.Passed() > m.passed {
			return
		}
		m.next()
	}
}

func (m *machine) next() {
	before := m.clock.Passed()
	id, err := m.process.Next()
	now := issued{ID: id, Waited: m.clock.Passed() - before}
	if err != nil {
		m.shown.Refused++
		now.Error = err.Error()
	} else {
		d, _ := layout.Decode(id) // an ID of this layout
		now.Time, now.Sequence = d.Time, d.Sequence
		now.Ahead = max(d.Time.Sub(m.clock.Wall()), 0)
		now.Duplicate = m.seen[id]
		m.seen[id] = true
		m.shown.Issued++
		if now.Duplicate {
			m.shown.Duplicates++
		}
	}
	m.shown.Calls = append(m.shown.Calls, now)
}

// restart kills the process and starts another on what it left.
func (m *machine) restart() {
	next, err := m.process.Restart()
	if err != nil {
		next.Next = func() (snowflake.ID, error) { return 0, errors.Join(errors.New("the process did not start"), err) }
		next.Restart = m.process.Restart
	}
	m.process = next
}

// suspend lets the machine sleep.
func (m *machine) suspend(d time.Duration) {
	m.slept += d
	m.clock.Suspend(d)
}

// boot boots the machine with a clock that is off by d.
func (m *machine) boot(d time.Duration) {
	m.correct()
	m.clock.Step(d)
	m.restart()
}

// correct sets the clock right, as a time client does that steps.
func (m *machine) correct() {
	m.clock.Step(start.Add(m.clock.Passed() + m.slept).Sub(m.clock.Wall()))
}

func (m *machine) view() view {
	v := m.shown
	v.Name, v.Wall = m.name, m.clock.Wall()
	v.Waiting = m.clock.Passed() > m.passed
	m.shown.Calls = nil
	return v
}
