package lease_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/lease/leasetest"
	"github.com/tickflake/tickflake/stores/directory"
)

// The body of this example stands in the README.
func Example() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	store, err := directory.Open("ids") // a directory that outlasts the process
	if err != nil {
		log.Fatal(err)
	}
	keeper, err := lease.Claim(ctx, store)
	if err != nil {
		log.Fatal(err)
	}
	gen, err := generator.New(generator.WithLease(keeper))
	if err != nil {
		log.Fatal(err)
	}
	defer gen.Close() // gives the node number back

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

func TestReadmeShowsTheExample(t *testing.T) {
	source, err := os.ReadFile("example_test.go")
	require.NoError(t, err)
	_, body, ok := strings.Cut(string(source), "func Example() {\n")
	require.True(t, ok)
	body, _, ok = strings.Cut(body, "\n}\n")
	require.True(t, ok)
	readme, err := os.ReadFile("../README.md")
	require.NoError(t, err)
	assert.Contains(t, string(readme), strings.ReplaceAll(body, "\n\t", "\n")[1:])

	t.Chdir(t.TempDir())
	stdout := os.Stdout
	defer func() { os.Stdout = stdout }()
	os.Stdout, err = os.Create("output")
	require.NoError(t, err)
	Example() // its output differs from run to run
	require.NoError(t, os.Stdout.Close())
	output, err := os.ReadFile("output")
	require.NoError(t, err)
	assert.Regexp(t, `^decimal: \d+\nbase 32: [0-9A-Z]{13}\nissued:  20\S+Z on node \d+\n$`, string(output))
}

// Who holds which node number.
func ExampleInspect() {
	ctx := context.Background()
	store := leasetest.NewMemory() // in production, directory.Open, etcd.Open, …
	keeper, err := lease.Claim(ctx, store, lease.WithOwner("orders-1"), lease.WithNode(lease.NodeNumber(7)),
		lease.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		log.Fatal(err)
	}
	show := func() {
		holdings, err := lease.Inspect(ctx, store)
		if err != nil {
			log.Fatal(err)
		}
		for _, h := range holdings {
			fmt.Printf("%d %s %q\n", h.Node, h.State, h.Owner)
		}
	}
	show()
	if err := keeper.Close(); err != nil {
		log.Fatal(err)
	}
	show()
	// Output:
	// 7 held "orders-1"
	// 7 released ""
}

// A host has died, and its node number is wanted before that shows.
func ExampleForceRelease() {
	ctx := context.Background()
	store := leasetest.NewMemory()
	dead, err := lease.Claim(ctx, store, lease.WithNode(lease.NodeNumber(7)), lease.WithOwner("orders-1"),
		lease.WithPolling(), lease.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		log.Fatal(err)
	}
	_, limit := dead.Granted()

	fmt.Println("released:", lease.ForceRelease(ctx, store, 7))
	h, err := lease.InspectNode(ctx, store, 7)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(h.Node, h.State, "with the limit as it was:", h.Limit.Equal(limit))

	var never *lease.NeverClaimedError
	fmt.Println("never claimed:", errors.As(lease.ForceRelease(ctx, store, 8), &never))
	// Output:
	// released: <nil>
	// 7 released with the limit as it was: true
	// never claimed: true
}

// Pod 7 of a StatefulSet wants node number 7, whoever had it before.
func ExampleWithNode() {
	ctx := context.Background()
	store := leasetest.NewMemory()
	keeper, err := lease.Claim(ctx, store, lease.WithNode(lease.NodeNumber(7)), // or lease.NodeFromStatefulSet()
		lease.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		log.Fatal(err)
	}
	gen, err := generator.New(generator.WithLease(keeper))
	if err != nil {
		log.Fatal(err)
	}
	defer gen.Close()
	fmt.Println(gen.Node())

	_, err = lease.Claim(ctx, store, lease.WithNode(lease.NodeNumber(5000)))
	fmt.Println(err)
	// Output:
	// 7
	// WithNode: node 5000 needs 13 bits, but the field has 10 bits: it is 3977 more than 1023, the largest that fits; give a number from 0 to 1023, or choose a layout with a wider field
}

func TestExampleStoreKeepsThePromises(t *testing.T) { testMapStore(t) }
