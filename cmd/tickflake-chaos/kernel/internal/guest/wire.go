// Package guest is the program inside of the machine: process 1, which starts the
// subjects, does to their clocks and disks what a fault says, and counts.
package guest

import (
	"time"

	"github.com/tickflake/tickflake/cmd/tickflake-chaos/kernel/internal/check"
	"github.com/tickflake/tickflake/cmd/tickflake-chaos/kernel/internal/powercut"
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
	Ready    string          `json:"ready,omitempty"`    // process 1 is up: uname -sr, with the distribution's version
	Uptime   time.Duration   `json:"uptime,omitempty"`   // with Ready: CLOCK_MONOTONIC
	Progress string          `json:"progress,omitempty"` // a line for a person
	Ask      string          `json:"ask,omitempty"`      // the host must do that to the machine, and answer: "time", "pause 10s", "wake 5s", Stores, Copy
	Result   *Result         `json:"result,omitempty"`
	Clock    *Clock          `json:"clock,omitempty"`
	Fact     *powercut.Fact  `json:"fact,omitempty"`   // it must survive a power cut
	Found    *powercut.Found `json:"found,omitempty"`  // what a disk has after a power cut
	Done     string          `json:"done,omitempty"`   // name of the fault that has ended
	Failed   string          `json:"failed,omitempty"` // the fault could not be run; with the cause
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
	Raw       generatortest.Seconds `json:"raw_seconds"` // CLOCK_MONOTONIC_RAW, which no slew moves
	Note      string                `json:"note,omitempty"`
}

// Program is the name of the subject that is the user's program, /program.
const Program = "program"

// What a guest asks for, further to the verbs that name themselves.
const (
	Stores   = "stores"   // the URL of a server for stores, as the machine reaches it
	Copy     = "copy"     // save the machine, and continue a copy beside it; the copy's answer is Copied
	Rollback = "rollback" // save the machine, let it go on for a while, and then continue the copy in its place
	Copied   = "copied"
)
