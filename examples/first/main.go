// First prints ten IDs. Run it again, also with the clock set back: no ID comes twice.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/stores/directory"
)

func main() {
	if err := run(); err != nil {
		log.Fatal(err)
	}
}

func run() error {
	starting, cancel := context.WithTimeout(context.Background(), 10*time.Second) // for Open, not for the IDs
	defer cancel()
	state, err := directory.DefaultPath() // below your home; for a service, a directory such as /var/lib/orders
	if err != nil {
		return err
	}
	state = filepath.Join(state, "first")
	gen, err := generator.Open(starting, state) // claims a node number and a range of time
	if err != nil {
		return err
	}
	defer gen.Close() // releases them; its error is logged
	for range 10 {
		id, err := gen.Next() // in a request: gen.NextContext(ctx)
		if err != nil {
			return err
		}
		fmt.Println(id)
	}
	fmt.Fprintf(os.Stderr, "The state is in %s. Next: go test work (all modules of go.work), or see what is claimed: go run ./cmd/tickflake lease list --store %[1]s\n", state)
	return nil
}
