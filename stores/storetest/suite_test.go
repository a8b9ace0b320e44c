package storetest_test

import (
	"sync"
	"testing"

	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/storetest"
)

// namespaces are Memories by name.
type namespaces struct {
	mu   sync.Mutex
	used map[string]*storetest.Memory
}

func (n *namespaces) open(_ testing.TB, name string) stores.Store {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.used == nil {
		n.used = make(map[string]*storetest.Memory)
	}
	if n.used[name] == nil {
		n.used[name] = storetest.NewMemory()
	}
	return n.used[name].Client()
}

func TestMemoryKeepsThePromises(t *testing.T) {
	var n namespaces
	storetest.TestStore(t, n.open)
}

func TestLockingMemoryKeepsThePromises(t *testing.T) {
	var n namespaces
	storetest.TestStore(t, func(t testing.TB, name string) stores.Store {
		return n.open(t, name).(*storetest.Memory).Locking()
	})
}
