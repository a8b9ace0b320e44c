package check

import (
	"fmt"
	"math/big"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
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

func TestNoNumber(t *testing.T) {
	v := count(Numbers, ids("1", "1a1", "-", "2"))
	require.Equal(t, Verdict{IDs: 2, Failed: 2, Stall: ms, Error: `the ID "1a1" is no integer`}, v)
}

func TestRemembered(t *testing.T) {
	c := New(Numbers)
	add := func(n int) { c.Add(0, ID{Text: strconv.Itoa(n)}) }
	for n := range Remembered + 1 {
		add(n)
	}
	require.Len(t, c.seen, Remembered)
	add(1)
	require.Equal(t, 1, c.Verdict(0).Duplicates, "the oldest that is remembered")
	add(0)
	require.Equal(t, 1, c.Verdict(0).Duplicates, "forgotten: the bound of memory")
	require.Len(t, c.seen, Remembered)
	require.Len(t, c.ring, Remembered)
}

func TestProcessesBesideEachOther(t *testing.T) {
	c := New(Numbers)
	c.Started(0, 0)
	c.Started(0, 1)
	for i, id := range []ID{{Text: "5"}, {Text: "1", Start: 1}, {Text: "6"}, {Text: "2", Start: 1}} {
		c.Add(time.Duration(i)*ms, id)
	}
	require.Zero(t, c.Verdict(0).Disorder, "each process has its order")
	c.Add(5*ms, ID{Text: "6", Start: 1})
	require.Equal(t, 1, c.Verdict(0).Duplicates, "and no ID of the other")
	c.Ended(6*ms, 1)
	c.Ended(1000*ms, 0)
	require.Equal(t, 998*ms, c.Verdict(0).Stall, "the end of one is not that of the other")
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

func TestErrorIsShort(t *testing.T) {
	c := New(Text)
	long := make([]byte, 10*errorText)
	for i := range long {
		long[i] = 'x'
	}
	c.Add(0, ID{Err: string(long)})
	require.Len(t, c.Verdict(0).Error, errorText)
}

// TestReference compares the checker with a naive one, on few different IDs.
func TestReference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		numbers := rapid.Bool().Draw(t, "numbers")
		order := Text
		if numbers {
			order = Numbers
		}
		c := New(order)
		marked := rapid.IntRange(0, 30).Draw(t, "mark")
		var all []ID
		var at []time.Duration
		start, now := 0, time.Duration(0)
		for i := range rapid.IntRange(0, 30).Draw(t, "lines") {
			now += time.Duration(rapid.IntRange(0, 50).Draw(t, "gap")) * ms
			if i == marked {
				c.Mark(now)
			}
			if rapid.IntRange(0, 9).Draw(t, "restart") == 0 {
				start++
			}
			id := ID{Took: time.Duration(rapid.IntRange(0, 100).Draw(t, "took")) * ms, Start: start}
			switch {
			case rapid.IntRange(0, 4).Draw(t, "fails") == 0:
				id.Err = "failed"
			case numbers:
				id.Text = strconv.Itoa(rapid.IntRange(-20, 20).Draw(t, "id"))
			default:
				id.Text = rapid.StringMatching("[a-c]{1,2}").Draw(t, "id")
			}
			c.Add(now, id)
			all, at = append(all, id), append(at, now)
		}
		require.Equal(t, naive(numbers, all, at, marked), c.Verdict(0))
	})
}

func naive(numbers bool, all []ID, at []time.Duration, marked int) Verdict {
	var v Verdict
	for i, id := range all {
		v.Stall = max(v.Stall, id.Took)
		if id.Err != "" {
			v.Failed++
			v.Error = id.Err
			continue
		}
		v.IDs++
		before := -1
		duplicate := false
		for j := range i {
			if all[j].Err != "" {
				continue
			}
			duplicate = duplicate || all[j].Text == id.Text
			if all[j].Start == id.Start {
				before = j
			}
		}
		if duplicate {
			v.Duplicates++
		}
		for j := i - 1; j >= 0; j-- {
			if all[j].Err == "" && all[j].Text == id.Text {
				if all[j].Start == id.Start {
					v.Again++
				}
				break
			}
		}
		if before < 0 {
			continue
		}
		above := id.Text > all[before].Text
		if numbers {
			x, _ := new(big.Int).SetString(id.Text, 10)
			y, _ := new(big.Int).SetString(all[before].Text, 10)
			above = x.Cmp(y) > 0
		}
		if !above {
			v.Disorder++
		}
	}
	if marked >= len(all) {
		return v
	}
	v.Recovery = Never
	for i := len(all) - 1; i >= marked && all[i].Err == ""; i-- {
		v.Recovery = at[i] - at[marked]
	}
	return v
}
