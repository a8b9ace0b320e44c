package leasetest_test

import (
	"context"
	"fmt"
	"log"
	"log/slog"
	"sync/atomic"
	"testing"

	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/lease/leasetest"
)

// counted is a Store that counts what is written to another.
type counted struct {
	lease.Store
	writes *atomic.Int64
}

func (c counted) Swap(ctx context.Context, old lease.Cell, value []byte) (lease.Cell, error) {
	c.writes.Add(1)
	return c.Store.Swap(ctx, old, value)
}

// testCounted is a test function of the Store's package, there named TestCounted.
func testCounted(t *testing.T) {
	servers := map[string]*leasetest.Memory{} // by namespace
	leasetest.TestStore(t, func(_ testing.TB, namespace string) lease.Store {
		if servers[namespace] == nil {
			servers[namespace] = leasetest.NewMemory()
		}
		return counted{servers[namespace].Client(), new(atomic.Int64)}
	})
}

// A Store around another must keep the promises of a Store, too.
func ExampleTestStore() {
	store := counted{leasetest.NewMemory(), new(atomic.Int64)}
	keeper, err := lease.Claim(context.Background(), store, lease.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("closed:", keeper.Close())
	fmt.Println("writes:", store.writes.Load())
	// Output:
	// closed: <nil>
	// writes: 2
}
