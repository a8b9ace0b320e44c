package clocktest_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/monoclock"
	"github.com/tickflake/tickflake/monoclock/clocktest"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/strategies"
)

var noon = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

// The wall steps back an hour under two generators: one reads it, the other has a monoclock.
func Example() {
	clock := clocktest.NewVirtual(noon)
	mono := monoclock.New(monoclock.WithSource(clock))
	issue := func(c monoclock.Interface) func() error {
		gen, err := generator.New(generator.WithNode(0), generator.WithClock(c), generator.WithStrategy(strategies.Reject()))
		if err != nil {
			log.Fatal(err)
		}
		return func() error { _, err := gen.Next(); return err }
	}
	raw, steady := issue(clock), issue(mono)
	fmt.Println("before:", raw(), steady())

	clock.Step(-time.Hour)
	clock.Advance(time.Second)
	fmt.Println("after: ", errors.Is(raw(), generator.ErrBehind), steady())
	fmt.Println("drift: ", mono.Drift())

	clock.Advance(time.Hour)
	fmt.Println("later: ", raw(), steady())
	// Output:
	// before: <nil> <nil>
	// after:  true <nil>
	// drift:  -1h0m0s
	// later:  <nil> <nil>
}

// A caller waits in its own goroutine. The test moves the time when it knows that
// the caller waits, and not before.
func ExampleVirtual_BlockUntil() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()

	clock := clocktest.NewVirtual(noon)
	woke := make(chan time.Time)
	go func() { woke <- <-clock.After(time.Minute) }()

	if err := clock.BlockUntil(ctx, 1); err != nil {
		log.Fatal(err) // no caller waits
	}
	fmt.Println("waiting:", clock.Waiting())
	fmt.Println("too soon:", clock.Advance(59*time.Second))
	fmt.Println("in time:", clock.Advance(time.Second))
	fmt.Println("woke at", (<-woke).Format(time.TimeOnly))
	// Output:
	// waiting: [1m0s]
	// too soon: 0
	// in time: 1
	// woke at 12:01:00
}

// A hundred thousand IDs take 25 seconds at the ceiling of this layout. The
// generator waits for every tick, and the example takes no time.
func ExampleVirtual_AutoAdvance() {
	clock := clocktest.NewVirtual(noon)
	clock.AutoAdvance(true)
	layout := snowflake.Default()
	layout.SequenceBits = 2 // 4 IDs per millisecond
	gen, err := generator.New(generator.WithNode(0), generator.WithClock(clock), generator.WithLayout(layout))
	if err != nil {
		log.Fatal(err)
	}
	for range 100_000 {
		if _, err := gen.Next(); err != nil {
			log.Fatal(err)
		}
	}
	fmt.Println(clock.Passed().Round(time.Second))
	// Output: 25s
}
