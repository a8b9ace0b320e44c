package check

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const ms = time.Millisecond

func ids(texts ...string) []ID {
	var all []ID
	for _, t := range texts {
		all = append(all, ID{Text: t, Took: ms})
	}
	return all
}

// count adds IDs that are one millisecond apart.
func count(o Order, all []ID) Verdict {
	c := New(o)
	for i, id := range all {
		c.Add(time.Duration(i)*ms, id)
	}
	return c.Verdict(0)
}

func TestDuplicates(t *testing.T) {
	for _, test := range []struct {
		name                 string
		order                Order
		ids                  []ID
		duplicates, disorder int
	}{
		{"none", Numbers, ids("1", "2", "3"), 0, 0},
		{"twice", Numbers, ids("1", "1"), 1, 1},
		{"three times", Numbers, ids("1", "1", "1"), 2, 2},
		{"the same number in other digits", Numbers, ids("7", "007"), 1, 1},
		{"other texts", Text, ids("007", "7"), 0, 0},
		{"as numbers, 9 is below 10", Numbers, ids("9", "10"), 0, 0},
		{"as text, 9 is above 10", Text, ids("9", "10"), 0, 1},
		{"negative", Numbers, ids("-10", "-9", "0", "-0"), 1, 1},
		{"more than 64 bits", Numbers, ids("18446744073709551616", "18446744073709551617", "99999999999999999999999"), 0, 0},
		{"auto: numbers", Auto, ids("9", "10"), 0, 0},
		{"auto: text", Auto, ids("0a", "0b", "0a"), 1, 1},
		{"auto: a text may look like a number", Auto, ids("00000012", "0000001a", "00000020", "0000001a"), 1, 1},
		{"long texts", Text, ids("0123456789abcdef0", "0123456789abcdef1", "0123456789abcdef1"), 1, 1},
		{"long and short", Text, ids("0123456789abcdef", "0123456789abcdef0", "0123456789abcde"), 0, 1},
		{"over a restart, order does not count", Numbers, []ID{{Text: "5"}, {Text: "3", Start: 1}}, 0, 0},
		{"over a restart, duplicates count", Numbers, []ID{{Text: "5"}, {Text: "5", Start: 1}}, 1, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			v := count(test.order, test.ids)
			require.Equal(t, test.duplicates, v.Duplicates, "duplicates")
			require.Equal(t, test.disorder, v.Disorder, "disorder")
			require.Equal(t, len(test.ids), v.IDs)
			require.Zero(t, v.Failed)
		})
	}
}

func TestStall(t *testing.T) {
	c := New(Numbers)
	c.Started(0, 0)
	c.Add(900*ms, ID{Text: "1", Took: -1}) // the start of the process is no call
	require.Zero(t, c.Verdict(0).Stall)
	c.Add(920*ms, ID{Text: "2", Took: -1})
	require.Equal(t, 20*ms, c.Verdict(0).Stall, "not stated: the gap")
	c.Add(990*ms, ID{Text: "3", Took: 30 * ms})
	require.Equal(t, 30*ms, c.Verdict(0).Stall, "stated")
	c.Add(1000*ms, ID{Err: "no", Took: 50 * ms})
	require.Equal(t, 50*ms, c.Verdict(0).Stall, "of a call that failed")
	require.Equal(t, 40*ms, c.Verdict(10*ms).Stall)
	require.Zero(t, c.Verdict(time.Second).Stall)
	c.Ended(1100*ms, 0)
	require.Equal(t, 50*ms, c.Verdict(0).Stall, "a pause between bursts")
	c.Started(4000*ms, 1)
	c.Add(4001*ms, ID{Text: "4", Took: ms, Start: 1})
	c.Idle(4900*ms, 1)
	c.Add(4901*ms, ID{Text: "4", Took: -1, Start: 1})
	require.Equal(t, 50*ms, c.Verdict(0).Stall, "it waited for a command")
	require.Equal(t, 1, c.Verdict(0).Disorder, "it still is the same process")
	c.Ended(4910*ms, 1)
	c.Started(5000*ms, 1) // the time without a process is no call
	require.Equal(t, 50*ms, c.Verdict(0).Stall)
	c.Ended(7000*ms, 1)
	require.Equal(t, 50*ms, c.Verdict(0).Stall, "a start is no call")
	c.Started(7000*ms, 1)
	c.Made(7500*ms, 1)
	c.Ended(9500*ms, 1)
	require.Equal(t, 2000*ms, c.Verdict(0).Stall, "a call that did not return")
	c.Ended(19000*ms, 1)
	require.Equal(t, 2000*ms, c.Verdict(0).Stall, "the process had ended")
}

// A process that was stopped by a signal is forgiven this time, once, and no other.
func TestStopped(t *testing.T) {
	c := New(Numbers)
	c.Started(0, 0)
	c.Started(0, 1)
	c.Stopped(1000*ms, 4000*ms, 0)
	c.Add(4010*ms, ID{Text: "1", Took: 3015 * ms})
	require.Equal(t, 15*ms, c.Verdict(0).Stall, "the call was interrupted")
	c.Add(4600*ms, ID{Text: "2", Took: 500 * ms})
	require.Equal(t, 500*ms, c.Verdict(0).Stall, "a call after the stop")
	c.Add(4601*ms, ID{Text: "3", Took: 2000 * ms, Start: 1})
	require.Equal(t, 2000*ms, c.Verdict(0).Stall, "a process beside it was not stopped")
}

// The first ID after the fault is no recovery if the next call hangs.
func TestHangs(t *testing.T) {
	c := New(Numbers)
	c.Started(0, 0)
	c.Mark(10 * ms)
	c.Add(11*ms, ID{Text: "1", Took: ms})
	c.Ended(800*ms, 0)
	require.Equal(t, Never, c.Verdict(0).Recovery)
	require.Equal(t, ms, c.Verdict(300*ms).Recovery, "the machine may have stalled")
	c.Started(900*ms, 1)
	c.Add(901*ms, ID{Text: "2", Took: ms, Start: 1})
	require.Equal(t, ms, c.Verdict(0).Recovery, "the next process issues")
}

func TestRecovery(t *testing.T) {
	c := New(Numbers)
	n := 0
	ok := func(at time.Duration) { n++; c.Add(at, ID{Text: strconv.Itoa(n), Lead: at}) }
	fail := func(at time.Duration) { c.Add(at, ID{Err: fmt.Sprint("at ", at)}) }
	fail(1 * ms)
	ok(2 * ms)
	require.Zero(t, c.Verdict(0).Recovery, "before the fault")
	c.Mark(10 * ms)
	require.Equal(t, Never, c.Verdict(0).Recovery)
	ok(12 * ms)
	require.Equal(t, 2*ms, c.Verdict(0).Recovery)
	ok(13 * ms)
	require.Equal(t, 2*ms, c.Verdict(0).Recovery)
	fail(20 * ms)
	require.Equal(t, Never, c.Verdict(0).Recovery)
	ok(25 * ms)
	c.Mark(26 * ms)
	ok(27 * ms)
	v := c.Verdict(0)
	require.Equal(t, 15*ms, v.Recovery)
	require.Equal(t, 27*ms, v.Lead)
	require.Equal(t, 2, v.Failed)
	require.Equal(t, "at 1ms", v.Error)
}

func TestStuck(t *testing.T) {
	c := New(Numbers)
	c.Add(0, ID{Text: "1"})
	require.False(t, c.Verdict(0).Stuck, "the fault is not over")
	c.Over()
	c.Add(1*ms, ID{Err: "no"})
	require.True(t, c.Verdict(0).Stuck, "an error is no ID")
	c.Add(2*ms, ID{Text: "2"})
	require.False(t, c.Verdict(0).Stuck)
}
