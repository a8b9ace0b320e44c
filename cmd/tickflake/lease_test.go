package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
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
// released, 2 is held by one whose clock is 12 and a half minutes behind, 3 is a damaged
// file and 4 a damaged record. No lease is extended while a test looks.
func stateWithAll(t *testing.T) string {
	t.Helper()
	state := t.TempDir()
	hold(t, state, lease.WithOwner("the \x1b[31mfirst"), lease.WithWindow(time.Hour))
	hold(t, state, lease.WithOwner("the third"), lease.WithNode(lease.NodeNumber(2)),
		lease.WithClock(clocktest.NewVirtual(time.Now().Add(-12*time.Minute-30*time.Second))), lease.WithPolling())
	require.Zero(t, tickflake("generate", "--state", state).code)
	require.NoError(t, os.WriteFile(filepath.Join(state, "0000003.cell"), []byte("rubbish"), 0o600))
	store, err := directory.Open(state)
	require.NoError(t, err)
	_, err = store.Swap(t.Context(), lease.Cell{Node: 4}, []byte("rubbish"))
	require.NoError(t, err)
	return state
}

func TestLeaseList(t *testing.T) {
	state := stateWithAll(t)
	before := contents(t, state)
	got := tickflake("lease", "list", "--state", state)
	assert.Equal(t, 1, got.code, "cells are damaged")
	const instant = `\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z`
	for i, want := range []string{
		`NODE  STATE     OWNER           UNTIL +CLOCK`,
		`0     held      the \?\[31mfirst  ` + instant + ` \(in (1h0m0s|59m\d+s)\) +±10m0s`,
		`1     released  -               ` + instant + ` \([\d.]+m?s (ago|in)\) +-`,
		`2     held      the third       ` + instant + ` \(12m\d+s ago\) +-12m\d+s ±500ms`,
		`3     damaged   -               - +-`,
		`4     damaged   -               - +-`,
	} {
		require.Greater(t, len(got.lines()), i)
		assert.Regexp(t, "^"+want+"$", got.lines()[i])
	}
	assert.Len(t, got.lines(), 6)
	assert.Regexp(t, `^tickflake: cell of node 3: .*0000003\.cell: it is not a cell .*\ntickflake: cell of node number 4 cannot be read: .*\n$`, got.err)
	assert.Equal(t, before, contents(t, state), "looking changes nothing")

	got = tickflake("lease", "list", "--state", state, "--format", "json")
	assert.Equal(t, 1, got.code)
	var nodes []holdingJSON
	for _, line := range got.lines() {
		var one holdingJSON
		require.NoError(t, json.Unmarshal([]byte(line), &one))
		nodes = append(nodes, one)
	}
	require.Len(t, nodes, 5)
	for i, want := range []string{"held", "released", "held", "damaged", "damaged"} {
		assert.Equal(t, int64(i), nodes[i].Node)
		assert.Equal(t, want, nodes[i].State)
		assert.Equal(t, want == "held", nodes[i].Ahead != nil)
		assert.Equal(t, want == "damaged", nodes[i].Error != "")
		if want != "damaged" {
			assert.Equal(t, snowflake.Default().String(), nodes[i].Layout)
			until, err := time.Parse(time.RFC3339, nodes[i].Until)
			require.NoError(t, err)
			assert.WithinDuration(t, time.Now().Add(nodes[i].Remaining), until, 5*time.Second)
		}
	}
	assert.Equal(t, "the \x1b[31mfirst", nodes[0].Owner, "JSON can say all")
	assert.InDelta(t, -12*time.Minute-30*time.Second, *nodes[2].Ahead, float64(30*time.Second))
}

// contents returns what the cells of a directory are.
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

func TestLeaseShow(t *testing.T) {
	state := stateWithAll(t)
	got := tickflake("lease", "show", "0", "--state", state)
	require.Equal(t, result{0, got.out, ""}, got)
	assert.Regexp(t, regexp.MustCompile(`(?s)^node    0
state   held
owner   the \?\[31mfirst
until   \S+ \(in \S+\)
clock   ±10m0s
window  1h0m0s
layout  `+regexp.QuoteMeta(snowflake.Default().String())+`
$`), got.out)

	list := tickflake("lease", "list", "--state", state, "--format", "json")
	for i, line := range list.lines() {
		show := tickflake("lease", "show", string(rune('0'+i)), "--state", state, "--format", "json")
		if i == 3 { // the directory cannot even tell that this is one, so its list has none
			assert.Equal(t, 1, show.code)
			assert.Contains(t, show.out, `{"node":3,"state":"damaged",`)
			assert.Contains(t, show.err, "0000003.cell: it is not a cell")
			continue
		}
		var one, other holdingJSON
		require.NoError(t, json.Unmarshal([]byte(line), &one))
		require.NoError(t, json.Unmarshal([]byte(show.out), &other))
		one.Remaining, other.Remaining = 0, 0
		assert.Equal(t, one.Ahead == nil, other.Ahead == nil)
		one.Ahead, other.Ahead = nil, nil
		if i == 0 || i == 2 { // alive
			one.Until, other.Until = "", ""
		}
		assert.Equal(t, one, other)
		assert.Equal(t, i == 4, show.code == 1)
	}
	assert.Equal(t, result{1, "", "tickflake: node number 9 was never claimed here: is it the right store and namespace?\n"}, tickflake("lease", "show", "9", "--state", state))
}

func TestLeaseRelease(t *testing.T) {
	state := stateWithAll(t)
	before := contents(t, state)
	for node, want := range map[string]result{
		"0": {1, "", "tickflake: node number 0 is held by the \x1b[31mfirst: end that, or give each process a number of its own\n"},
		"1": {0, "node number 1 was released before\n", ""},
		"4": {1, "", "tickflake: cell of node number 4 cannot be read: *\n"},
		"9": {1, "", "tickflake: node number 9 was never claimed here: is it the right store and namespace?\n"},
	} {
		got := tickflake("lease", "release", node, "--yes", "--state", state)
		assert.Equal(t, want.code, got.code)
		assert.Equal(t, want.out, got.out)
		assert.Truef(t, matches(strings.ReplaceAll(want.err, "\x1b", "?"), got.err), got.err)
	}
	assert.Equal(t, before, contents(t, state))

	got := tickflake("lease", "release", "0", "--state", state)
	assert.Equal(t, result{2, "", "tickflake: nobody can be asked here whether to release it: give --yes to do so\nsee 'tickflake lease release --help'\n"}, got)
}

// Two are asked for one number: whoever is alive keeps it.
func TestLeaseReleaseOfACrashedRun(t *testing.T) {
	state := crashedState(t)
	before := inspect(t, state)
	require.Equal(t, lease.Abandoned, before.State)
	got := tickflake("lease", "release", "0", "--yes", "--state", state)
	assert.Equal(t, result{0, "node number 0 is released; its next holder begins at " + before.Limit.Format(untilFormat) + "\n", ""}, got)
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
