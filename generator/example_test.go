package generator_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/tickflake/tickflake/generator"
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

	id, err := gen.Next()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("decimal:", id)
	fmt.Println("base 32:", id.Base32())

	parts, err := gen.Layout().Decode(id)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("issued: ", parts.Time.Format(time.RFC3339Nano), "on node", parts.Node)
}

// Twitter's layout, on datacenter 11, worker 26, for a service that would rather
// run up to a second ahead of the clock than wait.
func ExampleNew() {
	gen, err := generator.New(
		generator.WithLayout(generator.Twitter()),
		generator.WithNodeParts(11, 26),
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
	gen, err := generator.New()
	if err != nil {
		log.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
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

// Many IDs for a bulk import cost about a nanosecond each.
func ExampleGenerator_NextN() {
	gen, err := generator.New()
	if err != nil {
		log.Fatal(err)
	}
	ids := make([]generator.ID, 1000)
	n, err := gen.NextN(ids)
	fmt.Println(n, err, ids[0] < ids[999])
	// Output: 1000 <nil> true
}

func ExampleGenerator_All() {
	gen, err := generator.New()
	if err != nil {
		log.Fatal(err)
	}
	rows := []string{"ada", "grace", "hedy"}
	keys := map[string]generator.ID{}
	for id, err := range gen.All(context.Background()) {
		if err != nil {
			log.Fatal(err)
		}
		keys[rows[len(keys)]] = id
		if len(keys) == len(rows) {
			break
		}
	}
	fmt.Println(keys["ada"] < keys["grace"], keys["grace"] < keys["hedy"])
	// Output: true true
}

// A worker that issues IDs all the time keeps a stream of its own.
func ExampleGenerator_Stream() {
	gen, err := generator.New()
	if err != nil {
		log.Fatal(err)
	}
	stream := gen.Stream()
	a, _ := stream.Next()
	b, err := stream.Next()
	fmt.Println(a < b, err)
	// Output: true <nil>
}
