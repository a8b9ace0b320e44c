// First prints ten IDs. Run it again, also with the clock set back: no ID comes twice.
package main

import (
	"context"
	"fmt"
	"log"
	"path/filepath"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/stores/directory"
)

func main() {
	state, err := directory.DefaultPath() // below your home; for a service, a directory such as /var/lib/orders
	if err != nil {
		log.Fatal(err)
	}
	state = filepath.Join(state, "first")
	gen, err := generator.Open(context.Background(), state) // claims a node number and a range of time
	if err != nil {
		log.Fatal(err)
	}
	for range 10 {
		id, err := gen.Next() // in a request: gen.NextContext(ctx)
		if err != nil {
			log.Fatal(err) // no Close, as in a crash: still no ID comes twice
		}
		fmt.Println(id)
	}
	_ = gen.Close() // releases the number; it logs its own error
	log.Printf("The state is in %s. See what is claimed: go run ./cmd/tickflake lease list --store %[1]s", state)
}
