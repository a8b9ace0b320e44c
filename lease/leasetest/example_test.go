package leasetest_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"testing"
	"time"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/generator/generatortest"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/lease/leasetest"
	"github.com/tickflake/tickflake/monoclock/clocktest"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/strategies"
)

// What callers of a service see while the store is away for longer than the grant
// lasts. No real time is spent.
func ExampleMemory() {
	clock := clocktest.NewVirtual(time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC))
	clock.AutoAdvance(true)
	store := leasetest.NewMemory()
	keeper, err := lease.Claim(context.Background(), store, lease.WithClock(clock), lease.WithPolling(),
		lease.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		log.Fatal(err)
	}
	gen, err := generator.New(generator.WithLease(keeper))
	if err != nil {
		log.Fatal(err)
	}

	store.Fail(leasetest.Unavailable, 1000) // operations
	clock.Advance(time.Minute)              // the grant is one of 30 s
	_, err = gen.Next()
	fmt.Println("away:", errors.Is(err, generator.ErrNotGranted), errors.Is(err, leasetest.ErrFault))

	store.Heal()
	clock.Advance(time.Second)
	_, err = gen.Next()
	fmt.Println("back:", err)
	// Output:
	// away: true true
	// back: <nil>
}

// A process crashes, and its successor starts with its clock set back by a minute. Under
// a lease it goes on where the grant of the first one ends.
func ExampleLeased() {
	script, err := generatortest.ParseScript("ids 100; crash; step -1m; ids 10 over 2m")
	if err != nil {
		log.Fatal(err)
	}
	strategy := strategies.WaitUpTo(time.Minute)
	for _, subject := range []generatortest.Subject[snowflake.ID]{
		leasetest.Leased{Strategy: strategy}.Subject(),
		generatortest.Tickflake(strategy, generatortest.Raw), // keeps nothing for a successor
	} {
		r := generatortest.RunScript(subject, script)
		if r.Skipped != "" {
			fmt.Println(subject.Name, "is not tried:", r.Skipped)
			continue
		}
		fmt.Printf("%s: as promised: %v, %d issued twice\n", subject.Name, r.OK(), r.Duplicates)
	}
	// Output:
	// wait:1m0s on raw under a lease: as promised: true, 0 issued twice
	// wait:1m0s on raw is not tried: it keeps no state across a restart (Process.Restart)
}

// What needs a *testing.T is shown as a test function, which runs here.
func TestExamples(t *testing.T) {
	t.Run("TestStore", testCounted)
	t.Run("TestServer", testServer)
	t.Run("Proxy", testLostAnswer)
}
