package strategies_test

import (
	"fmt"
	"log"
	"time"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/monoclock/clocktest"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/strategies"
)

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
	// invalid strategy "wait:-5ms": the limit is negative: it must be 0s or more
}

// A strategy of your own: wait out a busy tick, borrow over a small step back, and report
// a large one.
func ExampleFunc() {
	strategy := strategies.Func(func(s strategies.Situation) strategies.Decision {
		const small = 10 * time.Millisecond
		switch {
		case s.Cause == strategies.Exhausted:
			return strategies.Decision{Action: strategies.ActionWait} // for as long as the lead
		case s.Lead <= small:
			return strategies.Decision{Action: strategies.ActionBorrow}
		}
		fmt.Println("the clock went back by", s.Lead)
		return strategies.Decision{Action: strategies.ActionReject, Limit: small}
	})

	clock := clocktest.NewVirtual(time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC))
	gen, err := generator.New(generator.WithNode(0), generator.WithClock(clock), generator.WithStrategy(strategy))
	if err != nil {
		log.Fatal(err)
	}
	for _, step := range []time.Duration{0, -5 * time.Millisecond, -time.Hour} {
		clock.Step(step)
		_, err := gen.Next()
		fmt.Println("issued:", err == nil)
	}
	// Output:
	// issued: true
	// issued: true
	// the clock went back by 1h0m0.005s
	// issued: false
}

// A service that issues an ID now and then picks one of 8 shards by id % 8.
func ExampleStartRandom() {
	for _, start := range []strategies.SequenceStart{strategies.StartZero(), strategies.StartRandom(8)} {
		clock := clocktest.NewVirtual(time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC))
		gen, err := generator.New(generator.WithNode(0), generator.WithClock(clock), generator.WithSequenceStart(start))
		if err != nil {
			log.Fatal(err)
		}
		shards := map[snowflake.ID]bool{}
		for range 1000 {
			clock.Advance(time.Second)
			id, err := gen.Next()
			if err != nil {
				log.Fatal(err)
			}
			shards[id%8] = true
		}
		fmt.Println(start, "uses", len(shards), "of 8")
	}
	// Output:
	// zero uses 1 of 8
	// random:8 uses 8 of 8
}
