package migrate_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/snowflake"
)

func Example_sonyflake2() {
	ctx, last := context.Background(), uint64(1)
	machineID := func() (int, error) { return 7, nil }

	machine, err := machineID()
	if err != nil {
		log.Fatal(err)
	}
	gen, err := generator.Open(ctx, "sonyflake2-ids",
		generator.WithLayout(snowflake.Sonyflake()), // of version 2, with settings that leave it as it is
		generator.WithFloor(snowflake.ID(last)), generator.WithNode(int64(machine)))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(gen.Node(), gen.Close())
	// Output: 7 <nil>
}

func Example_sonyflake2Settings() {
	// BitsSequence 10, BitsMachineID 12, TimeUnit time.Millisecond, StartTime 2024-03-01 in UTC
	layout, err := snowflake.ParseLayout("time=41,sequence=10,node=12,tick=1ms,epoch=2024-03-01T00:00:00Z")
	if err != nil {
		log.Fatal(err)
	}
	elapsed := time.Date(2026, 9, 1, 12, 0, 0, 0, time.UTC).Sub(layout.Epoch).Milliseconds()
	parts, err := layout.Decode(snowflake.ID(elapsed<<22 | 3<<12 | 7))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(parts.Time, parts.Node, parts.Sequence)
	// Output: 2026-09-01 12:00:00 +0000 UTC 7 3
}
