package lease_test

import (
	"testing"
	"time"

	"github.com/tickflake/tickflake/internal/cell"
)

// TestGivePast: what is given to the past, what is refused and why, and what cells say then. Each row begins with a fleet
// of 8 numbers.
func TestGivePast(t *testing.T) {
	lane := must(cell.NewLanes(smallLayout(3), 24*time.Hour, 16)).Cell()
	lane.Write, lane.Writes, lane.Next, lane.Most = "w", 1, 1, 1
	draw := "write " + cell.LaneKey(7, 7) + " '" + string(lane.Encode()) + "';"
	const all = "claim a; claim a; claim a; claim a; claim a; claim a; claim a; claim a;"
	rows := map[string]string{
		"given, and again": "give 6 7; past ......pp; give 6 7; past ......pp; give 5 7; past .....ppp; release 7 = held",
		"one was held": `claim k pin:3; close k; give 2 4 = 'node number 3: its cell was written before: IDs may have been issued with it: of the 8 of this store 7 were never used, such as 1'
			past ...x....`,
		"all were held":      all + "give 7 7 = 'so were all 8 of this store: give numbers to the past when a fleet is created'",
		"reserved":           "reserve 3 3 1h; give 3 3 = 'its cell was written before'; past ...R....",
		"outside":            "give 7 8 = 'want a range within 0 to 7'",
		"not claimed":        "give 6 7; claim k pin:7 = held refused 'node number 7 was given to the past, for good: use another number'; past ......pp",
		"other lanes":        "give 6 6; give 7 7 lane:8 = 'all past numbers of a store have the same'; give 7 7 bucket:1h = 'all past numbers of a store have the same'; past ......p.",
		"bad lanes":          "give 6 6 lane:3 = 'lane of 3 slots: want a power of two'; give 6 6 lane:8192 = 'from 1 to the 4096 slots'; give 6 6 bucket:1ns = 'bucket 1ns: want a multiple of the tick'; past ........",
		"defined otherwise":  "client c; fate c swap lost; give 6 6 c = store; give 6 6 lane:8 = 'node number 6 was to have buckets of 24h0m0s and lanes of 16 before'",
		"retired":            "give 6 7; retire 6 6; past ......rp; same 6 { retire 6 6 }; give 6 6 = 'its cell was written before'; give 5 5 = 'was retired, or its cell deleted'; give 5 5 unused; past .....prp",
		"retired, unknown":   "retire 7 7; past .......r; claim k pin:7 = 'given to the past'; claim k pin:3; close k; retire 3 3 = 'was not given to the past'",
		"raised":             "give 6 7; reserve 0 7 1h; past RRRRRRrr; reserve 0 7 1h; past RRRRRRrr; give 5 5 = 'its cell was written before'",
		"its cell deleted":   "snapshot s; give 7 7; back s;" + draw + "give 7 7 = 'was retired, or its cell deleted'; past ........",
		"the first act ends": "client c; fate c swap lost; give 6 7 c = store; give 6 7; past ......pp",
		"a stale read":       "client c; remember past/0000006; fate c swap lost; give 6 7 c = store; shows c; give 6 7 c; past ......pp",
		"the next one":       "client c; fate c swap lost 1+1; give 6 7 c = store; give 6 7; past ......pp",
	}
	for name := range rows {
		rows[name] = "all bits:3; found 0 7;" + rows[name]
	}
	rows["a floor"] = `all bits:3; found 0 7 floor:-1h; give 6 7 = 'the fleet has a floor: below it, another store may have issued IDs with it: if no ID was ever issued with it, say so: --unused'
		give 6 7 unused; past ......pp`
	// Their limits, at the end of time, tell a claim nothing of clocks, and one that finds no other number says so.
	rows["no witness"] = "all bits:2; give 1 3 lane:1; claim k strict; node k 0; claim x = '4 of 4 are held'; log 0 WARN"
	scripts(t, rows)
}
