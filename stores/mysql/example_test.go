package mysql_test

import (
	"context"
	"database/sql"
	"log"

	driver "github.com/go-sql-driver/mysql"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/stores/mysql"
)

// A pool whose connections log in by a token that is made anew for each.
func ExampleNew() {
	token := func(context.Context) (string, error) { return "…", nil } // of the cloud
	config := driver.NewConfig()
	config.Net, config.Addr, config.DBName, config.User = "tcp", "db.example:3306", "ops", "ids"
	config.Params = map[string]string{"innodb_lock_wait_timeout": "1", "lock_wait_timeout": "1"}
	err := config.Apply(driver.BeforeConnect(func(ctx context.Context, c *driver.Config) (err error) {
		c.Passwd, err = token(ctx)
		return err
	}))
	if err != nil {
		log.Fatal(err)
	}
	connector, err := driver.NewConnector(config)
	if err != nil {
		log.Fatal(err)
	}
	db := sql.OpenDB(connector)
	defer db.Close()
	store, err := mysql.New(db, "orders", "")
	if err != nil {
		log.Fatal(err)
	}
	keeper, err := lease.Claim(context.Background(), store)
	if err != nil {
		log.Fatal(err)
	}
	defer keeper.Close()
	gen, err := generator.New(generator.WithLease(keeper))
	if err != nil {
		log.Fatal(err)
	}
	log.Print(gen.Next())
}
