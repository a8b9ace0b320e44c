// Package custom has the generators that a reader adds to the report. They stand beside the
// other generators in each section that applies.
//
// You need these names: a file of your own in this directory calls [Add] with a [Generator]
// in its init function, as example.go and added.go do; see what becomes of them by
//
//	go run -tags example ./bench --quick
package custom

import (
	"strconv"
	"time"

	"github.com/tickflake/tickflake/chaos_test/kernel"
)

// Generator is a generator of IDs of 64 bits.
type Generator struct {
	Name string // in the report; unique
	// Tick is the unit of the time in its IDs, and PerTick how many IDs it has in one, at
	// least 1. At the end of a tick's IDs it waits for the next tick.
	Tick    time.Duration
	PerTick int64
	// Slot is the place of an ID in time: the number of its tick since Epoch, times PerTick,
	// plus its number in the tick. It leaves out the node.
	Slot  func(id int64) int64
	Epoch time.Time
	// New makes a generator as a new process does. It must read the time and sleep by the
	// clock, and must not spin. Goroutines call next at the same time.
	New func(clock Clock) (next func() (int64, error), err error)
}

// Clock is the time that a generator goes by: that of the system, or one that a fault changes.
type Clock interface {
	Now() time.Time
	Sleep(time.Duration)
}

// System is the clock of the system.
type System struct{}

// Now returns the system's time, without the monotonic reading: a step reaches it.
func (System) Now() time.Time { return time.Now().Round(0) }

// Sleep sleeps for d.
func (System) Sleep(d time.Duration) { time.Sleep(d) }

// Time is the start of an ID's tick.
func (g Generator) Time(id int64) time.Time {
	return g.Epoch.Add(time.Duration(g.Slot(id)/g.PerTick) * g.Tick)
}

// List has the generators that were added, in their order.
var List []Generator

// Add adds a generator to the report. It must be called before main, in an init function: the
// program is the same in the virtual machine of the faults on a real kernel.
func Add(g Generator) {
	List = append(List, g)
	kernel.Add(g.Name, "custom.Generator", func() (func() (string, time.Time, error), error) {
		next, err := g.New(System{})
		return func() (string, time.Time, error) {
			id, err := next()
			return strconv.FormatInt(id, 10), g.Time(id), err
		}, err
	})
}
