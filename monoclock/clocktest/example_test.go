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

// The wall steps back an hour under a generator that reads it.
func Example_rawWall() {
	clock := clocktest.NewVirtual(noon)
	gen, err := generator.New(generator.WithNode(0), generator.WithClock(clock), generator.WithStrategy(strategies.Reject()))
	if err != nil {
		log.Fatal(err)
	}
	_, err = gen.Next()
	fmt.Println("before:", err)

	clock.Step(-time.Hour)
	_, err = gen.Next()
	fmt.Println("after: ", errors.Is(err, generator.ErrBehind))

	clock.Advance(time.Hour + time.Millisecond)
	_, err = gen.Next()
	fmt.Println("later: ", err)
	// Output:
	// before: <nil>
	// after:  true
	// later:  <nil>
}

// The same step under a monoclock, which shows it as drift and goes on.
func Example_monoclock() {
	clock := clocktest.NewVirtual(noon)
	mono := monoclock.New(monoclock.WithSource(clock))
	gen, err := generator.New(generator.WithNode(0), generator.WithClock(mono), generator.WithStrategy(strategies.Reject()))
	if err != nil {
		log.Fatal(err)
	}

	clock.Advance(time.Second)
	clock.Step(-time.Hour)
	_, err = gen.Next()
	fmt.Println("error:", err)
	fmt.Println("clock:", mono.Now().Format(time.TimeOnly))
	fmt.Println("wall: ", clock.Wall().Format(time.TimeOnly))
	fmt.Println("drift:", mono.Drift())
	// Output:
	// error: <nil>
	// clock: 12:00:01
	// wall:  11:00:01
	// drift: -1h0m0s
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

// Code that uses the clocks of github.com/benbjohnson/clock sets a timer, and the
// wall is set back while it runs. The timer is not affected.
func ExampleMock() {
	mock := clocktest.NewMock(noon)
	timer := mock.Timer(time.Minute)

	mock.Step(-time.Hour)
	mock.Add(59 * time.Second)
	select {
	case <-timer.C:
		fmt.Println("too soon")
	default:
		fmt.Println("left:", mock.Waiting()[0])
	}

	mock.Add(time.Second)
	<-timer.C
	fmt.Println("fired at", mock.Now().Format(time.TimeOnly))
	// Output:
	// left: 1s
	// fired at 11:01:00
}
