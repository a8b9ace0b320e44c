package lease_test

import (
	"fmt"
	"testing"
	"time"
)

// TestWitness: a claim that meets a number whose limit lies far ahead of its clock says so once, unless it lies there
// on purpose, and a strict one ends.
func TestWitness(t *testing.T) {
	const far = 7 * 365 * 24 * time.Hour
	for name, test := range map[string]struct {
		before string
		by     time.Duration // that our clock is behind what was before
		ours   string        // options
		warns  string        // a text of the line, or "" for none
	}{
		"a release":         {"claim a bits:4; close a", far, "", "this clock is behind, or"},
		"two crashes":       {"claim a bits:4; claim b bits:4", far, "", "this clock is behind, or"},
		"a longer grant":    {"claim a bits:4 window:1h", time.Hour, "", ""},
		"near":              {"claim a bits:4; close a", time.Minute + 2*period - time.Second, "", ""},
		"not so near":       {"claim a bits:4; close a", time.Minute + 2*period + time.Second, "", "this clock is behind, or"},
		"reserved":          {fmt.Sprintf("reserve 0 9 %s bits:4", far+time.Hour), far, "", ""},
		"the fleet's floor": {fmt.Sprintf("found 0 15 bits:4 floor:%s; claim a bits:4; close a", far), far, "", ""},
		"our number":        {"claim a pin:7 bits:4; close a", far, "pin:7", "the grant begins"},
		"beside ours":       {"claim a pin:6 bits:4; close a", far, "pin:7", ""}, // it reads its own cell alone
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.run(fmt.Sprintf("step %s; %s; step -%[1]s", test.by, test.before))
			r.log = &record{}
			strict := "claim s bits:4 strict " + test.ours
			if test.warns == "" {
				r.run(strict + "; close s; claim k bits:4 " + test.ours + "; keep k 5m; log 0 'is behind, or'")
				return
			}
			r.run(strict + " = skew 'this clock is behind, or an earlier one was ahead' 'without the strict check'")
			r.log = &record{}
			r.run("claim k bits:4 " + test.ours + "; keep k 5m; log 1 WARN; log 1 '" + test.warns + "'")
		})
	}
	newRig(t).run(fmt.Sprintf("claim k bits:4 strict; step %s; claim a bits:4; step -%[1]s; restored k; log 1 'is behind, or'", far)) // it has begun
}
