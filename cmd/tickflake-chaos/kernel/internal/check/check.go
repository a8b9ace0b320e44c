// Package check counts what a generator did wrong. It is pure: it reads no clock and
// knows no machine.
package check

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"github.com/tickflake/tickflake/generator/generatortest"
)

// Verdict is what was counted of one subject under one fault. Counts of all its
// processes are added up; a maximum is that of the worst.
type Verdict struct {
	IDs        int                   `json:"ids"`
	Duplicates int                   `json:"duplicates"`       // IDs that had been seen before in this fault
	Again      int                   `json:"again,omitempty"`  // the duplicates whose process had printed the ID itself before
	Disorder   int                   `json:"disorder"`         // IDs not above the one before, of the same process
	Failed     int                   `json:"failed"`           // calls, and starts of the process
	Stall      generatortest.Seconds `json:"stall_seconds"`    // longest call, less what control threads stood still meanwhile
	Lead       generatortest.Seconds `json:"lead_seconds"`     // furthest that an ID was ahead of its generator's clock
	Lag        generatortest.Seconds `json:"lag_seconds"`      // furthest that the time of an ID was behind CLOCK_REALTIME, after Settled
	Recovery   generatortest.Seconds `json:"recovery_seconds"` // from the fault to the first ID after which no call failed; Never: there was none
	Error      string                `json:"error,omitempty"`  // text of the first failed call
	Named      bool                  `json:"named,omitempty"`  // an error or the log named the cause of the fault
	Stuck      bool                  `json:"stuck,omitempty"`  // no ID was issued after the fault was over
	Twice      *Twice                `json:"twice,omitempty"`  // the first duplicate
}

// Twice is an ID that two calls returned.
type Twice struct {
	ID    string `json:"id"`
	First Sight  `json:"first"`
	Again Sight  `json:"again"`
}

// Never is the Recovery of a subject that issued nothing after its last failed call, or
// whose last call did not return.
const Never = generatortest.Seconds(-time.Second)

// ID is one line of a subject: an ID that was issued, or a call that failed.
type ID struct {
	Text   string
	Err    string        // text of the failed call; then there is no Text
	Took   time.Duration // of the call, by CLOCK_MONOTONIC, less what its process stood still; less than 0: not stated
	Lead   time.Duration // of the ID by its generator's clock
	Lag    time.Duration // of the ID by CLOCK_REALTIME when the call began
	Marker uint64        // of VMClock after the call, or 0
	Start  int           // which process of the subject: 0 is the first
}

// Bounds of a checker.
const (
	// silence is the shortest time without a line that counts as a call that did not
	// return. It is far above the pause of a subject between two bursts.
	silence = 100 * time.Millisecond
	// hangs is the least time without a line, less what the control threads stood still, after
	// which a subject has not recovered.
	hangs = 500 * time.Millisecond
)

// Checker counts one subject under one fault. Instants are durations since any start. It
// is for one goroutine at a time.
type Checker struct {
	v     Verdict
	stood func(from, to time.Duration) time.Duration // how long the machine stood still
	seen  Ledger

	longest time.Duration    // call
	running map[int]*process // by number

	marked   bool
	settled  bool
	mark     time.Duration
	recovers bool          // the first ID after the last failed call is in v.Recovery
	hung     time.Duration // how long the last call of the last process did not return
}

// process is one that runs.
type process struct {
	made bool          // its generator is made
	last string        // ID
	line time.Duration // its last line, or its start
	// from and to enclose the time when it was last stopped.
	from, to time.Duration
}

// ran returns how long a call took that ended by the instant, without the time when the
// process was stopped.
func (p *process) ran(took, by time.Duration) time.Duration {
	if by-took < p.to { // it has begun before, for a process that is stopped begins no call
		return max(0, took-(p.to-p.from))
	}
	return took
}

// New returns a checker. stood tells how long the machine stood still between two instants: that is no fault of
// the subject.
func New(stood func(from, to time.Duration) time.Duration) *Checker {
	return &Checker{stood: stood, seen: Ledger{}, running: map[int]*process{}}
}

// since returns how long a process has printed no line, less what the machine stood still.
func (c *Checker) since(p *process, at time.Duration) time.Duration {
	return at - p.line - c.stood(p.line, at)
}

// Mark notes that the fault happens at this instant: Recovery is measured from here. The
// first of several marks counts.
func (c *Checker) Mark(at time.Duration) {
	if !c.marked {
		c.marked, c.mark, c.recovers = true, at, false
	}
}

// Settled notes that the clock is right again, and that a generator may have noticed: Lag is measured from here.
func (c *Checker) Settled() { c.settled = true }

// Over notes that the fault is over: an ID must follow.
func (c *Checker) Over() { c.v.Stuck = true }

// Started notes that a process of the subject begins. Number 0 is the first. Others may
// run beside it.
func (c *Checker) Started(at time.Duration, number int) { c.running[number] = &process{line: at} }

// Made notes that a process has made its generator, or has waited for a command: the calls begin.
func (c *Checker) Made(at time.Duration, number int) {
	if p := c.running[number]; p != nil {
		p.made, p.line = true, at
	}
}

// Stopped notes that a process was stopped by a signal in this time: no call takes as long.
func (c *Checker) Stopped(from, to time.Duration, number int) {
	if p := c.running[number]; p != nil {
		p.from, p.to = from, to
	}
}

// Ended notes that a process was killed, or that the fault is over. A call that has not
// returned counts with the time since the line before. A start that has not ended is none.
func (c *Checker) Ended(at time.Duration, number int) {
	if p := c.running[number]; p != nil && (p.made || p.last != "") {
		if ran := p.ran(c.since(p, at), at); ran > silence {
			c.longest = max(c.longest, ran)
			c.hung = ran
		}
	}
	delete(c.running, number)
}

// Add counts one line.
func (c *Checker) Add(at time.Duration, id ID) {
	p := c.running[id.Start]
	if p == nil {
		c.Started(at, id.Start)
		p = c.running[id.Start]
	}
	took := id.Took
	if took < 0 && p.last != "" { // the first line waits for the start of the process
		took = c.since(p, at)
	}
	c.longest = max(c.longest, p.ran(took, at))
	p.line = at
	c.hung = 0
	if id.Err != "" {
		c.fail(id.Err)
		return
	}
	c.v.IDs++
	c.v.Stuck = false
	now := Sight{id.Start, at}
	if before, twice := c.seen.Add(id.Text, now); twice {
		c.v.Duplicates++
		if before.By == id.Start {
			c.v.Again++
		}
		c.v.Twice = cmp.Or(c.v.Twice, &Twice{id.Text, before, now})
	}
	if p.last != "" && !less(p.last, id.Text) {
		c.v.Disorder++
	}
	p.last = id.Text
	c.v.Lead = max(c.v.Lead, generatortest.Seconds(id.Lead))
	if c.settled {
		c.v.Lag = max(c.v.Lag, generatortest.Seconds(id.Lag))
	}
	if c.marked && !c.recovers {
		c.recovers, c.v.Recovery = true, generatortest.Seconds(at-c.mark)
	}
}

func (c *Checker) fail(text string) {
	c.v.Failed++
	c.v.Error = cmp.Or(c.v.Error, text)
	c.recovers = false
}

// Recovers reports whether an ID has followed the fault, and no failed call that ID.
func (c *Checker) Recovers() bool { return c.recovers }

// Verdict returns the counts.
func (c *Checker) Verdict() Verdict {
	v := c.v
	v.Stall = generatortest.Seconds(max(0, c.longest))
	if !c.marked {
		v.Recovery = 0
	} else if !c.recovers || c.hung > hangs {
		v.Recovery = Never
	}
	return v
}

// less compares integers in decimal as such, and other IDs as text.
func less(a, b string) bool {
	m, err := strconv.ParseInt(a, 10, 64)
	n, failed := strconv.ParseInt(b, 10, 64)
	switch {
	case err == nil && failed == nil:
		return m < n
	case len(a) != len(b) && strings.Trim(a+b, "0123456789") == "": // of more than 64 bits
		return len(a) < len(b)
	}
	return a < b
}

// Ledger has the last sight of each ID. It is what finds IDs that came twice on the kernel: in a process, after its
// restart, in a copy of the machine, and after a power cut.
type Ledger map[string]Sight

// Sight is where and when an ID was issued.
type Sight struct {
	By int           `json:"by"`    // the number of the process, of the machine, or of the power cut before which it was
	At time.Duration `json:"at_ns"` // as in [Checker.Add], or 0
}

// Add notes an ID, and returns its sight before, if it was issued before.
func (l Ledger) Add(id string, s Sight) (before Sight, twice bool) {
	before, twice = l[id]
	l[id] = s
	return before, twice
}
