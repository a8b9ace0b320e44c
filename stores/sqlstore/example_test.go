package sqlstore_test

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/tickflake/tickflake/stores/sqlstore"
)

// With a driver that neither stores/postgres nor stores/mysql is for.
func ExampleNew() {
	var db *sql.DB // sql.Open("another driver", …)
	store, err := sqlstore.New(db, sqlstore.PostgreSQL(), "orders")
	if err != nil {
		fmt.Println(err)
		return
	}
	warnings, err := store.Warnings(context.Background())
	fmt.Println(warnings, err)
	// Output: sqlstore.New: no database, or a Dialect that PostgreSQL or MySQL did not return
}

// For a DBA who lets no program make a table.
func ExampleStore_Schema() {
	store, err := sqlstore.New(sql.OpenDB(fakeServer(nil)), sqlstore.MySQL(nil), "orders", sqlstore.Table("ops.cells"))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(store.Schema())
	// Output:
	// CREATE TABLE IF NOT EXISTS ops.cells (
	//   namespace  VARCHAR(48) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
	//   node       INT NOT NULL,
	//   version    BIGINT NOT NULL,
	//   value      VARCHAR(1024) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
	//   updated_at TIMESTAMP(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6) ON UPDATE CURRENT_TIMESTAMP(6),
	//   PRIMARY KEY (namespace, node)
	// ) ENGINE=InnoDB;
}
