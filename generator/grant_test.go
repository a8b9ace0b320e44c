package generator_test

import "testing"

// TestGrantEnds guards what calls return when no slot is granted, how long they wait for a grant,
// and that they go on with the next.
func TestGrantEnds(t *testing.T) {
	scripts(t, map[string]row{
		"and comes again": {"grant:0-2 reject",
			"fail away; stats granted=2ms; next 0:0..3; +1ms; next 1:0..3; +1s; +1ms; " +
				"next ungranted:2ms:1s,away; asked; next ungranted:2ms:1s,away; asked; stats granted=-1s; grant 1 0 2000; next 1002:0"},
		"revoked": {"grant:0-100 reject", "next 0:0; revoke; next ungranted:1ms:-1ms; stats granted=1ms"},
		"sealed":  {"grant:0-100 reject", "stream 0:0; seal; next closed; stream closed; close"},
		"after the end of time": {"short grant:0-1000 borrow:1h",
			"batch 9 8 0:0 3:1 end; grant 0 5000 9000; next end"},

		"no wait, by the strategy":     {"grant:0-1 borrow:1h", "+1m; next ungranted:1ms:59.999s"},
		"no wait, by your own":         {"grant:0-1 own-wait", "+1m; next ungranted:1ms:59.999s"},
		"a wait":                       {"grant:0-1 wait:250ms", "+1m; next ungranted:1ms:1m0.249s+250ms; stats waited=250ms"},
		"lost for good":                {"grant:0-1 wait", "+1m; fail lost; next ungranted:1ms:59.999s,lost"},
		"a wait until the deadline":    {"machine grant:0-1 reject", "sleep 2ms; deadline 1h; next ungranted:1ms:1h0m0.001s+1h0m0s,deadline"},
		"another number comes":         {"machine grant:0-1 reject", "sleep 2ms; deadline 1h; go next; back -; asked; grant 2 0 100; back 2:0@2"},
		"a wait until it is closed":    {"machine grant:0-1 reject", "sleep 2ms; deadline 1h; go next; go stream; back 2*-; close; back 2*closed"},
		"the store refuses, meanwhile": {"machine grant:0-1 reject", "sleep 1ms; deadline 1h; fail away; go next; sleep 1m; back -; fail refused; back ungranted:1ms:1m0s+1m0s,refused; took 1m1ms; next ungranted:1ms:1m0s,refused; took 0s"},
		"lost, meanwhile":              {"machine grant:0-1 reject", "sleep 1ms; deadline 1h; go next; sleep 1m; back -; fail lost; back ungranted:1ms:1m0s+1m0s,lost"},
		"the store went back": {"machine grant:0-1 reject",
			"sleep 1ms; fail went-back; deadline 1s; next ungranted:1ms:1s+1s,went-back,deadline; free; grant 2 1 9999; next 1001:0@2"},

		// A wait for slots uses up no patience for a grant, nor one for a grant that for slots, nor
		// one that others have used up that for the next.
		"slots, then a grant": {"machine grant:0-10 wait:250ms",
			"sleep 9ms; next 9:0..2; -200ms; batch 2 1 9:3 9:3 ungranted:10ms:249ms+450ms"},
		"a grant, then slots": {"machine grant:0-10 wait:250ms",
			"sleep 560ms; go next; sleep 200ms; back -; grant 2 1000 2000; sleep 240ms; back 1000:0@2"},
		"grants for others": {"machine grant:0-10 wait:250ms",
			"sleep 10ms; go next; sleep 200ms; grant 1 0 100; sleep 200ms; grant 1 0 300; sleep 200ms; back -; grant 1 0 1000; back 610:0"},

		"begins ahead, reject": {"grant:5-9 reject", "stats lead=5ms; next behind:5ms/0s; +5ms; next 5:0"},
		"begins ahead, borrow": {"grant:5-9 borrow:5ms", "next 5:0; waits"},
		"begins ahead, wait":   {"grant:5-9 wait:5ms", "next 5:0; waits 5ms"},

		// The tick in which a number changes counts as used up, not as a clock that is behind.
		"another number costs the tick": {"grant:0-100 exhausted=wait/behind=reject", "next 0:0; grant 0 0 100; next 1:0@0; waits 1ms"},
		"another number keeps the order": {"grant:0-1000 borrow:1h",
			"next 0:0; stream 0:1; grant 3 0 1000; next 1:0@3; stream 1:1@3; grant 0 0 1000; next 2:0@0; grant 3 500 2000; grant 0 700 2000; next 700:0@0; stream 700:1@0"},
	})
}

// A clock that jumps over the end of the grant must not reach beyond it.
func TestClockPastTheGrant(t *testing.T) {
	scripts(t, map[string]row{
		"jump":             {"grant:0-100 borrow:1h", "next 0:0; +100ms; next ungranted; batch 3 0 ungranted; run 3 0 ungranted; stream ungranted"},
		"jump with blocks": {"grant:0-100 borrow:1h", "stream 0:0; +99ms; stream 99:0..2; +1ms; stream ungranted"},
	})
}

// Ready tells what a call would meet, also beyond the time that the caller has, and takes nothing.
func TestReady(t *testing.T) {
	scripts(t, map[string]row{
		"reject":            {"grant:5-9 reject", "ready 1h behind:5ms/0s"},
		"wait":              {"grant:5-9 wait:5ms", "ready 5ms ok; ready 4ms behind:5ms/4ms"},
		"wait too short":    {"grant:5-9 wait:4ms", "ready 1h behind:5ms/4ms"},
		"borrow":            {"grant:5-9 borrow:5ms", "ready 0s ok"},
		"borrow too short":  {"grant:5-9 borrow:4ms", "ready 1h behind:5ms/4ms"},
		"borrow, then wait": {"grant:5-9 borrow:1ms,wait", "ready 4ms ok; ready 0s behind:5ms/1ms"},
		"own borrow":        {"grant:5-9 own-borrow", "ready 0s ok"},
		"own wait":          {"grant:5-9 own-wait", "ready 5ms ok; ready 4ms behind:5ms/4ms"},
		"own, unknown":      {"grant:5-9 own-unknown", "ready 1h behind:5ms/1m0s"},
		"the tick is used up, the grant, the layout": {"short grant:0-3 reject",
			"ready 0s ok; next 0:0 0:1; ready 0s ok; +3ms; ready 1h ungranted:3ms:0s; +1ms; ready 1h end; seal; ready 1h closed"},
	})
}

// Err tells whether a restart is needed: not while the grant lasts, and not when the next one may still come.
func TestErr(t *testing.T) {
	scripts(t, map[string]row{
		"lost":     {"grant:0-3 reject", "fail lost; err ok; next 0:0; +3ms; err ungranted:3ms:0s,lost"},
		"moved":    {"grant:0-3 reject", "fail moved; err ok; next 0:0; +3ms; err ungranted:3ms:0s,moved"},
		"away":     {"grant:0-3 reject", "fail away; +3ms; err ok"},
		"refused":  {"grant:0-3 reject", "fail refused; +3ms; err ok"},
		"a lead":   {"grant:5-9 reject", "ready 0s behind:5ms/0s; err ok"},
		"used up":  {"short grant:0-3 reject", "+3ms; err ok; +1ms; err end; seal; err closed"},
		"borrowed": {"grant:0-3 borrow:1h", "fail lost; next 0:0..3 1:0..3 2:0..3; err ungranted:3ms:-3ms,lost"},
	})
}
