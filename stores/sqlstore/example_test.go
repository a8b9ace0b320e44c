package sqlstore_test

import (
	"database/sql"
	"errors"
	"fmt"

	"github.com/tickflake/tickflake/stores/sqlstore"
)

// With a driver for MySQL that is not the one of stores/mysql, and for a DBA who lets no program make a table.
func ExampleNew() {
	db, err := sql.Open("anotherdriver", "ids@db.example/ops")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer db.Close()
	dialect := sqlstore.MySQL(func(err error) uint16 {
		var e interface {
			error
			Number() uint16 // as the driver gives the server's numbers
		}
		if errors.As(err, &e) {
			return e.Number()
		}
		return 0
	})
	store, err := sqlstore.New(db, dialect, "orders", sqlstore.WithTable("ops.cells"))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(store.Schema())
}
