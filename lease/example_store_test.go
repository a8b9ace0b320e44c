package lease_test

import (
	"context"
	"fmt"
	"log"
	"log/slog"
	"sync"
	"testing"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/lease/leasetest"
)

// mapStore keeps cells in a map. It is linearizable by its lock, and durable as long
// as the process lives: a real one writes to a disk or a server before it returns.
type mapStore struct {
	mu    sync.Mutex
	cells map[int64]versioned
}

// versioned is what is kept for a node number: the value as a string, so that it shares
// no memory with what callers give and get.
type versioned struct {
	version uint64
	value   string
}

func (v versioned) cell(node int64) lease.Cell {
	return lease.Cell{Node: node, Version: v.version, Value: []byte(v.value)}
}

func (s *mapStore) List(ctx context.Context) ([]lease.Cell, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []lease.Cell
	for node, is := range s.cells {
		list = append(list, is.cell(node))
	}
	return list, ctx.Err()
}

func (s *mapStore) Read(ctx context.Context, node int64) (lease.Cell, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cells[node].cell(node), ctx.Err()
}

func (s *mapStore) Swap(ctx context.Context, old lease.Cell, value []byte) (lease.Cell, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return lease.Cell{}, err
	}
	if is := s.cells[old.Node].version; is != old.Version {
		return lease.Cell{}, fmt.Errorf("version %d, want %d: %w", is, old.Version, lease.ErrConflict)
	}
	now := versioned{old.Version + 1, string(value)}
	s.cells[old.Node] = now
	return now.cell(old.Node), nil
}

// testMapStore is a test function of the Store's package, there named TestMapStore.
func testMapStore(t *testing.T) {
	stores := map[string]*mapStore{}
	leasetest.TestStore(t, func(_ testing.TB, namespace string) lease.Store {
		if stores[namespace] == nil {
			stores[namespace] = &mapStore{cells: map[int64]versioned{}}
		}
		return stores[namespace]
	})
}

// A Store of one's own, and the test that shows whether it keeps what it promises.
func ExampleStore() {
	store := &mapStore{cells: map[int64]versioned{}}
	keeper, err := lease.Claim(context.Background(), store, lease.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		log.Fatal(err)
	}
	gen, err := generator.New(generator.WithLease(keeper))
	if err != nil {
		log.Fatal(err)
	}
	_, err = gen.Next()
	fmt.Println("issued:", err == nil)
	fmt.Println("closed:", gen.Close())
	fmt.Println("cells: ", len(store.cells))
	// Output:
	// issued: true
	// closed: <nil>
	// cells:  1
}
