package directory_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/stores/directory"
)

// A process on one host, without a server. In a program, the directory is one that
// outlasts it, such as that of DefaultPath.
func Example() {
	path, err := os.MkdirTemp("", "ids")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(path)
	store, err := directory.Open(path)
	if err != nil {
		log.Fatal(err)
	}
	keeper, err := lease.Claim(context.Background(), store)
	if err != nil {
		log.Fatal(err)
	}
	gen, err := generator.New(generator.WithLease(keeper))
	if err != nil {
		log.Fatal(err)
	}
	_, err = gen.Next()
	fmt.Println("node number", gen.Node(), err)
	fmt.Println("given back:", gen.Close() == nil)
	// Output:
	// node number 0 <nil>
	// given back: true
}
