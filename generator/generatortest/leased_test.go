package generatortest_test

import (
	"fmt"
	"log"
	"time"

	"github.com/tickflake/tickflake/generator/generatortest"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/strategies"
)

// A process crashes, and its successor starts with its clock set back by a minute. Under
// a lease it continues where the grant of the first one ends.
func ExampleLeased() {
	script, err := generatortest.ParseScript("ids 100; crash; step -1m; ids 10 over 2m")
	if err != nil {
		log.Fatal(err)
	}
	strategy := strategies.WaitUpTo(time.Minute)
	for _, subject := range []generatortest.Subject[snowflake.ID]{
		generatortest.Leased{Strategy: strategy}.Subject(),
		generatortest.Tickflake(strategy, generatortest.Raw), // keeps nothing for a successor
	} {
		r := generatortest.RunScript(subject, script)
		if r.Skipped != "" {
			fmt.Println(subject.Name, "is not tried:", r.Skipped)
			continue
		}
		fmt.Printf("%s: as promised: %v, %d issued twice\n", subject.Name, !r.Failed(), r.Duplicates)
	}
	// Output:
	// wait:1m0s on raw under a lease: as promised: true, 0 issued twice
	// wait:1m0s on raw is not tried: it keeps no state across a restart (Process.Restart)
}
