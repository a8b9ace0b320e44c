package chaos_test

import (
	"fmt"
	"sync"
	"time"

	"github.com/tickflake/tickflake/generator/generatortest"
	"github.com/tickflake/tickflake/monoclock/clocktest"
)

func Example() {
	naive := generatortest.Subject[int64]{
		Name: "naive",
		New: func(clock *clocktest.Virtual) (generatortest.Process[int64], error) {
			var mu sync.Mutex
			var last, count int64 // milliseconds and a counter, as many programs have it
			return generatortest.Process[int64]{Next: func() (int64, error) {
				mu.Lock()
				defer mu.Unlock()
				if now := clock.Now().UnixMilli(); now != last {
					last, count = now, 0
				}
				count++
				return last<<12 | count, nil
			}}, nil
		},
		Time: func(id int64) time.Time { return time.UnixMilli(id >> 12) },
		Tick: time.Millisecond,
	}
	for _, fault := range generatortest.Catalogue()[:5] {
		result := generatortest.Run(naive, fault)[0]
		fmt.Println(fault.Fault, fault.Name, "failed:", result.Failed(), "duplicates:", result.Duplicates)
	}
	// Output:
	// F1 step-back-small failed: true duplicates: 36
	// F2 step-back-large failed: true duplicates: 1301
	// F3 step-forward failed: true duplicates: 0
	// F4 forward-then-back failed: true duplicates: 52
	// F5 repeated-steps failed: true duplicates: 1477
}
