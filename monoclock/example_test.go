package monoclock_test

import (
	"fmt"
	"time"

	"github.com/tickflake/tickflake/monoclock"
	"github.com/tickflake/tickflake/monoclock/clocktest"
)

func Example() {
	clock := monoclock.New()
	before := clock.Now()
	// A step of the wall clock here does not show.
	after := clock.Now()
	fmt.Println(after.Before(before))
	// Output: false
}

// A service that may be suspended for up to a day catches up with the wall clock
// within a second of waking, and ignores a wall clock that is further ahead.
func ExampleWithResync() {
	machine := clocktest.NewVirtual(time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)) // for the example
	clock := monoclock.New(monoclock.WithSource(machine), monoclock.WithResync(100*time.Millisecond, 24*time.Hour))
	machine.Step(time.Hour) // it wakes
	machine.Advance(time.Second)
	fmt.Println(clock.Now().Format(time.TimeOnly))
	// Output: 13:00:01
}

// A test sees what the Clock makes of a wall clock that is set back.
func ExampleWithSource() {
	machine := clocktest.NewVirtual(time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC))
	clock := monoclock.New(monoclock.WithSource(machine))

	machine.Step(-time.Hour)
	machine.Advance(time.Second)
	fmt.Println("clock:", clock.Now().Format(time.TimeOnly))
	fmt.Println("wall: ", machine.Wall().Format(time.TimeOnly))
	fmt.Println("drift:", clock.Drift())
	// Output:
	// clock: 12:00:01
	// wall:  11:00:01
	// drift: -1h0m0s
}
