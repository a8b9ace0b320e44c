package zookeeper_test

import (
	"context"
	"testing"
	"time"

	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/stores/zookeeper"
)

// TestExample runs the lines of the example on a real server.
func TestExample(t *testing.T) {
	_, addr := zookeeper.StartServer(t)
	storeURL := "zk://" + addr + "?namespace=orders"
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if id, err := issue(ctx, storeURL); err != nil || id == 0 {
		t.Fatal(id, err)
	}
	store, err := zookeeper.Open(ctx, storeURL)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	holdings, err := lease.Inspect(ctx, store)
	if err != nil || len(holdings) != 1 || holdings[0].State != lease.Released {
		t.Errorf("%+v, %v; want one node number, which was given back", holdings, err)
	}
}
