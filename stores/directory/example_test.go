package directory_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"

	"github.com/tickflake/tickflake/stores"
	_ "github.com/tickflake/tickflake/stores/directory"
)

// A cell is changed on the condition that no other process has changed it.
func Example() {
	path, err := os.MkdirTemp("", "ids") // a service has a directory that outlasts it
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(path)
	ctx := context.Background()
	store, err := stores.Open(ctx, path)
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()

	version, err := store.Swap(ctx, "seq/invoices", 0, []byte("1000"))
	if err != nil {
		log.Fatal(err)
	}
	_, err = store.Swap(ctx, "seq/invoices", 0, []byte("2000"))
	fmt.Println("conflict:", errors.Is(err, stores.ErrConflict))
	_, err = store.Swap(ctx, "seq/invoices", version, []byte("2000"))
	fmt.Println("error:", err)
	// Output:
	// conflict: true
	// error: <nil>
}
