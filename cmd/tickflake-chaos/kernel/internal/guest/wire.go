// Package guest is the program inside of the machine: process 1, which starts the
// subjects, does to their clocks and disks what a fault says, and counts.
package guest

import (
	"time"

	"github.com/tickflake/tickflake/cmd/tickflake-chaos/kernel/internal/check"
	"github.com/tickflake/tickflake/generator/generatortest"
)

// Request is a line from the host: a fault to run, or an answer.
type Request struct {
	// Run starts a fault, on these subjects. The guest sends Messages until one has Done or Failed.
	Run      string   `json:"run,omitempty"`
	Subjects []string `json:"subjects,omitempty"` // names; "program" is /program of the initramfs
	Args     []string `json:"args,omitempty"`     // of /program
	Seed     uint64   `json:"seed,omitempty"`
	Kills    int      `json:"kills,omitempty"` // kernel.Options.Kills: how often a fault kills, or copies

	// The answer to an Ask, or why the host could not do that.
	Answer string `json:"answer,omitempty"`
	Error  string `json:"error,omitempty"`
}

// Message is a line from the guest. One field is set, but for Uptime.
type Message struct {
	Ready    string        `json:"ready,omitempty"`    // process 1 is up: uname -sr, with the distribution's version
	Uptime   time.Duration `json:"uptime,omitempty"`   // with Ready: CLOCK_MONOTONIC
	Progress string        `json:"progress,omitempty"` // a line for a person
	Ask      string        `json:"ask,omitempty"`      // the host must do that to the machine, and answer: "time", "pause 10s", "wake 5s", Stores, Copy
	Result   *Result       `json:"result,omitempty"`
	Clock    *Clock        `json:"clock,omitempty"`
	Fact     *Fact         `json:"fact,omitempty"`   // it must survive a power cut
	Found    *Found        `json:"found,omitempty"`  // what a disk has after a power cut
	Done     string        `json:"done,omitempty"`   // name of the fault that has ended
	Failed   string        `json:"failed,omitempty"` // the fault could not be run; with the cause
}

// Result is one subject under the fault that runs.
type Result struct {
	Subject string        `json:"subject"`
	Verdict check.Verdict `json:"verdict"`
	IDs     []string      `json:"ids,omitempty"`     // those after Copy
	Crashed string        `json:"crashed,omitempty"` // how a process crashed, for example by a panic; a program's does so too
	Stderr  string        `json:"stderr,omitempty"`  // the end of standard error, if calls failed, or after Copy
	// Of a fault that is Alone: the promises that did not hold, and what else there is to say.
	Broken []string `json:"broken,omitempty"`
	Note   string   `json:"note,omitempty"`
}

// Clock is how far each clock moved during a fault. All durations but Host are read in
// the machine.
type Clock struct {
	Fault     string                `json:"fault"`
	Host      generatortest.Seconds `json:"host_seconds"` // that passed on the host
	Realtime  generatortest.Seconds `json:"realtime_seconds"`
	Monotonic generatortest.Seconds `json:"monotonic_seconds"`
	Boottime  generatortest.Seconds `json:"boottime_seconds"`
	Note      string                `json:"note,omitempty"`
}

// Fact is something that a writer was told: a cell was written, an ID or number was issued, or
// a call failed. A version of a cell must survive a power cut. A limit or a next number then does so
// too, for a cell is written as a whole.
type Fact struct {
	Writer  int    `json:"writer"`
	Cell    string `json:"cell,omitempty"` // its key
	Version int64  `json:"version,omitempty"`
	Issued  string `json:"issued,omitempty"` // the ID or number
	Failed  string `json:"failed,omitempty"`
	// At is how far the log of the disk was when the host heard of it.
	At int64 `json:"-"`
}

// Found is what a directory has after a power cut.
type Found struct {
	Has     map[string]int64 `json:"has"` // the version of each cell
	Damaged []string         `json:"damaged,omitempty"`
	Image   int              `json:"image,omitempty"` // 0: the disk that the writers go on with
}

// Writers is how many write at each cut, each as a process does: with a store of its own.
const Writers = 8

// Program is the name of the subject that is the user's program, /program.
const Program = "program"

// What a guest asks for, further to the verbs that name themselves.
const (
	Stores   = "stores"   // the URL of a server for stores, as the machine reaches it
	Copy     = "copy"     // save the machine, and continue a copy beside it; the copy's answer is Copied
	Rollback = "rollback" // save the machine, let it go on for a while, and then continue the copy in its place
	Copied   = "copied"
)

// Fault is something that happens to a clock, a process, a disk or the machine. Faults
// whose needs are equal run in one machine, one after another, unless Own is set.
type Fault struct {
	Name  string // "step-back-1s"
	About string // one line
	Kind  Kind

	Calm     bool          // no clock steps: no call of ours may fail
	Wait     bool          // leases of a monoclock wait until the clock was set
	Right    bool          // after Settled, IDs of ours have the right time
	Behind   bool          // CLOCK_REALTIME is far behind in the end: who reads it may issue nothing more
	Own      bool          // needs a machine that nothing else has run in, and that is ended afterwards
	NoRTC    bool          // the machine boots at 1970
	Modules  []string      // kernel modules
	Network  bool          // the host is 10.0.2.2
	Restarts bool          // processes end and are started again
	Told     bool          // the subjects of the copy are told: Restored
	VMClock  bool          // the machine has the device VMClock; it is copied often, amid calls
	Shared   bool          // stores are on a server on the host: see Stores
	Window   time.Duration // the grant of the subjects that have a lease; 0: its default
	Timeout  time.Duration // of the subjects that count; 0: their default
	Causes   []string      // what the system says to a write that the fault fails, or the keeper of a clock that was wrong: one of these
	Limit    time.Duration // until it counts as hanging; 0: DefaultLimit

	// Alone says that it has no subjects: it sends a Finding.
	Alone bool
	// CutsPower is the file system of a disk that loses its power: the fault runs in several
	// machines, without subjects. "": it does not.
	CutsPower string

	// Before, unless it is nil, prepares the clocks before the subjects start.
	Before func() error
	// Run is what happens inside of the machine. It asks the host for the rest.
	Run func(*Stage)
}

// Kind tells which faults belong together.
type Kind string

// The kinds of faults.
const (
	Clocks    Kind = "clock"
	Processes Kind = "process"
	Copies    Kind = "copy"
	Disks     Kind = "disk"
)

// DefaultLimit is how long a fault may take, on the host's clock. It only ends a machine
// that hangs: a busy host makes all slow.
const DefaultLimit = 5 * time.Minute
