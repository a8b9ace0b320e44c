package main

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/sequence"
	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/directory"

	"github.com/tickflake/tickflake/internal/cli"
)

// on returns a function that runs a command on the store.
func on(store string) func(line string) result {
	return func(line string) result { return tickflake(append(strings.Fields(line), "--store", store)...) }
}

// numbers returns lines with the numbers from first to last, each by-th.
func numbers(first, last, by int64) string {
	var all strings.Builder
	for n := first; n <= last; n += by {
		fmt.Fprintln(&all, n)
	}
	return all.String()
}

// A sequence from its creation to its end.
func TestSequence(t *testing.T) {
	run := on(t.TempDir())
	const orders = `segmented, from 1, steps of 16 to 1000000`
	for _, step := range []struct {
		line string
		want result
	}{
		{"sequence create orders", result{0, `sequence "orders" is created: ` + orders + "; the next number is 1\n", ""}},
		{"sequence next orders", result{0, "1\n", ""}},
		{"sequence next orders --count 3", result{0, "2\n3\n4\n", ""}},
		{"sequence next orders --count 3 --row", result{0, "5\n6\n7\n", ""}},
		{"sequence next orders --count 300", result{0, numbers(8, 307, 1), ""}},
		{"sequence next orders --count 300 --row", result{0, numbers(308, 607, 1), ""}},
		{"sequence create orders", result{0, `sequence "orders" existed before: ` + orders + "; the next number is 608\n", ""}},
		{"sequence set orders --next 1001 --yes", result{0, "sequence \"orders\"\nbefore  " + orders + "; the next number is 608\nafter   " + orders + "; the next number is 1001\n", ""}},
		{"sequence set orders --max 1003 --step 7-9", result{0, "sequence \"orders\"\nbefore  " + orders + "; the next number is 1001\nafter   segmented, from 1 to 1003, steps of 7 to 9; the next number is 1001\n", ""}},
		{"sequence next orders --count 3", result{0, "1001\n1002\n1003\n", ""}},
		{"sequence next orders", result{1, "", "tickflake: sequence \"orders\" has 0 numbers left up to its maximum 1003, and the call asked for 1: raise the maximum with tickflake sequence set, or begin another sequence; 0 of 1 numbers written\n"}},
		{"sequence set orders --max none --step 16-1000000", result{0, "sequence \"orders\"\nbefore  segmented, from 1 to 1003, steps of 7 to 9; no number is left\nafter   " + orders + "; the next number is 1004\n", ""}},
		{"sequence next orders", result{0, "1004\n", ""}},
		{"sequence delete orders --yes", result{0, "sequence \"orders\" is deleted; the numbers from 1 to 1004 were granted\n", ""}},
		{"sequence list", result{0, "NAME  STATE  MODE  NEXT  LAST  LEFT  USED\n", ""}},
		{"sequence create orders --start 0 --mode ordered --reuse", result{0, "sequence \"orders\" is created: ordered, from 0; the next number is 0\n", ""}},
		{"sequence delete orders --yes", result{0, "sequence \"orders\" is deleted; no number was granted\n", ""}},
		{"sequence create orders", result{0, "sequence \"orders\" is created: " + orders + "; the next number is 1032: it begins above the numbers of a deleted sequence of this name\n", ""}},
	} {
		assert.Equal(t, step.want, run(step.line), step.line)
	}
}

// Two sites that have no store in common share the numbers by a stride.
func TestSequenceWithAStride(t *testing.T) {
	run := on(t.TempDir())
	for _, mode := range []string{"segmented", "ordered"} {
		for offset := range int64(2) {
			name := fmt.Sprintf("%s-%d", mode, offset)
			require.Zero(t, run(fmt.Sprintf("sequence create %s --mode %s --stride 2 --offset %d --start 100", name, mode, offset)).code)
			assert.Equal(t, result{0, numbers(100+offset, 108+offset, 2), ""}, run("sequence next "+name+" --count 5"))
			assert.Equal(t, result{0, numbers(110+offset, 118+offset, 2), ""}, run("sequence next "+name+" --row --count 5"))
		}
	}
}

// The numbers that are left are printed, or with --row nothing is taken.
func TestSequenceWithTooFewNumbers(t *testing.T) {
	state := t.TempDir()
	run := on(state)
	require.Zero(t, run("sequence create orders --max 5").code)
	before := contents(t, state)
	got := run("sequence next orders --count 9 --row")
	assert.Equal(t, 1, got.code)
	assert.Empty(t, got.out)
	assert.Contains(t, got.err, "has 5 numbers left up to its maximum 5, and the call asked for 9")
	assert.Equal(t, before, contents(t, state))
	got = run("sequence next orders --count 9")
	assert.Equal(t, 1, got.code)
	assert.Equal(t, numbers(1, 5, 1), got.out)
	assert.Truef(t, matches("tickflake: sequence \"orders\" has 0 numbers left up to its maximum 5, *; 5 of 9 numbers written\n", got.err), got.err)
}

// Bad input is refused with its numbers, and changes no cell.
func TestSequenceRefusals(t *testing.T) {
	state := t.TempDir()
	run := on(state)
	require.Zero(t, run("sequence create orders --max 1000").code)
	require.Zero(t, run("sequence create invoices --mode ordered --start 7").code)
	require.Zero(t, run("sequence next orders --count 20").code)
	before := contents(t, state)
	for line, want := range map[string]result{
		"sequence create orders":                                 {1, "", `exists as segmented, from 1 to 1000, steps of 16 to 1000000, and not as segmented, from 1, steps of 16 to 1000000`},
		"sequence create orders --max 1000 --mode ordered":       {1, "", `exists as segmented, from 1 to 1000, steps of 16 to 1000000, and not as ordered, from 1 to 1000`},
		"sequence create orders --max 1000 --start 2":            {1, "", `exists as segmented, from 1 to 1000, steps of 16 to 1000000, and not as segmented, from 2 to 1000`},
		"sequence create invoices --mode ordered":                {1, "", `exists as ordered, from 7, and not as ordered, from 1`},
		"sequence create more --start 5 --max 4":                 {2, "", "start 5 plus offset 0 is above the maximum 4"},
		"sequence create more --max 4 --stride 9 --offset 4":     {2, "", "start 1 plus offset 4 is above the maximum 4"},
		"sequence create more --stride 2 --offset 2":             {2, "", "offset 2 with stride 2: want 0 to 1"},
		"sequence create more --stride 2000000000000 --offset 0": {2, "", "stride 2000000000000: want 1 to 1099511627776"},
		"sequence next orders --row --count 981":                 {1, "", "has 980 numbers left up to its maximum 1000, and the call asked for 981"},
		"sequence set orders --next 20 --yes":                    {1, "", "20"},
		"sequence create more --max 4611686018427387904":         {2, "", "maximum 4611686018427387904 is above 4611686018427387903"},
		"sequence set orders --max 9223372036854775807":          {2, "", "--max: 9223372036854775807 is beyond the range of a sequence: want less, or none"},
		"sequence set orders --max 19":                           {1, "", "19"},
		"sequence set orders --next 30":                          {2, "", "there is no terminal to confirm the change: give --yes"},
		"sequence delete orders":                                 {2, "", "there is no terminal to confirm the deletion: give --yes"},
	} {
		got := run(line)
		assert.Equal(t, want.code, got.code, line)
		assert.Empty(t, got.out, line)
		assert.Contains(t, got.err, want.err, line)
		lines := 1
		if want.code == cli.Misuse {
			lines = 2 // and where to see
		}
		assert.Equal(t, lines, strings.Count(got.err, "\n"), got.err)
	}
	assert.Equal(t, before, contents(t, state))
}

// damagedState returns a directory with sequences of all states, and one damaged cell that is
// no sequence's.
func damagedState(t *testing.T) string {
	t.Helper()
	state := t.TempDir()
	run := on(state)
	for _, line := range []string{
		"sequence create orders --max 1000", "sequence next orders --count 300 --row",
		"sequence create done --max 2", "sequence next done --count 2",
		"sequence create new --mode ordered",
	} {
		require.Zero(t, run(line).code, line)
	}
	goBack(t, state)
	require.NoError(t, os.WriteFile(filepath.Join(state, "seq+bad.cell"), []byte("rubbish"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(state, "seq+no+name.cell"), []byte("rubbish"), 0o600))
	store, err := directory.Open(t.Context(), state)
	require.NoError(t, err)
	defer store.Close()
	_, err = store.Swap(t.Context(), "seq/worse", 0, []byte("rubbish"))
	require.NoError(t, err)
	return state
}

// goBack makes a sequence back of which a process has noticed that the store went back.
func goBack(t *testing.T, state string) {
	t.Helper()
	require.Zero(t, on(state)("sequence create back --step 10").code)
	older := contents(t, state)
	store, err := directory.Open(t.Context(), state)
	require.NoError(t, err)
	defer store.Close()
	s, err := sequence.Open(t.Context(), store, "back", sequence.WithPolling(), sequence.WithLogger(slog.New(slog.DiscardHandler)))
	require.NoError(t, err)
	for range 10 {
		_, err = s.Next(t.Context())
		require.NoError(t, err)
	}
	for name, text := range older {
		require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
	}
	for err == nil {
		_, err = s.Next(t.Context())
	}
	require.ErrorIs(t, err, stores.ErrWentBack)
	_ = s.Close()
}

func TestSequenceList(t *testing.T) {
	state := damagedState(t)
	run, before := on(state), contents(t, state)
	got := run("sequence list")
	assert.Equal(t, 1, got.code, "cells are damaged")
	for i, want := range []string{
		`NAME    STATE      MODE       NEXT  LAST  LEFT  USED`,
		`back    went back  segmented  \d+ +\d+ +- +-`,
		`bad     damaged    -          -     -     -     -`,
		`done    used up    segmented  -     2     0     100.0%`,
		`new     ok         ordered    1     -     -     -`,
		`orders  ok         segmented  301   300   700   30.0%`,
		`worse   damaged    -          -     -     -     -`,
	} {
		require.Greater(t, len(got.lines()), i)
		assert.Regexp(t, "^"+want+"$", got.lines()[i])
	}
	assert.Len(t, got.lines(), 7)
	for name, want := range map[string]int{"seq/bad": 1, "seq/worse": 1, "seq/no/name": 1, "orders": 0} {
		assert.Equal(t, want, strings.Count(got.err, name), got.err)
	}
	assert.Equal(t, 3, strings.Count(got.err, "tickflake: "), got.err)

	got = run("sequence list --format json")
	assert.Equal(t, 1, got.code)
	all := map[string]sequenceState{}
	for _, line := range got.lines() {
		var one sequenceState
		require.NoError(t, json.Unmarshal([]byte(line), &one))
		all[one.Name] = one
	}
	assert.Len(t, all, 6)
	assert.Equal(t, "damaged", all["bad"].State)
	assert.Nil(t, all["bad"].Definition)
	assert.Contains(t, all["bad"].Error, "seq/bad")
	assert.Equal(t, "went back", all["back"].State)
	assert.Nil(t, all["new"].Last, "no number was granted")
	assert.Nil(t, all["done"].Next, "none is left")
	orders := all["orders"]
	assert.Equal(t, []int64{301, 300, 700}, []int64{*orders.Next, *orders.Last, *orders.Left})
	assert.Equal(t, sequence.Definition{Start: 1, Max: 1000, Stride: sequence.Every(1, 0), MinStep: 16, MaxStep: 1_000_000}, *orders.Definition)
	assert.Equal(t, run("sequence show orders --format json").out, got.lines()[4]+"\n")
	assert.Equal(t, before, contents(t, state), "looking changes nothing")
}

func TestSequenceShow(t *testing.T) {
	run := on(damagedState(t))
	got := run("sequence show orders")
	assert.Zero(t, got.code, got.err)
	assert.Regexp(t, `^name        orders
state       ok
definition  segmented, from 1 to 1000, steps of 16 to 1000000
next        301
last        300
left        700 up to the maximum 1000 \(30\.0% used\)
writes      \d+
$`, got.out)
	assert.Contains(t, run("sequence show new").out, "\nlast        -\nleft        without a maximum\n")
	assert.Contains(t, run("sequence show done").out, "\nstate       used up\n")
	assert.Contains(t, run("sequence show back").out, "\nstate       went back: the store lost writes; see 'tickflake sequence --help'\n")
	for _, name := range []string{"bad", "worse"} {
		for _, command := range []string{"show", "next", "delete --yes", "set --yes --next 5", "create"} {
			got = run("sequence " + command + " " + name)
			assert.Equal(t, 1, got.code, command)
			assert.Empty(t, got.out)
			assert.Contains(t, got.err, "seq/"+name, command)
		}
	}
}

// A sequence that went back gives no numbers until its next number is raised.
func TestSequenceThatWentBack(t *testing.T) {
	state := t.TempDir()
	goBack(t, state)
	run := on(state)
	got := run("sequence next back")
	assert.Equal(t, 1, got.code)
	assert.Empty(t, got.out)
	assert.Contains(t, got.err, "went back")
	for _, yes := range []string{"", " --yes"} {
		got = run("sequence delete back" + yes)
		assert.Equal(t, 1, got.code)
		assert.Contains(t, got.err, "sequence set back --next N")
	}
	assert.Zero(t, run("sequence set back --step 10-20").code)
	assert.Equal(t, 1, run("sequence next back").code, "it is still marked")
	got = run("sequence set back --next 500 --yes")
	assert.Zero(t, got.code, got.err)
	assert.Regexp(t, `before .*, but the store went back\nafter .*; the next number is 500\n$`, got.out)
	assert.Equal(t, result{0, "500\n", ""}, run("sequence next back"))
}
