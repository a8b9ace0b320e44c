package generatortest_test

import (
	"fmt"
	"log"
	"maps"
	"slices"
	"time"

	"github.com/tickflake/tickflake/generator/generatortest"
	"github.com/tickflake/tickflake/monoclock/clocktest"
	"github.com/tickflake/tickflake/strategies"
)

// naive is a generator as they are often written: it counts within a millisecond
// and begins anew in another. It needs a lock, which the example leaves out.
func naive(now func() time.Time) func() (int64, error) {
	var last, seq int64
	return func() (int64, error) {
		ms := now().UnixMilli()
		if seq++; ms != last {
			last, seq = ms, 0
		}
		return ms<<12 | seq, nil
	}
}

// newNaive starts it on a clock that goes wrong.
func newNaive(clock *clocktest.Virtual) (generatortest.Process[int64], error) {
	return generatortest.Process[int64]{Next: naive(clock.Now)}, nil
}

// A naive generator meets some faults of the catalogue. In a test of your own,
// call Test instead of Run.
func Example() {
	subject := generatortest.Subject[int64]{
		Name: "naive",
		New:  newNaive,
		Time: func(id int64) time.Time { return time.UnixMilli(id >> 12) },
		Tick: time.Millisecond,
	}
	for _, scenario := range generatortest.Catalogue()[:5] {
		for _, r := range generatortest.Run(subject, scenario) {
			fmt.Println(r.Fault, r.Name, "failed by", slices.Sorted(maps.Keys(r.Violated)))
		}
	}
	// Output:
	// F1 step-back-small failed by [disorder duplicate]
	// F2 step-back-large failed by [disorder duplicate]
	// F3 step-forward failed by [lead]
	// F4 forward-then-back failed by [disorder duplicate]
	// F5 repeated-steps failed by [disorder duplicate]
}

// A script that came with a bug report is replayed.
func ExampleRunScript() {
	script, err := generatortest.ParseScript(`
		# NTP sets the clock back under a busy generator.
		ids 3
		step -1ms
		ids 1
		pass 1ms     # the same millisecond once more
		ids 1
	`)
	if err != nil {
		log.Fatal(err) // names the line, and what would be right
	}
	r := generatortest.RunScript(generatortest.Subject[int64]{Name: "naive", New: newNaive}, script)
	fmt.Println(r.Script)
	fmt.Println(r.Issued, "IDs,", r.Duplicates, "issued twice")
	fmt.Println(r.Summary())
	// Output:
	// ids 3; step -1ms; ids 1; pass 1ms; ids 1
	// 9 IDs, 1 issued twice
	// 1 duplicate, 2 disorder
}

// What a step back of half a second costs with one strategy on two clocks. The options
// of a service can be given as well.
func ExampleTickflake() {
	script, err := generatortest.ParseScript("ids 10; step -500ms; ids 10 over 1s")
	if err != nil {
		log.Fatal(err)
	}
	for _, clock := range []generatortest.ClockKind{generatortest.Raw, generatortest.Mono} {
		subject := generatortest.Tickflake(strategies.WaitUpTo(time.Second), clock)
		r := generatortest.RunScript(subject, script)
		fmt.Printf("%s: as promised: %v, longest stall %v\n", subject.Name, r.OK(), r.LongestStall)
	}
	// Output:
	// wait:1s on raw: as promised: true, longest stall 500ms
	// wait:1s on mono: as promised: true, longest stall 0s
}
