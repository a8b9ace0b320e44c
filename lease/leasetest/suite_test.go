package leasetest_test

import (
	"sync"
	"testing"

	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/lease/leasetest"
)

// namespaces are Memories by name.
type namespaces struct {
	mu   sync.Mutex
	used map[string]*leasetest.Memory
}

func (n *namespaces) open(_ testing.TB, name string) lease.Store {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.used == nil {
		n.used = make(map[string]*leasetest.Memory)
	}
	if n.used[name] == nil {
		n.used[name] = leasetest.NewMemory()
	}
	return n.used[name].Client()
}

func TestMemoryKeepsThePromises(t *testing.T) {
	var n namespaces
	leasetest.TestStore(t, n.open)
}

func TestLockingMemoryKeepsThePromises(t *testing.T) {
	var n namespaces
	leasetest.TestStore(t, func(t testing.TB, name string) lease.Store {
		return n.open(t, name).(*leasetest.Memory).Locking()
	})
}
