package generatortest

import (
	"fmt"
	"strings"
)

// Scenario is a fault of the catalogue with its script.
type Scenario struct {
	Fault  string // such as "F5"
	Name   string // such as "repeated-steps"
	What   string // one line on what happens
	Script Script
}

// Catalogue returns the faults that every generator is put through. The caller owns them.
//
// The sizes make a generator with few IDs per tick use up some ticks. A generator with
// 4,096 per millisecond uses up ticks only where the fault is about that.
func Catalogue() []Scenario {
	return []Scenario{
		scenario("F1", "step-back-small", "the wall steps back by 1 to 5 ms, as NTP does",
			"ids 50 over 10ms; step -1ms; ids 50 over 10ms; ids 50; pass 20ms; ids 50 over 10ms; step -2ms; ids 50 over 5ms; ids 50; pass 20ms; "+
				"stream 9; step -5ms; stream 9; batch 40; pass 20ms; ids 50 over 10ms; step -5ms; ids 50 over 5ms; step -3ms; ids 1"),
		// Each step goes back into time with IDs: those before the step were spread over
		// it, and those after come at the same milliseconds.
		scenario("F2", "step-back-large", "the wall steps back by 1 s, 30 s, 10 min, 1 h, 1 year, 2 years",
			"ids 1000 over 2s; step -1s; ids 1000 over 1s; batch 20; pass 2s; ids 600 over 1m; step -30s; ids 400 over 40s; batch 20; pass 1m; "+
				"ids 1200 over 12m; step -10m; ids 1000 over 5m; stream 20; pass 10m; ids 50; step -1h; ids 50 over 50ms; step +1h; ids 50 over 50ms; "+
				"step -1h; ids 50 over 50ms; pass 2h; stream 20; step -8760h; ids 50; step -8760h; ids 50; pass 1s; ids 50"),
		scenario("F3", "step-forward", "the wall steps ahead by 1 h",
			"ids 50; step +1h; ids 50; stream 20; pass 1s; ids 500 over 1s; step +1h; batch 50; ids 50; pass 1s; batch 5000; pass 10s; step +1h; batch 5000"),
		scenario("F4", "forward-then-back", "the wall steps ahead by 1 h and back again: a bad NTP server, then a good one",
			"ids 50; step +1h; ids 50; stream 20; step -1h; ids 50; batch 50; pass 2s; ids 50; pass 2h; ids 50; "+
				// The same, in the middle of calls.
				"ids 50 over 50ms; step +1h at read 2; ids 50 over 50ms; step -1h at read 2; ids 50 over 50ms; pass 2h; ids 20 over 20ms; "+
				"step +1h at read 1; step -1h at read 2; ids 20 over 20ms; step +1h at read 3; step -1h at read 4; batch 50; stream 20; pass 2h; ids 50"),
		scenario("F5", "repeated-steps", "the wall steps back many times in a row, also into the same range twice",
			repeatedSteps()),
		scenario("F6", "slew", "the wall runs at half speed, then at double",
			"ids 100; slew 0.5 for 2s; ids 4000 over 2s; ids 200; slew 2 for 2s; stream 100; ids 4000 over 2s; slew 0.5 for 1s; step -3ms; ids 2000 over 2s"),
		scenario("F7", "freeze", "the clock stands still for a while",
			"ids 100; freeze 3ms; ids 5000; batch 100; pass 1s; freeze 3ms; batch 5000; pass 1s; freeze 20ms; ids 5000 over 15ms; pass 1s; freeze 200ms; stream 3000; pass 2s; ids 10"),
		scenario("F8", "coarse-clock", "the clock moves every 15.6 ms only, or every second",
			"coarse 15.6ms; ids 5000 over 1s; ids 100; batch 100; stream 100; coarse 1s; ids 200 over 5s; step -1s; ids 100 over 3s"),
		scenario("F9", "suspend", "monotonic time stops while the wall goes on",
			"ids 100; suspend 1h; ids 100; pass 3s; ids 100; suspend 10s; batch 50; step -10s; ids 100; pass 20s; stream 30; suspend 8h; ids 100 over 3s"),
		scenario("F10", "leap-second", "the wall repeats one second",
			"pass 1500ms; leap; ids 3000 over 3s; ids 200; leap; pass 990ms; stream 500; ids 2000 over 20ms; ids 500"),
		scenario("F11", "restart-after-step-back", "the process ends, the wall steps back by 1 s or 1 h, the process starts again",
			"ids 100; step -1s; restart; ids 100; pass 5s; ids 100; step -1h; restart; ids 100; ids 5000 over 4s; step -3500ms; crash; ids 3000 over 4s; step -5ms; crash; ids 100; "+
				"pass 2h; ids 1000 over 10s; step -5ms; restart; ids 20; step -5s; restart; ids 1000 over 10s; step -8s; crash; ids 1000 over 1m"),
		scenario("F12", "crash-after-burst", "the process is killed in a burst and starts again at once",
			"ids 5000; crash; ids 5000; pass 100ms; ids 5000 over 1s; crash; ids 5000 over 1s; restart; ids 100; "+
				// After a minute, a process that leaves out the reserved time of the dead one works again.
				"pass 1m; ids 1000 over 10s; crash; ids 2000 over 20s; crash; ids 100; pass 1m; batch 200; crash; batch 200; ids 1000 over 1m; "+
				// In the middle of a call, wherever it reads the clock.
				"crash at read 1; pass 1m; ids 100 over 1s; crash at read 2; ids 100; pass 1m; ids 100 over 1s; crash at read 3; ids 100; crash at read 4; pass 1m; ids 100"),
		scenario("F13", "pause-and-takeover", "the process stops in the middle of a call, another takes its node number, the first wakes up and goes on",
			"ids 100; takeover 10s; ids 100; takeover 1m; ids 100; takeover 1h; ids 100; takeover 3s; ids 100 over 10s"),
		scenario("F16", "exhaustion", "many callers ask for more than the layout holds",
			"callers 8; ids 10000; pass 1ms; ids 6000 over 20ms"),
		scenario("F17", "end-of-time", "the time field runs out",
			"begin end-20ms; ids 100; pass 10ms; ids 100; stream 10; pass 9ms; ids 5000; batch 50; pass 2ms; ids 10; stream 3; batch 3; pass 1h; ids 3"),
		scenario("F18", "before-epoch", "the clock reads 1970: no battery, no network",
			"begin 1970-06-15T12:00:00Z; ids 50; pass 1s; ids 50"),
		scenario("F22", "wrong-at-start", "the wall is 3 h behind when the process starts, then a year ahead, and is corrected by a step each time",
			"begin 2026-06-01T09:00:00Z; ids 100 over 1s; step +3h; ids 100 over 1s; batch 50; restart; ids 100 over 1s; "+
				"step +8760h; restart; ids 100 over 1s; stream 20; step -8760h; ids 100 over 1s; batch 50; crash; ids 100 over 1s; pass 1m; ids 50"),
	}
}

func scenario(fault, name, what, text string) Scenario {
	script, err := ParseScript(text)
	if err != nil {
		panic(fault + ": " + err.Error()) // a constant of this file, parsed by every test
	}
	return Scenario{Fault: fault, Name: name, What: what, Script: script}
}

// repeatedSteps goes back by 0 to 7 ms every few IDs, more than the clock advances: between
// calls, and then in the middle of them, at their first, second or third reading of
// the clock. Then it goes back far, twice into what has been used.
func repeatedSteps() string {
	var text string
	for i := range 200 {
		text += []string{"ids 5; ", "ids 1; ", "stream 3; ", "batch 7; ", "ids 20; "}[i%5]
		text += []string{"step -1ms; ", "step -2ms; ", "pass 3ms; ", "step -7ms; ", "step +1ms; ", "step -300us; ", "pass 1ms; "}[i%7]
	}
	text += "pass 1s; " + strings.Repeat("ids 3; step -5ms; ids 16; pass 6ms; ", 8)
	text += "pass 2s; ids 50; step -200ms; ids 10; step -200ms; ids 10; pass 200ms; ids 10; pass 200ms; ids 50; pass 2s; "
	for i := range 200 {
		text += fmt.Sprintf("step -%dms at read %d; ", []int{1, 2, 5, 1, 3}[i%5], i%3+1)
		text += []string{"ids 5 over 5ms; ", "ids 1; ", "stream 3; ", "batch 7; ", "ids 20; ", "ids 4 over 2ms; "}[i%6]
		text += []string{"pass 3ms; ", "pass 1ms; ", "", "pass 2ms; "}[i%4]
	}
	for _, far := range []string{"30s", "10m"} {
		text += "pass 20m; ids 1200 over 12m; " + strings.Repeat("step -"+far+"; ids 100 over 1m; ", 2) +
			"pass 20m; ids 1200 over 12m; " + strings.Repeat("step -"+far+" at read 2; ids 100 over 1m; ", 2)
	}
	return text + "pass 20m; ids 50"
}
