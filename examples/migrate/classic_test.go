package migrate_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/strategies"
)

func Example_twitter() {
	ctx := context.Background()
	datacenter, worker := int64(11), int64(26)
	last := snowflake.ID(1541815603606036480)

	layout := snowflake.Twitter()
	gen, err := generator.Open(ctx, "twitter-ids", generator.WithLayout(layout), generator.WithFloor(last),
		generator.WithNodeParts(datacenter, worker))
	if err != nil {
		log.Fatal(err)
	}
	defer gen.Close()

	id, err := gen.Next()
	if err != nil {
		log.Fatal(err)
	}
	parts, err := gen.Layout().Decode(id)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(id > last, parts.Parts)
	// Output: true map[datacenter:11 worker:26]
}

func Example_leaf() {
	ctx := context.Background()
	last := snowflake.ID(1541815603606036480)

	layout := snowflake.Leaf()
	gen, err := generator.Open(ctx, "leaf-ids", // or "zk://…", with Leaf's servers
		generator.WithLayout(layout), generator.WithFloor(last), generator.WithSequenceStart(strategies.LeafStart()))
	if err != nil {
		log.Fatal(err)
	}
	defer gen.Close()

	id, err := gen.Next()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(id > last)
	// Output: true
}

func Example_baidu() {
	// timeBits 29, workerBits 21, seqBits 13, epochStr 2016-09-20, on hosts in China
	layout, err := snowflake.ParseLayout("time=29,worker=21,sequence=13,tick=1s,epoch=2016-09-20T00:00:00+08:00")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(layout.End().Format(time.DateOnly))
	parts, err := layout.Decode(4611686018427396097)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(parts)
	// Output:
	// 2033-09-24
	// 4611686018427396097: 2025-03-23T13:24:16.000Z, node 1 (worker 1), sequence 1
}
