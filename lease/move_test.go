package lease_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/internal/cell"
	"github.com/tickflake/tickflake/lease"
)

// TestSites: every claim keeps to the numbers and the floor of its store's fleet, which is created once.
func TestSites(t *testing.T) {
	scripts(t, map[string]string{
		"numbers": `found 4 6 bits:3; fleet 4 6; claim a bits:3; claim b bits:3; claim c bits:3; claim d bits:3 = '3 of 3 are held'
			claim p bits:3 pin:3 = refused 'node number 3 is none of this store' 'which has 4 to 6'; claim p bits:3 pin:6
			reserve 6 7 1h bits:3 = held; reserve 7 7 1h bits:3 = refused 'Reserve: node number 7 is none of this store'`,
		"numbers, locked": `found 4 6 bits:3; claim a bits:3 locks; holds a 4; claim b bits:3 locks; holds b 5; claim c bits:3 locks; claim d bits:3 locks = '3 of 3'`,
		"a floor":         "found 0 1 bits:1 floor:1h0m0.0000001s; fleet 0 1 floor:1h0m0.001s; claim k bits:1; granted k 1h0m0.001s 1h0m30.001s; claim p bits:1 pin:1; granted p 1h0m0.001s 1h0m30.001s; log 2 'lease: no ID is issued before'",
		"a floor near":    "found 0 1 bits:1 floor:30s; claim k bits:1; granted k 30s 1m0s; log 0 'lease: no ID is issued before'",
		"numbers that are later": `found 0 1 bits:1 later:2h; holding 0 reserved 2h0m0s; fleet 0 1; claim a bits:1; holds a 1; claim b bits:1 = '2 of 2 are held'
			found 0 1 bits:1 later:1h; found 0 1 bits:1 later:3h = refused 'node number 0 may begin before'; 2h; claim b bits:1; granted b 2h0m0s 2h0m30s`,
		"the same again":      "found 4 6 bits:3 floor:1h; found 4 6 bits:3 floor:1h; found 4 6 bits:3 = refused 'another fleet, of the node numbers 4 to 6 from 2029-06-01T13:00:00Z'; found 4 7 bits:3 floor:1h = refused",
		"after a claim":       "fleet = never-claimed; claim k bits:3; fleet 0 7; found 0 7 bits:3; found 0 6 bits:3 = refused 'another fleet'",
		"some have left":      "found 0 3 bits:2; end 2 3 new; found 0 1 bits:2 = refused 'another fleet'",
		"another layout":      "found 0 7 bits:3; claim k bits:2 = refused 'lease reserve'; found 0 3 bits:2 = refused 'the IDs of this store have the layout'",
		"a number is granted": "client c; on c swap:node { claim k bits:1 pin:0 }; found 0 1 bits:1 later:1h c = held",
		"a claim is faster":   "client c; on c swap:layout { claim k bits:1 }; found 1 1 bits:1 c = refused 'another fleet, of the node numbers 0 to 1'",
		"it is cut off":       "client c; fate c swap:layout lost; found 0 0 bits:1 later:1h c = store; holding 0 reserved 1h0m0s; found 0 0 bits:1 later:1h; fleet 0 0",
		"no such numbers":     "found 0 8 bits:3 = refused 'within 0 to 7'; found 3 2 bits:3 = refused; found 0 7 bits:3 floor:700000h = refused 'before the end'; fleet = never-claimed",
	})
}

// TestEnd ends fleets, and creates others with their numbers. Whoever holds one uses it up, and no more; whoever
// gets one begins where it ended.
func TestEnd(t *testing.T) {
	long := strings.Repeat("n", cell.MaxTo)
	many := "found 0 63 bits:6;"
	for node := range 29 {
		many += fmt.Sprintf("end %d %[1]d new;", 63-node)
	}
	const old = "claim x bits:2 pin:0; claim p bits:2 pin:3; claim f bits:2; close x;"
	scripts(t, map[string]string{
		"all": old + `end 0 3 new; later 0 3 floor:30s; fleet 0 3 ended 0-3:new; holding 3 moved 30s; holding 0 moved 0s; end 0 3 new; later 0 3 floor:30s
			end 0 3 elsewhere = moved 'to new: ''tickflake lease end --to "new"'; end 0 1 new = moved; found 0 3 bits:2 = moved
			15s; poll f; granted f 0s 30s; err f = moved 'to new'; close f; poll p; granted p 0s 30s; err p = lost moved 'node number 3 was moved to new'; close p
			reserve 0 0 8760h bits:2 = moved; release 0 = moved; claim o bits:2 = moved; claim o bits:2 pin:1 = moved
			in new; found; fleet 0 3 floor:30s; step -1h; claim n bits:2 pin:3; granted n 30s 1m0s; claim m bits:2; granted m 30s 1m0s
			step 1h; end 0 3 third; later 0 3 floor:1m0s; step -1h; in third; found; claim n bits:2; granted n 1m0s 1m30s`,
		"some": old + `end 2 3 new; later 2 3 floor:30s; fleet 0 1 2-3:new; end 2 3 new; end 1 3 new = refused 'those of this store, 0 to 1'; end 3 3 new = refused
			15s; poll f; poll p; err p = lost moved; granted p 0s 30s; claim o bits:2 pin:2 = moved 'node number 2 was moved to new'
			step -15s; claim a bits:2; claim b bits:2 = '2 of 2 are held'; end 0 0 'the third'; fleet 1 1 2-3:new '0-0:the third'; end 1 1 new; fleet 1 1 ended 2-3:new '0-0:the third' 1-1:new`,
		"one of the middle":            "found 0 3 bits:2; end 1 2 new = refused 'at the lower or the upper end'; end 0 4 new = refused; end 2 1 new = refused; fleet 0 3",
		"a name that shows a password": "found 0 3 bits:2; end 0 3 user:s3cr3t@h = refused",
		"one that holds none any more": "claim k bits:1 pin:1; claim x bits:1; end 1 1 new; close x; 15s; poll k; err k = lost moved; claim o bits:1; holds o 0",
		"goes on with another number":  "claim x bits:1 pin:0; claim k bits:1; close x; end 1 1 new; 15s; poll k; err k; holds k 0; log 1 'an operator moved it to new'",
		// A clock that ran ahead parks its number; if most did, the clock of the operator is wrong.
		"a limit far ahead":  "step 1h; claim k bits:2 pin:2; step -1h; claim x bits:2 pin:1; end 0 3 new; later 0 3 floor:30s 2:1h0m30s; 2h; end 0 3 new; later 0 3 floor:30s 2:1h0m30s; step -2h; in new; found; holding 2 reserved 1h0m30s; step 30s; claim n bits:2 pin:2 = held",
		"limits far ahead":   "step 1h; claim k bits:1 pin:0; claim x bits:1 pin:1; step -1h; end 0 1 new = '2 of 2 node numbers were granted more than two windows ahead of this clock, which says 2029-06-01T12:00:00Z'; fleet 0 1; 15s; poll k; err k; holding 0 held",
		"a reserved one":     "reserve 0 0 1h bits:1; end 0 1 new; later 0 1 0:1h0m0s",
		"all are reserved":   "reserve 0 1 1h bits:1; end 0 1 new; later 0 1 0:1h0m0s 1:1h0m0s",
		"the end of time":    "claim k bits:0; write 0 '" + fmt.Sprintf(`{"format":1,"limit":%d,"write":"w","layout":"%s"}`, uint64(1)<<smallLayout(0).TimeBits, smallLayout(0)) + "'; end 0 0 new = '1 of 1'",
		"a floor of its own": "found 0 1 bits:1 floor:1h; end 0 1 new; later 0 1 floor:1h0m0s; holding 1 moved 1h0m0s",
		"in two lists":       "claim k bits:13 pin:5000; end 0 8191 new; later 0 8191 floor:30s; holding 4095 moved; holding 4096 moved; holding 5000 moved 30s; holding 8191 moved",
		"no fleet":           "end 0 0 new = never-claimed",

		"another is faster": `claim k bits:2; client fast; fate fast swap:node away
			client slow; on slow swap:layout { end 0 3 new fast = store '0 of 4 node numbers have left' }; end 0 3 new slow; later 0 3 floor:30s`,
		"another gives others away":          "claim k bits:2; client slow; on slow swap:layout { end 3 3 other }; end 0 0 new slow; fleet 1 2 3-3:other 0-0:new",
		"a claim that is late":               "found 0 0 bits:0; client k; fate k swap:node delayed; claim k bits:0 = store; end 0 0 new; deliver; holding 0 moved; in new; found; claim n bits:0; granted n 0s 30s",
		"a claim has read the fleet's cell":  "claim x bits:2 pin:3; close x; client k; on k read:node { end 3 3 new }; claim k bits:2 pin:3 = moved !held",
		"a process extends before the write": "claim k bits:0; client slow; on slow swap:node { 15s; poll k }; end 0 0 new slow; later 0 0 floor:45s",
		"a process extends before a read":    "claim k bits:0; client slow; fate slow swap:node lost; on slow read:node { 15s; poll k }; end 0 0 new slow = store; end 0 0 new; granted k 0s 30s; later 0 0 floor:30s",
		"others write a cell":                "claim k bits:0; client slow; on slow swap:node 99 { write 0 }; end 0 0 another slow = conflict '8 times in a row'",
		"what a list shows is read":          "found 0 0 bits:0; end 0 0 new; client c; fate c read:node away; end 0 0 new c = store",
		"names for which there is no room":   "found 0 7 bits:3; end 7 7 " + long + "; end 6 6 " + long + "; end 5 5 " + long + "; end 4 4 " + long + "; end 7 7 new = moved; end 7 7 " + long,
		"room to end all":                    many + fmt.Sprintf("end %d %[1]d new = refused 'no room for more: end all of it'; end 0 %[1]d %s", 63-29, long),
		"a listed write is undone":           "claim k bits:0; snapshot held; end 0 0 new; client c; on c read:node { back held }; end 0 0 new c; holding 0 moved 30s",
		"those that are held come last":      "claim k bits:1 pin:0; client c; fate c swap:node away 99+1; end 0 1 new c = store '1 of 2 node numbers have left'; holding 0 held; end 0 1 new",
		"it is cut off, and another name":    "found 0 1 bits:1; client c; fate c swap:node away; end 0 1 new c = store; end 0 1 elsewhere = moved 'to new'; end 0 1 new",
		"it is cut off, and has a floor":     "found 0 1 bits:1 floor:1h; client c; fate c swap:node away; end 0 1 new c = store; end 0 1 new; later 0 1 floor:1h0m0s; holding 1 moved 1h0m0s",
		"a reservation is late":              "found 0 0 bits:0; client c; on c read:node { end 0 0 new }; reserve 0 0 1h bits:0 c = moved 'was moved to new'; holding 0 moved",
		"a damaged number":                   "claim k bits:0; write 0 rubbish; end 0 0 new = damaged 'node number 0 cannot be read'",
		"the outcome is unknown":             "claim k bits:2; client c; fate c swap:layout lost; end 0 3 new c = store 'perhaps'; end 0 3 new; later 0 3 floor:30s",
		"the store went back": `claim k bits:0; snapshot then; 15s; poll k; back then; end 0 0 new; later 0 0 floor:30s
			15s; poll k; err k = went-back; holding 0 moved 45s; claim o bits:0 = moved`, // what has left stays away
	})
}

// TestEndIsCutOff fails an end at each of its calls. What the next one returns is the same, and before it nothing is.
func TestEndIsCutOff(t *testing.T) {
	for _, fate := range []string{"away", "lost"} {
		for calls := 0; ; calls++ {
			r := newRig(t)
			r.run(fmt.Sprintf("found 0 3 bits:2 floor:10s; claim k bits:2 pin:1; claim x bits:2 pin:2; close x; client c; fate c any %s 99+%d", fate, calls))
			f, err := lease.EndFleet(t.Context(), r.members["c"].via, 0, 3, "new", r.options()...)
			if err == nil {
				require.Equal(t, 9, calls)
				break
			}
			require.ErrorIs(t, err, lease.ErrStore)
			require.Zero(t, f)
			r.run("end 0 3 new; later 0 3 floor:40s; fleet 0 3 floor:10s ended 0-3:new")
		}
	}
}
