package generator_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"os"
	"time"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/monoclock/clocktest"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/strategies"
)

// A program that runs once. One that is started again, or several times, wants its
// node number and its time granted: see WithLease.
func Example() {
	gen, err := generator.New(generator.WithNode(7))
	if err != nil {
		log.Fatal(err)
	}
	defer gen.Close()

	first, err := gen.Next()
	if err != nil {
		log.Fatal(err)
	}
	second, err := gen.Next()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("in order:", first < second)

	parts, err := gen.Layout().Decode(second)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("issued on node", parts.Node, "just now:", time.Since(parts.Time) < time.Minute)

	read, err := snowflake.ParseBase32(second.Base32()) // as in a URL
	fmt.Println("read back:", read == second, err)
	// Output:
	// in order: true
	// issued on node 7 just now: true
	// read back: true <nil>
}

// The common case: a directory that outlasts the process and serves any number of
// processes on the host.
func ExampleOpen() {
	dir, err := os.MkdirTemp("", "ids")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	quiet := slog.New(slog.DiscardHandler)

	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	gen, err := generator.Open(ctx, dir, generator.WithLogger(quiet))
	if err != nil {
		log.Fatal(err)
	}
	defer gen.Close() // releases the node number

	a, err := gen.NextContext(ctx)
	if err != nil {
		log.Fatal(err)
	}
	b, err := gen.Next()
	fmt.Println(a < b, err)
	// Output: true <nil>
}

// Twitter's layout, on datacenter 11, worker 26, for a service that would rather
// run up to a second ahead of the clock than wait.
func ExampleNew() {
	node, err := snowflake.Twitter().Node(11, 26)
	if err != nil {
		log.Fatal(err)
	}
	gen, err := generator.New(
		generator.WithLayout(snowflake.Twitter()),
		generator.WithNode(node),
		generator.WithStrategy(strategies.Chain(
			strategies.BorrowUpTo(time.Second),
			strategies.WaitUpTo(5*time.Second),
		)),
	)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(gen.Node())
	// Output: 378
}

// A request that is given up gives up waiting for an ID, too.
func ExampleGenerator_NextContext() {
	gen, err := generator.New(generator.WithNode(0))
	if err != nil {
		log.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()

	_, err = gen.NextContext(ctx)
	switch {
	case err == nil:
		fmt.Println("issued")
	case errors.Is(err, generator.ErrBehind):
		fmt.Println("the clock went back further than the strategy bears")
	case errors.Is(err, context.DeadlineExceeded):
		fmt.Println("no time left")
	}
	// Output: issued
}

// A reply has a larger ID than the message that it answers, although the clock of the machine that
// asked is 2 s ahead.
func ExampleGenerator_NextAfter() {
	var machines [2]*generator.Generator
	for i := range machines {
		clock := clocktest.NewVirtual(time.Date(2026, 6, 1, 12, 0, 2-2*i, 0, time.UTC))
		gen, err := generator.New(generator.WithNode(int64(i)), generator.WithClock(clock), // Open in a program
			generator.WithStrategy(strategies.BorrowUpTo(5*time.Second)))
		if err != nil {
			log.Fatal(err)
		}
		machines[i] = gen
	}
	question, err := machines[0].Next()
	if err != nil {
		log.Fatal(err)
	}
	reply, err := machines[1].NextAfter(context.Background(), question)
	fmt.Println(question < reply, err)

	wrong := question + 1<<50 // weeks ahead
	_, err = machines[1].NextAfter(context.Background(), wrong)
	fmt.Println(errors.Is(err, generator.ErrBehind))
	// Output:
	// true <nil>
	// true
}

// Keys for many rows at once: one reservation for each tick, a nanosecond for each ID.
func ExampleGenerator_NextN() {
	gen, err := generator.New(generator.WithNode(0))
	if err != nil {
		log.Fatal(err)
	}
	keys := make([]snowflake.ID, 10_000)
	n, err := gen.NextN(keys) // keys[:n] are valid also if it fails
	fmt.Println(n, err, keys[0] < keys[n-1])
	// Output: 10000 <nil> true
}

// The error of a call that the strategy rejected says why, and by how much. The
// generator counts such calls.
func ExampleLeadError() {
	clock := clocktest.NewVirtual(time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC))
	gen, err := generator.New(
		generator.WithNode(0),
		generator.WithClock(clock), // a raw wall clock
		generator.WithStrategy(strategies.WaitUpTo(5*time.Millisecond)),
	)
	if err != nil {
		log.Fatal(err)
	}
	if _, err := gen.Next(); err != nil {
		log.Fatal(err)
	}

	clock.Step(-time.Second)
	_, err = gen.Next()
	var lead *generator.LeadError
	if errors.As(err, &lead) {
		fmt.Println(lead.Cause, "by", lead.Lead, "with a limit of", lead.Limit)
	}
	fmt.Println(errors.Is(err, generator.ErrBehind), errors.Is(err, generator.ErrExhausted))
	fmt.Println("rejected:", gen.Stats().Rejections)
	// Output:
	// behind by 1s with a limit of 5ms
	// true false
	// rejected: 1
}
