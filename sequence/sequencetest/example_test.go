package sequencetest_test

import (
	"path/filepath"
	"testing"

	"github.com/tickflake/tickflake/sequence/sequencetest"
	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/directory"
)

// testSequences is a test function of the Store's package, there named TestSequences.
func testSequences(t *testing.T) {
	root := t.TempDir()
	sequencetest.TestSequences(t, func(t testing.TB, namespace string) stores.Store {
		store, err := directory.Open(t.Context(), filepath.Join(root, namespace))
		if err != nil {
			t.Fatal(err)
		}
		return store
	})
}

func ExampleTestSequences() {
	_ = testSequences // go test calls it
}
