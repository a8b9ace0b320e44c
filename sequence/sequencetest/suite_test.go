package sequencetest_test

import (
	"sync"
	"testing"

	"github.com/tickflake/tickflake/sequence/sequencetest"
	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/storetest"
)

// memories opens one store in memory for each namespace.
func memories() func(t testing.TB, namespace string) stores.Store {
	var mu sync.Mutex
	cells := map[string]*storetest.Memory{}
	return func(_ testing.TB, namespace string) stores.Store {
		mu.Lock()
		defer mu.Unlock()
		if cells[namespace] == nil {
			cells[namespace] = storetest.NewMemory()
		}
		return cells[namespace].Client()
	}
}

func TestSequencesInMemory(t *testing.T) { sequencetest.TestSequences(t, memories()) }
