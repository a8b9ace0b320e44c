package snowflake_test

import (
	"fmt"
	"time"

	"github.com/tickflake/tickflake/snowflake"
)

func ExampleLayout_Decode() {
	d, err := snowflake.Twitter().Decode(1541815603606036480)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(d.Time.Format(time.RFC3339Nano))
	fmt.Println("datacenter", d.Parts["datacenter"], "worker", d.Parts["worker"])
	fmt.Println(d)
	// Output:
	// 2022-06-28T16:07:40.105Z
	// datacenter 11 worker 26
	// 1541815603606036480: 2022-06-28T16:07:40.105Z, node 378 (datacenter 11, worker 26), sequence 0
}

// A day's rows by the primary key alone, without a column for the time.
func ExampleLayout_Between() {
	day := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	lo, hi, err := snowflake.Default().Between(day, day.AddDate(0, 0, 1))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("SELECT * FROM orders WHERE id BETWEEN %d AND %d\n", lo, hi)
	// Output:
	// SELECT * FROM orders WHERE id BETWEEN 153652455014400000 AND 154014842879999999
}

func ExampleParseLayout() {
	for _, spec := range []string{"sonyflake", "41/10/12,epoch=2026-01-01", "37/20/16"} {
		l, err := snowflake.ParseLayout(spec)
		if err != nil {
			fmt.Println(err)
			continue
		}
		fmt.Println(l)
	}
	// Output:
	// time=39,sequence=8,machine=16,tick=10ms,epoch=2025-01-01T00:00:00Z
	// time=41,node=10,sequence=12,tick=1ms,epoch=2026-01-01T00:00:00Z
	// spec "37/20/16": unusable layout: widths 37+20+16 sum to 73 bits; at most 63 fit (the 64th is the sign): remove 10; 37 bits of 1ms last 4.36 years
}

func ExamplePlan() {
	// 128 nodes for 80 years in IDs that survive as JavaScript numbers.
	demand := snowflake.Demand{Nodes: 128, RatePerNode: 20_000, Years: 80, Bits: 53}
	l, err := snowflake.Plan(demand)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(l)
	fmt.Println("until", l.End().Year())

	demand.Nodes = 1000
	_, err = snowflake.Plan(demand)
	fmt.Println(err)
	// Output:
	// time=38,node=7,sequence=8,tick=10ms,epoch=2025-01-01T00:00:00Z
	// until 2112
	// plan: 1000 nodes, 20000 IDs/s per node and 80 years need 56 bits, 3 more than 53 (38 time + 10 node + 8 sequence, with the best tick, 10ms); one of these fits: at most 128 nodes (7.82× fewer), or at most 3200 IDs/s per node (6.25× fewer), or at most 13.93 years (5.75× fewer), or a budget of 56 bits
}

// An old row gets an ID with the time at which it was made. The import must not use a
// node and sequence twice in one tick.
func ExampleLayout_Compose() {
	made := time.Date(2026, 3, 1, 9, 30, 0, 0, time.UTC)
	layout := snowflake.Default()
	id, err := layout.Compose(made, 1023, 5)
	if err != nil {
		fmt.Println(err)
		return
	}
	d, err := layout.Decode(id)
	fmt.Println(d, err)

	_, err = layout.Compose(made, 1024, 5)
	fmt.Println(err)
	// Output:
	// 153795900215390213: 2026-03-01T09:30:00.000Z, node 1023, sequence 5 <nil>
	// node 1024 is out of range: it needs 11 bits, but the field has 10 bits; give a number from 0 to 1023, or choose a layout with a wider field
}
