package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/generator/generatortest"
)

func TestChaosList(t *testing.T) {
	catalogue := generatortest.Catalogue()
	got := tickflake("chaos", "list")
	require.Equal(t, result{0, got.out, ""}, got)
	require.Len(t, got.lines(), 21, "F1 to F21")
	for i, line := range got.lines() {
		assert.Regexp(t, fmt.Sprintf("^F%d +[a-z-]+  +[a-z]", i+1), line)
	}
	for _, s := range catalogue {
		assert.Regexp(t, "(?m)^"+s.Fault+" +"+s.Name+" +"+regexp.QuoteMeta(s.What)+"$", got.out)
	}
	for _, e := range elsewhere {
		assert.Regexp(t, "(?m)^"+e.Fault+" +"+e.Name+" +"+regexp.QuoteMeta(e.What)+` \(`+regexp.QuoteMeta(e.Run)+`\)$`, got.out)
	}

	got = tickflake("chaos", "list", "--format", "json")
	require.Len(t, got.lines(), 21)
	byFault := map[string]scenarioJSON{}
	for _, line := range got.lines() {
		var s scenarioJSON
		require.NoError(t, json.Unmarshal([]byte(line), &s))
		byFault[s.Fault] = s
	}
	for _, c := range catalogue {
		assert.Equal(t, scenarioJSON{Fault: c.Fault, Name: c.Name, What: c.What, Script: c.Script.Line()}, byFault[c.Fault])
	}
	assert.Equal(t, scenarioJSON{Fault: "F14", Name: "skewed-fleet", What: elsewhere[0].What, Run: "go test ./lease -run TestFleetUnder/F14"}, byFault["F14"])
	assert.Len(t, tickflake("chaos", "list", "--format", "json", "f5", "F7", "f19").lines(), 3)
}

// Faults without a script can be listed, but not run.
func TestChaosElsewhere(t *testing.T) {
	got := tickflake("chaos", "list", "f19")
	assert.Equal(t, result{0, "# F19 snapshot-clone: " + elsewhere[2].What + "\n# It is no script; in the sources of tickflake, run: go test ./lease -run F19_\n", ""}, got)
	got = tickflake("chaos", "--fault", "F1,skewed-fleet")
	assert.Equal(t, 2, got.code)
	assert.Contains(t, got.err, "F14 is no script: in the sources of tickflake, run 'go test ./lease -run TestFleetUnder/F14'")
}

func TestChaosListScripts(t *testing.T) {
	script, err := generatortest.ParseScript("callers 8; ids 400; step -1s; ids 20 over 20ms")
	require.NoError(t, err)
	var b strings.Builder
	w := bufio.NewWriter(&b)
	require.NoError(t, writeScripts(w, []scenarioJSON{
		{Fault: "F1", Name: "one", What: "what happens", lines: script.String()},
		{Fault: "F2", Name: "two", What: "the same", lines: script.String()},
	}))
	require.NoError(t, w.Flush())
	assert.Equal(t, `# F1 one: what happens
callers 8
ids 400
step -1s
ids 20 over 20ms

# F2 two: the same
callers 8
ids 400
step -1s
ids 20 over 20ms
`, b.String())

	every := tickflake("chaos", "list", "--scripts")
	for _, s := range generatortest.Catalogue() {
		one := tickflake("chaos", "list", strings.ToLower(s.Fault))
		assert.Truef(t, strings.HasPrefix(one.out, "# "+s.Fault+" "+s.Name+": "+s.What+"\n"), one.out)
		script, err := generatortest.ParseScript(one.out)
		require.NoError(t, err, s.Fault)
		assert.Equal(t, s.Script.Line(), script.Line())
		assert.Contains(t, every.out, one.out)
	}
	both := tickflake("chaos", "list", "F2", "F1").out
	assert.Less(t, strings.Index(both, "# F1 "), strings.Index(both, "# F2 "))
	assert.NotContains(t, both, "# F3 ")
}
