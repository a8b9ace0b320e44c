package generator_test

import "testing"

// TestSlots guards which slot a call takes, of a clock that goes anywhere, and what the strategy
// decides about a slot that lies ahead.
func TestSlots(t *testing.T) {
	scripts(t, map[string]row{
		"a tick's, one after the other": {"narrow reject",
			"next 0:0..3; +1ms; next 1:0..3; +1ms; next 2:0; +1h; +900us; next 3600002:0"},
		"batch": {"narrow wait:1s", "next 0:0; batch 10 10 0:1 2:2; waits 2*1ms; batch 0 0"},
		"batch fails half way": {"narrow wait:2ms",
			"batch 100 12 0:0 2:3 exhausted:1ms/2ms+2ms"},
		"batch ends with its context": {"narrow own-cancel", "batch 100 16 0:0 3:3 canceled"},
		"run": {"narrow reject",
			"next 0:0; run 2 2 0:1 0:2; run 9223372036854775807 1 0:3 0:3 exhausted:1ms/0s; run 1 0 exhausted; +1ms; run -1 0; run 1 1 1:0 1:0"},
		"context has ended": {"narrow reject",
			"cancel; next canceled; batch 1 0 canceled; stream canceled; run 1 0 canceled; free; next 0:0"},
		"closed": {"default wait",
			"stream 0:0..9; close; close; next closed; batch 3 0 closed; run 1 0 closed; stream closed; stats lead=0s; ready 1h closed"},

		"exhausted, reject": {"narrow reject",
			"+300us; next 0:0..3 exhausted:700µs/0s; stats rejections=1; +700us; next 1:0"},
		"exhausted, wait": {"narrow wait:1ms", "+300us; next 0:0..3 1:0; waits 700us; stats waits=1 waited=700µs"},
		"exhausted, borrow": {"narrow borrow:2ms",
			"+300us; next 0:0..3 1:0..3 2:0..3 behind:2.7ms/2ms; waits; stats borrowed=2 lead=1.7ms maxlead=2.7ms"},

		"behind, reject": {"default reject",
			"next 0:0; -1h; next 3*behind:1h0m0s/0s; stats lead=1h0m0s; +1h; next 0:1"},
		"behind, wait":             {"default wait:1h", "next 0:0; -1h; next 0:1; waits 1h"},
		"behind, wait too short":   {"default wait:59m", "next 0:0; -1h; next behind:1h0m0s/59m0s; waits"},
		"behind, borrow":           {"default borrow:1h", "next 0:0; -1h; next 0:1; waits; stats borrowed=1 maxlead=1h0m0s"},
		"behind, borrow too short": {"default borrow:59m", "next 0:0; -1h; next behind:1h0m0s/59m0s"},
		"behind, borrow for the other cause": {"default exhausted=borrow:1h/behind=reject",
			"next 0:0; -1h; next behind:1h0m0s/0s"},
		"behind, borrow, then wait": {"default borrow:250ms,wait:1s", "next 0:0; -1s; next 0:1; waits 750ms"},
		"behind, own borrow": {"default own-borrow",
			"next 0:0; -1h; next 0:1; batch 5000 5000 0:2 1:905; waits"},
		"own wait, without a time": {"default own-wait", "next 0:0; -1s; next 0:1; waits 1s"},
		"own wait, in steps":       {"default own-steps", "next 0:0; -1s; next 200:0; waits 3*400ms; decided 3"},
		"own action, unknown":      {"default own-unknown", "next 0:0; -1s; next behind:1s/1m0s"},

		"frozen clock": {"narrow wait:10ms", "freeze; next 0:0..3 exhausted:1ms/10ms+10ms; waits 10*1ms"},
		"second step while waiting": {"default wait:8ms",
			"next 0:0; -5ms; freeze; next behind:5ms/8ms+5ms"},

		// Nothing was issued, but what was before the start is not this generator's.
		"step back before the first call": {"default reject", "-1h; next behind:1h0m0s/0s; stats lead=1h0m0s; +1h; next 0:0"},
		"borrow of the layout's first tick": {"at-epoch borrow:1s",
			"-1ms; next 0:0 0:1; stats borrowed=1 maxlead=1ms"},
		"start in the layout's first tick": {"at-epoch reject",
			"stats lead=0s; -1h; next behind; +1h; next 0:0; -1ns; next behind:1ns/0s"},
		"clock before the epoch, before the first call": {"default borrow:1h",
			"at 1970-01-01; next behind; stream behind; at 1700-01-01; next behind; at 0001-01-01; next behind; stream behind; at 2026-06-02; next any"},
		"clock before the epoch": {"default borrow:1h",
			"next 0:0; at 1970-01-01; next behind; stream behind; at 1700-01-01; next behind; at 0001-01-01; next behind; at 2026-06-02; next any"},
		"clock 200 years after the epoch, then before it": {"long reject",
			"at 2176-01-01; next any; at 1976-01-01; next behind; at 1876-01-01; next behind; at 0001-01-01; next behind"},
		"end of nanoseconds": {"long reject", "next 0:0; at 2263-01-01; next end; at 9999-01-01; next end"},

		"end of time, reject":     {"short reject", "+3ms; next 3:0 3:1 2*end; batch 3 0 end; run 1 0 end; stream end; ready 1h end"},
		"end of time, wait":       {"short wait", "+3ms; next 3:0 3:1 2*end; batch 3 0 end; waits"},
		"end of time, borrow":     {"short borrow:2000000h", "+2ms; batch 9 4 2:0 3:1 end; next end"},
		"end of time, own borrow": {"short own-borrow", "+2ms; batch 9 4 2:0 3:1 end; next end; stats borrowed=1"},
		"end of time by the clock": {"deep borrow:1h",
			"next 0:0; stream 0:1; +4ms; next end; stream end; +1h; next end; at 2126-01-01; next end; stream end"},
	})
}

// TestStreams guards how many slots a stream reserves, and when it drops them.
func TestStreams(t *testing.T) {
	scripts(t, map[string]row{
		"one ID per tick drops one slot per tick": {"default reject",
			"stream 0:0; next 0:1; +1ms; stream 1:0; next 1:2; +1ms; stream 2:0; next 2:2"},
		"no more than twice what was used": {"default reject",
			"stream 0:0..999; next 0:1023; +1ms; stream 1:0; next 1:256; +1ms; stream 2:0; next 2:2"},
		"at most a sixteenth of the tick": {"default reject", "stream 0:0..1022; next 0:1023; stream 0:1024; next 0:1280"},
		"at most 1024 slots":              {"deep reject", "stream 0:0..3070; next 0:3071; stream 0:3072; next 0:4096"},
		"a block ends with its tick": {"default wait",
			"stream 0:0..9; +1ms; stream 1:0..9; +1ms; next 2:0; -1ms; stream 2:1"},
		"a block ends with its tick, in a borrow": {"default borrow:1s",
			"stream 0:0..9; +1ms; stream 1:0..9; +1ms; next 2:0; -1ms; stream 2:1"},
		"through a borrow": {"narrow borrow:2ms",
			"stream 0:0..3 1:0..3 2:0..3 behind; +1ms; stream 3:0"},
		"a block ahead of the clock is not issued": {"default reject", "stream 0:0..9; -1s; stream behind; +1s; stream 0:10"},
		"a seen ID ends the block": {"default borrow:5ms",
			"stream 0:0..9; stream-after 0:3 0:15; stream 0:16; stream-after 5:1 5:2; stream 5:3; stream-after 9:0 behind; stream 5:4"},
		"a block serves a whole borrow": {"default borrow:1h", "stream 0:0..99; -1m; stream 0:100..600"},
		// A longer block would take slots that the strategy has not granted.
		"an own borrow takes one slot": {"default own-borrow",
			"stream 0:0..999; -1m; next 0:1023; stream 0:1024; next 0:1025; stream 0:1026..1028; next 0:1029; decided 7"},
		"an own borrow of the next tick takes one slot": {"default own-borrow",
			"stream 0:0..999; batch 3073 3073 0:1023 0:4095; next 1:0; stream 1:1; next 1:2; stream 1:3..9; next 1:10"},
	})
}

// TestWaits guards how long calls wait, by the machine's clock and by a fake one, and what ends a
// wait.
func TestWaits(t *testing.T) {
	scripts(t, map[string]row{
		"a millisecond": {"machine default wait:1ms", "next 0:0; -1ms; next 0:1; took 1ms; stats waits=1 waited=1ms"},
		"an hour":       {"machine default wait:1h", "next 0:0; -1h; next 0:1; took 1h; stats waits=1 waited=1h0m0s"},
		"a batch, for each tick": {"machine narrow wait:3ms",
			"batch 100 16 0:0 3:3 exhausted:1ms/3ms+3ms; stats waits=3 waited=3ms; sleep 1ms; batch 8 8 4:0 5:3"},
		"until the context ends": {"machine default wait",
			"next 0:0; -1h; deadline 30m; next deadline:30m0s; took 30m; deadline 10ms; stream deadline; took 10ms; deadline 10ms; batch 2 0 deadline; deadline 10ms; run 2 0 deadline; took 20ms"},
		"until the context ends, short": {"machine default wait",
			"next 0:0; -1200us; deadline 600us; next deadline; within 2600us"},
		"until the context ends, on a fake clock": {"default wait",
			"next 0:0; -1h; mute; deadline 1s; batch 3 0 deadline:1s; took 1s; stats waits=1 waited=1s"},
		"until it is closed":        {"machine default wait", "next 0:0; -1h; go next; go next; go stream; close; back 3*closed; took 0s"},
		"until it is closed, short": {"machine default wait", "next 0:0; -1200us; go next; go next; close; sleep 2ms; back 2*closed"},
		"until a step forward": {"machine default wait",
			"next 0:0; -1h; go next; sleep 1s; +1h; sleep 100ms; back 1100:0"},
		"after each end of a wait, others may wait": {"machine default wait:1ms",
			"next 0:0; -1ms; deadline 500us; next deadline; free; sleep 1ms; next any; -1ms; deadline 500us; next deadline; free; sleep 1ms; next any"},
		"one that becomes long lets others sleep for the tick": {"machine narrow wait",
			"next 0:0..3; go next; sleep 500us; -50ms; sleep 2ms; +50ms; within 3ms; next 12*any; within 4ms; back any"},
		"a hair longer than a thread sleeps": {"machine narrow own-hair",
			"at 2026-06-02; deadline 500ms; batch 5 4 43200000:0 43200000:3 deadline:500ms; decided 2000"},
	})
}

// TestQueue guards that calls that wait are served in their order, and before those that come later.
func TestQueue(t *testing.T) {
	scripts(t, map[string]row{
		"before a call": {"machine narrow wait:1s",
			"batch 4 4 0:0 0:3; go next; +1ms; go next; back - 1:1; sleep 1ms; back 1:0"},
		"before a batch": {"machine narrow wait:1s",
			"batch 4 4 0:0 0:3; go next; go next; go next; back 3*-; +1ms; go batch 1; back - 1:1 1:2 1_1:3_1:3; sleep 1ms; back 1:0"},
		"before a stream, which waits for the tick after": {"machine narrow wait:1s",
			"batch 4 4 0:0 0:3; go next; go next; go next; go next; back 4*-; +1ms; go stream; back - 1:1..3 -; sleep 1ms; back 1:0 2:0"},
		"within a tick": {"machine grant:0-100 wait:1s", "take 1; go next; back -; +1ms; go next; back - 1:2; sleep 1ms; back 1:1"},
		"for a grant": {"machine grant:0-1 wait:1s",
			"sleep 5ms; go next; go next; go next; go next; go next; back 5*-; grant 1 0 100; back 5:0..3 -; sleep 1ms; back 6:0"},
		"long waits, served by a call": {"machine default wait:1s",
			"next 0:0; -50ms; go next; go next; back 2*-; +50ms; next 0:3; back 0:1..2; took 0s"},
		// The clock stops. The call that sleeps for the next tick passes its turn on, to one that has waited longer.
		"each keeps to its own bound": {"machine narrow wait:5ms",
			"batch 4 4 0:0 0:3; go batch 20; sleep 3500us; go next; sleep 700us; freeze; sleep 1ms; back 16_1:0_4:3_exhausted:800µs/5ms+5ms -; sleep 9ms; back any"},
		"calls that give up": {"machine narrow wait:1s",
			"batch 4 4 0:0 0:3; go next; go next; gate false; cancel; sleep 2ms; back 2*canceled; gate true; free; next 2:0..3"},
	})
}
