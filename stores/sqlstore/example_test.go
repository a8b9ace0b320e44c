package sqlstore_test

import (
	"context"
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
		var e *serverError // the driver's type for errors of the server
		if errors.As(err, &e) {
			return e.Number
		}
		return 0
	})
	store, err := sqlstore.New(db, dialect, "orders", sqlstore.WithTable("ops.cells"))
	if err != nil {
		fmt.Println(err)
		return
	}
	// By the server's error 1146, the table is missing, so there is no cell.
	cells, err := store.List(context.Background(), "node/", "node0", 100)
	fmt.Println(len(cells), err)
	fmt.Print(store.Schema())
	// Output:
	// 0 <nil>
	// CREATE TABLE IF NOT EXISTS `ops`.`cells` (
	//   namespace  VARCHAR(48) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
	//   cell       VARCHAR(100) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
	//   version    BIGINT NOT NULL,
	//   value      VARCHAR(1024) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
	//   updated_at TIMESTAMP(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6) ON UPDATE CURRENT_TIMESTAMP(6),
	//   PRIMARY KEY (namespace, cell)
	// ) ENGINE=InnoDB;
}
