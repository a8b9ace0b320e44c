package strategies_test

import (
	"fmt"
	"time"

	"github.com/tickflake/tickflake/strategies"
)

// Decisions of a strategy that borrows a little, waits a little longer, and then
// gives up.
func Example() {
	strategy := strategies.Chain(
		strategies.BorrowUpTo(time.Second),
		strategies.WaitUpTo(5*time.Second),
	)
	for _, lead := range []time.Duration{time.Millisecond, 3 * time.Second, time.Hour} {
		d := strategy.Decide(strategies.Situation{Cause: strategies.Behind, Lead: lead})
		fmt.Println(lead, "behind:", d.Action, d.Wait)
	}
	// Output:
	// 1ms behind: borrow 0s
	// 3s behind: wait 2s
	// 1h0m0s behind: reject 0s
}

// Wait out a busy tick, but report a clock that went back.
func ExamplePerCause() {
	strategy := strategies.PerCause(strategies.WaitUpTo(time.Second), strategies.Reject())
	fmt.Println(strategy.Decide(strategies.Situation{Cause: strategies.Exhausted, Lead: time.Millisecond}).Action)
	fmt.Println(strategy.Decide(strategies.Situation{Cause: strategies.Behind, Lead: time.Millisecond}).Action)
	// Output:
	// wait
	// reject
}

// A strategy from a flag or an environment variable.
func ExampleParse() {
	strategy, err := strategies.Parse("borrow:1s,wait:5s")
	fmt.Println(strategy, err)
	_, err = strategies.Parse("wait:-5ms")
	fmt.Println(err)
	// Output:
	// borrow:1s,wait:5s <nil>
	// strategy "wait:-5ms": the limit is negative: it must be 0s or more
}
