package migrate_test

import (
	"context"
	"fmt"
	"log"
	"time"

	bwmarrin "github.com/bwmarrin/snowflake"

	"github.com/tickflake/tickflake/adapters/bwmarrin/snowflake"
	"github.com/tickflake/tickflake/examples/migrate"
	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/lease"
	flake "github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/stores"
	_ "github.com/tickflake/tickflake/stores/directory"
)

func Example_bwmarrin() {
	old, err := bwmarrin.NewNode(1)
	if err != nil {
		log.Fatal(err)
	}
	last := snowflake.ID(old.Generate())
	ctx := context.Background()

	layout := snowflake.Layout()
	store, err := stores.Open(ctx, "bwmarrin-ids") // or "etcd://…", "postgres://…"
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	keeper, err := lease.Claim(ctx, store, lease.WithLayout(layout))
	if err != nil {
		log.Fatal(err)
	}
	node, err := snowflake.NewLeasedNode(keeper, generator.WithFloor(flake.ID(last)))
	if err != nil {
		log.Fatal(err)
	}
	defer node.Close() // releases the node number

	id := node.Generate()
	fmt.Println(id > last)
	// Output: true
}

func Example_bwmarrinTypes() {
	id := snowflake.ID(1541815603606036480)

	own := flake.ID(id)       // for tickflake's own functions
	back := snowflake.ID(own) // and back
	fmt.Println(id.Base58(), own.Base58(), back == id)

	read, err := snowflake.ParseBase58([]byte(own.Base58())) // the wrong parser
	fmt.Println(read == id, err)
	// Output:
	// 4zzv4rZaYpj 4aaW4SzAyQK true
	// false <nil>
}

func Example_bwmarrinEpoch() {
	defer func(epoch int64) { snowflake.Epoch = epoch }(snowflake.Epoch)
	last := snowflake.ID(2_300_000_000_000_000_000) // of the year 2028

	moved, err := migrate.EpochAbove(snowflake.Layout(), flake.ID(last), time.Now())
	if err != nil {
		log.Fatal(err)
	}
	snowflake.Epoch = moved.Epoch.UnixMilli()

	node, err := snowflake.NewNode(1)
	if err != nil {
		log.Fatal(err)
	}
	id := node.Generate()
	fmt.Println(id > last, time.Since(time.UnixMilli(id.Time())) < time.Minute)
	// Output: true true
}
