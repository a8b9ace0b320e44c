package zookeeper_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/tickflake/tickflake/stores"
	_ "github.com/tickflake/tickflake/stores/zookeeper"
)

// A program imports the engine, and opens the store by its URL.
func Example() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	store, err := stores.Open(ctx, "zk://10.0.0.5:2181,10.0.0.6:2181?namespace=orders")
	if err != nil {
		log.Print(err)
		return
	}
	defer store.Close()
	cell, err := store.Read(ctx, "seq/invoices")
	fmt.Println(cell.Version, err)
}
