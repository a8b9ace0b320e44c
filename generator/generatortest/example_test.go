package generatortest_test

import (
	"fmt"
	"log"
	"time"

	"github.com/tickflake/tickflake/generator/generatortest"
	"github.com/tickflake/tickflake/monoclock/clocktest"
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
			fmt.Println(r.Fault, r.Name, "failed by", r.Summary())
		}
	}
	// Output:
	// F1 step-back-small failed by 36 duplicate, 110 disorder
	// F2 step-back-large failed by 1301 duplicate, 2570 disorder
	// F3 step-forward failed by 1808 lead
	// F4 forward-then-back failed by 52 duplicate, 287 disorder
	// F5 repeated-steps failed by 1477 duplicate, 3514 disorder
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
