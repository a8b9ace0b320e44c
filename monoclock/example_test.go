package monoclock_test

import (
	"fmt"
	"time"

	"github.com/tickflake/tickflake/monoclock"
)

func Example() {
	clock := monoclock.New()
	before := clock.Now()
	// Whatever happens to the wall clock here,
	after := clock.Now()
	fmt.Println(after.Before(before))
	// Output: false
}

// A service that may be suspended for up to a day catches up with the wall clock
// within a second of waking, and ignores a wall clock that claims to be further
// ahead than that.
func ExampleWithResync() {
	clock := monoclock.New(monoclock.WithResync(100*time.Millisecond, 24*time.Hour))
	fmt.Println(clock.CaughtUp())
	// Output: 0s
}
