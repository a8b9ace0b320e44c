package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/monoclock/clocktest"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/stores/directory"
)

// stateWithAll returns a directory with node numbers of all states: 0 is held, 1 was
// released, 2 is held by a process that has not extended it for 12 and a half minutes, 3 is a
// damaged file and 4 a damaged record. No lease is extended while a test runs.
func stateWithAll(t *testing.T) string {
	t.Helper()
	state := t.TempDir()
	hold(t, state, lease.WithOwner("the \x1b[31mfirst"), lease.WithWindow(time.Hour))
	hold(t, state, lease.WithOwner("the third"), lease.WithNode(lease.NodeNumber(2)),
		lease.WithClock(clocktest.NewVirtual(time.Now().Add(-12*time.Minute-30*time.Second))), lease.WithPolling())
	require.Zero(t, tickflake("generate", "--store", state).code)
	require.NoError(t, os.WriteFile(filepath.Join(state, "node+0000003.cell"), []byte("rubbish"), 0o600))
	store, err := directory.Open(t.Context(), state)
	require.NoError(t, err)
	_, err = store.Swap(t.Context(), "node/0000004", 0, []byte("rubbish"))
	require.NoError(t, err)
	return state
}

func TestLeaseList(t *testing.T) {
	state := stateWithAll(t)
	before := contents(t, state)
	got := tickflake("lease", "list", "--store", state)
	assert.Equal(t, 1, got.code, "cells are damaged")
	const instant = `\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z`
	for i, want := range []string{
		`NODE  STATE     OWNER           UNTIL +CLOCK`,
		`0     held      the \?\[31mfirst  ` + instant + ` \(in (1h0m0s|59m\d+s)\) +±10m0s`,
		`1     released  -               ` + instant + ` \([\d.]+m?s (ago|in)\) +-`,
		`2     held      the third       ` + instant + ` \(12m\d+s ago\) +-`,
		`3     damaged   -               - +-`,
		`4     damaged   -               - +-`,
	} {
		require.Greater(t, len(got.lines()), i)
		assert.Regexp(t, "^"+want+"$", got.lines()[i])
	}
	assert.Len(t, got.lines(), 6)
	assert.Regexp(t, `^tickflake: .*0000003\.cell: it is not a cell .*\ntickflake: cell of node number 4 cannot be read: .*\n$`, got.err)
	assert.Equal(t, before, contents(t, state), "looking changes nothing")

	got = tickflake("lease", "list", "--store", state, "--format", "json")
	assert.Equal(t, 1, got.code)
	var nodes []holdingJSON
	for _, line := range got.lines() {
		var one holdingJSON
		require.NoError(t, json.Unmarshal([]byte(line), &one))
		nodes = append(nodes, one)
	}
	require.Len(t, nodes, 5)
	for i, want := range []string{"held", "released", "held", "damaged", "damaged"} {
		assert.Equal(t, want, nodes[i].State)
		assert.Equal(t, i == 0, nodes[i].Ahead != nil, "an extension of 2 is overdue, whatever its clock")
		assert.Equal(t, want == "damaged", nodes[i].Error != "")
		if want != "damaged" {
			assert.Equal(t, snowflake.Default().String(), nodes[i].Layout)
			until, err := time.Parse(time.RFC3339, nodes[i].Until)
			require.NoError(t, err)
			assert.WithinDuration(t, time.Now().Add(nodes[i].Remaining), until, 5*time.Second)
		}
	}
	assert.Equal(t, "the \x1b[31mfirst", nodes[0].Owner, "JSON can say all")
}

// contents returns the contents of the cells of a directory.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*.cell"))
	require.NoError(t, err)
	cells := map[string]string{}
	for _, name := range names {
		data, err := os.ReadFile(name)
		require.NoError(t, err)
		cells[name] = string(data)
	}
	return cells
}

func TestLeaseListOfNothing(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", filepath.Join(t.TempDir(), "none"))
	assert.Equal(t, result{0, "NODE  STATE  OWNER  UNTIL  CLOCK\n", ""}, tickflake("lease", "list"))
	assert.Equal(t, result{0, "", ""}, tickflake("lease", "list", "--format", "json"))
	_, err := os.Stat(os.Getenv("XDG_STATE_HOME"))
	assert.ErrorIs(t, err, os.ErrNotExist, "looking makes no directory")
}

// Commands that only read make no directory, however it is named.
func TestLookingMakesNoDirectory(t *testing.T) {
	root := t.TempDir()
	t.Chdir(root)
	require.NoError(t, os.Mkdir("there", 0o700))
	for _, command := range []string{
		"lease list", "lease check", "lease release 3 --yes",
		"sequence list", "sequence next x", "sequence show x", "sequence set x --next 5 --yes", "sequence delete x --yes",
	} {
		for _, url := range []string{"none", "file:none", "FILE:none", "file://" + filepath.ToSlash(root) + "/none", "file:./a:b", "file:there?namespace=none"} {
			got := tickflake(append(strings.Fields(command), "--store", url)...)
			assert.Equal(t, 1, got.code, "%s %s: %s", command, url, got.out)
			assert.Contains(t, got.err, "there is no directory ", url)
		}
	}
	t.Setenv("XDG_STATE_HOME", filepath.Join(root, "state"))
	assert.Equal(t, 1, tickflake("lease", "check").code)
	for pattern, want := range map[string]int{"*": 1, "there/*": 0} {
		made, err := filepath.Glob(pattern)
		require.NoError(t, err)
		assert.Len(t, made, want, "%v", made)
	}
}

func TestLeaseListOfSome(t *testing.T) {
	state := t.TempDir()
	for range 3 {
		hold(t, state)
	}
	for nodes, want := range map[string]int{"0": 1, "1-2": 2, "9": 0, "0-2": 3} {
		got := tickflake("lease", "list", nodes, "--store", state)
		assert.Zero(t, got.code, got.err)
		assert.Len(t, got.lines(), 1+want)
	}
	// Each damaged cell is told, but only of the numbers asked for, and of foreign ones.
	for _, name := range []string{"0000003", "0000004", "0000005", "0000006", "x"} {
		require.NoError(t, os.WriteFile(filepath.Join(state, "node+"+name+".cell"), nil, 0o600))
	}
	got := tickflake("lease", "list", "3-5", "--store", state)
	assert.Equal(t, 1, got.code)
	assert.Len(t, got.lines(), 1+3)
	for name, want := range map[string]int{"3": 1, "4": 1, "5": 1, "6": 0} {
		assert.Equal(t, want, strings.Count(got.err, `cell "node/000000`+name+`" is damaged`))
	}
	assert.Contains(t, got.err, `cell "node/x" is damaged`)
	require.NoError(t, os.Remove(filepath.Join(state, "node+x.cell")))
	assert.Zero(t, tickflake("lease", "list", "0-2", "--store", state).code)
}

func TestLeaseRelease(t *testing.T) {
	state := stateWithAll(t)
	before := contents(t, state)
	for node, want := range map[string]result{
		"0": {1, "", "tickflake: node number 0 is held by the \x1b[31mfirst: end that, or give each process a number of its own\n"},
		"1": {0, "node number 1 was released before\n", ""},
		"4": {1, "", "tickflake: cell of node number 4 cannot be read: *\n"},
		"9": {1, "", "tickflake: node number 9 was never claimed in this store: check the store and the namespace\n"},
	} {
		got := tickflake("lease", "release", node, "--yes", "--store", state)
		assert.Equal(t, want.code, got.code)
		assert.Equal(t, want.out, got.out)
		assert.Truef(t, matches(strings.ReplaceAll(want.err, "\x1b", "?"), got.err), got.err)
	}
	assert.Equal(t, before, contents(t, state))

	got := tickflake("lease", "release", "0", "--store", state)
	assert.Equal(t, result{2, "", "tickflake: there is no terminal to confirm the release: give --yes\nsee 'tickflake lease release --help'\n"}, got)
}

func TestLeaseReleaseOfACrashedRun(t *testing.T) {
	state := crashedState(t)
	before := inspect(t, state)
	require.Equal(t, lease.Expired, before.State)
	got := tickflake("lease", "release", "0", "--yes", "--store", state)
	assert.Equal(t, result{0, "node number 0 is released; its next grant begins at " + before.Limit.UTC().Format(untilFormat) + "\n", ""}, got)
	after := inspect(t, state)
	assert.Equal(t, lease.Released, after.State)
	assert.Equal(t, before.Limit, after.Limit)
}

// crashedState returns a directory whose node number 0 was never given back, of a
// process that is gone.
func crashedState(t *testing.T) string {
	t.Helper()
	state, copied := t.TempDir(), t.TempDir()
	hold(t, state)
	for name, content := range contents(t, state) { // locks are not copied
		require.NoError(t, os.WriteFile(filepath.Join(copied, filepath.Base(name)), []byte(content), 0o600))
	}
	return copied
}

func TestLeaseReserve(t *testing.T) {
	state := t.TempDir()
	until := time.Now().AddDate(0, 1, 0).UTC().Format(time.DateOnly)
	got := tickflake("lease", "reserve", "0-2", "--until", until, "--store", state, "--layout", "41/2/12")
	end, err := parseUntil(until)
	require.NoError(t, err)
	assert.Equal(t, result{0, "node numbers 0 to 2 are reserved until " + end.Format(untilFormat) + "\n", ""}, got)
	assert.Equal(t, 3, strings.Count(tickflake("lease", "list", "--store", state).out, " reserved "))
	ids := records(t, tickflake("generate", "--layout", "41/2/12", "--format", "json", "--store", state))
	assert.Equal(t, int64(3), ids[0].Node, "the others are reserved")

	// The layout is the store's, unless it is given.
	got = tickflake("lease", "reserve", "2", "--until", until, "--store", state)
	assert.Equal(t, result{0, "node number 2 is reserved until " + end.Format(untilFormat) + "\n", ""}, got)
	got = tickflake("lease", "reserve", "2", "--until", until, "--store", state, "--layout", "twitter")
	assert.Equal(t, 1, got.code)
	assert.Contains(t, got.err, "store holds cells for the layout")
	sooner := time.Now().AddDate(0, 0, 1).UTC().Format(time.DateOnly)
	got = tickflake("lease", "reserve", "2", "--until", sooner, "--store", state)
	kept := "node number 2 is reserved until " + end.Format(untilFormat) + ": that was its limit before, and no limit is lowered\n"
	assert.Equal(t, result{0, kept, ""}, got)
	assert.Contains(t, tickflake("lease", "list", "2", "--store", state).out, end.Format(untilFormat))
	soonest, err := parseUntil(sooner)
	require.NoError(t, err)
	got = tickflake("lease", "reserve", "2-3", "--until", sooner, "--store", state)
	assert.Equal(t, result{0, "node numbers 2 to 3 are reserved until " + soonest.Format(untilFormat) + "\n" + kept, ""}, got)

	got = tickflake("lease", "release", "2", "--yes", "--store", state)
	assert.Equal(t, result{1, "", "tickflake: node number 2 is reserved until " + end.Format(untilFormat) + ": wait until then, or use another number\n"}, got)

	got = tickflake("lease", "reserve", "4", "--until", until, "--store", state)
	assert.Equal(t, 2, got.code)
	assert.Contains(t, got.err, "want a range within 0 to 3")
}

func TestParseUntil(t *testing.T) {
	for text, want := range map[string]string{
		"2027-06-30":                "2027-07-01T00:00:00Z",
		"2027-06-30T12:00:00Z":      "2027-06-30T12:00:00Z",
		"2027-06-30T12:00:00+02:00": "2027-06-30T10:00:00Z",
	} {
		got, err := parseUntil(text)
		require.NoError(t, err)
		assert.Equal(t, want, got.Format(time.RFC3339))
	}
}

func TestLeaseCheck(t *testing.T) {
	dir := t.TempDir()
	assert.Equal(t, result{0, dir + ": no setting is known to lose acknowledged writes\n", ""}, tickflake("lease", "check", "--store", dir))
}

func TestPlaceName(t *testing.T) {
	for url, want := range map[string]string{
		"./ids":                         "./ids",
		"file:/var/ids?forgetful=allow": "file:/var/ids",
		"redis://u:s3cret@h:6379?forgetful=allow": "redis://h:6379",
		"etcd://a:1,b:2?namespace=orders":         "etcd://a:1,b:2, namespace orders",
		"redis://h/1?password=s3cret&namespace=a": "redis://h/1, namespace a",
		"redis://h?namespace=s3cret%20":           "redis://h",
		"postgres://u:p%40@h/ids?password=s3cret": "postgres://h/ids",
		"redis://u:s3?cret@h":                     "?",
	} {
		assert.Equal(t, want, (&place{url: url}).name())
	}
}

func TestUntilText(t *testing.T) {
	now := time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)
	for limit, want := range map[time.Time]string{
		now.Add(-time.Minute): "2026-05-31T23:59:00.000Z (1m0s ago)",
		now.AddDate(23, 0, 0): "2049-06-01T00:00:00.000Z (in 23.00 years)",
		now.AddDate(0, 0, -3): "2026-05-29T00:00:00.000Z (3.0 days ago)",
	} {
		assert.Equal(t, want, untilText(lease.Holding{Limit: limit}, now))
	}
}
