package generatortest_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	gt "github.com/tickflake/tickflake/generator/generatortest"
)

// The limits of scripts.
const (
	maxSteps = 100_000
	maxTime  = 876_600 * time.Hour
)

func steps(s ...gt.Step) gt.Script { return gt.Script{Steps: s} }

// What a step does is tested where a script runs.
func TestParseScript(t *testing.T) {
	for text, want := range map[string]string{
		"":                                      "",
		" ;;\n#ids 7; step 9\n\t;":              "",
		"leap # ; crash":                        "leap",
		"\r\nleap\r\n crash\r\n":                "leap; crash",
		"callers 2;clock raw\nleap;\n":          "clock raw; callers 2; leap",
		"strategy borrow:1s; begin end-20ms":    "strategy borrow:1s; begin end-20ms",
		"step -876600h":                         "step -876600h0m0s",
		"step 1ns; step +0s at read 1":          "step +1ns; step +0s at read 1",
		"slew 1e3 for 1s; slew 0.000001 for 2s": "slew 1000 for 1s; slew 1e-06 for 2s",
		"ids 5000000; crash at read 1000":       "ids 5000000; crash at read 1000", // readings are no IDs
		"ids 500 over 2000ms; crash at read 2":  "ids 500 over 2s; crash at read 2",
	} {
		s := parse(text)
		assert.Equal(t, want, s.Line())
		assert.Equal(t, strings.ReplaceAll(want, "; ", "\n"), s.String())
	}
}

func TestParseScriptRefuses(t *testing.T) {
	const known = "not known: want ids, batch, stream, pass, step, slew, freeze, coarse, suspend, leap, restart, crash or takeover"
	const aTime = "; D is a time such as 5ms, of at most "
	const ids, batch, step = "want ids N [over D]; N is 1 to 5000000" + aTime + "876600h0m0s", "want batch N; N is 1 to 1048576", "want step D [at read N]; N is 1 to 1000" + aTime + "876600h0m0s"
	const pass, slew, freeze, crash = "want pass D" + aTime + "876600h0m0s", "want slew R for D; R is 0 to 1000, such as 0.5" + aTime, "want freeze D" + aTime + "2s", "want crash [at read N]; N is 1 to 1000"
	for text, problem := range map[string]string{
		"fly": known, "ids": ids, "ids 1 over 2": ids, "ids 1 over 0s": ids, "ids 1 over -1s": ids, "ids 0": ids, "ids ten": ids,
		"ids 5000001": ids, "ids 9223372036854775807": ids, "batch 1048577": batch, "step -2ms at read 0": step, "step -2ms at read 1001": step,
		"step -876600h1ns": step, "step -2562047h47m16.854775808s": step, "pass 5": pass, "pass -1ns": pass, "pass 876600h0m1s": pass,
		"slew 0.5": slew + "876600h0m0s", "slew x for 2s": slew + "2s", "slew NaN for 2s": slew + "876600h0m0s", "slew 1001 for 2s": slew + "876600h0m0s",
		"slew -1 for 1s": slew + "2s", "slew 1000 for 877h": slew + "876h36m0s", "slew 0.09 for 2001ms": slew + "2s", "freeze 2s1ns": freeze,
		"coarse 61s": "want coarse D" + aTime + "1m0s", "crash now": crash, "crash in read 2": crash, "leap 2": "want leap",
	} {
		want := fmt.Sprintf("script line 1: %q: %s", text, problem)
		_, err := gt.ParseScript(text)
		assert.EqualError(t, err, want)
	}
	for text, want := range map[string]string{
		"ids 5000000\nbatch 1":                        `script line 2: "batch 1": that makes 5000001 IDs in all: at most 5000000`,
		"pass 876600h\nleap\nstep -1ns":               `script line 2: "leap": that makes 876600h0m1s in all, there and back: at most 876600h0m0s`,
		"leap\nclock raw":                             `script line 2: "clock raw": settings come before the first step`,
		"clock raw; clock raw":                        `script line 1: "clock raw": given twice`,
		"clock":                                       `script line 1: "clock": want one word after clock`,
		"begin 2026-06-01 12:00":                      `script line 1: "begin 2026-06-01 12:00": want one word after begin`,
		"clock sun":                                   `script line 1: "clock sun": clock "sun": want raw, mono or resync`,
		"begin noon":                                  `script line 1: "begin noon": want a time such as 2026-06-01T12:00:00Z or end-5ms`,
		"begin end-876601h":                           `script line 1: "begin end-876601h": want a time after end, such as end-5ms, of at most 876600h0m0s`,
		"\ncallers 65":                                `script line 2: "callers 65": want 1 to 64`,
		strings.Repeat("ü", 61):                       `script line 1: "` + strings.Repeat("ü", 60) + `…": ` + known,
		"leap\n" + strings.Repeat("x", 1<<20):         `script line 2: "` + strings.Repeat("x", 60) + `…": ` + known,
		strings.Repeat("leap\n", maxSteps) + "\nleap": `script line 100002: "leap": want at most 100000 steps`,
	} {
		s, err := gt.ParseScript(text)
		assert.EqualError(t, err, want)
		assert.Zero(t, s)
	}
	_, err := gt.ParseScript("strategy fly")
	assert.ErrorContains(t, err, `script line 1: "strategy fly": `)
	_, err = gt.ParseScript(strings.Repeat("leap\n", maxSteps))
	assert.NoError(t, err)
}

// A script built by hand is refused as its text would be.
func TestScriptsBuiltByHand(t *testing.T) {
	for want, script := range map[string]gt.Script{
		`script line 1: "callers -1": want 1 to 64`: {Callers: -1},
		"": {Strategy: "mine", Steps: []gt.Step{{Do: gt.IDs, Count: 2}}},
		`script line 1: "fly": not known: want ids, batch, stream, pass, step, slew, freeze, coarse, suspend, leap, restart, crash or takeover`:     steps(gt.Step{Do: "fly"}),
		`script line 1: "step -2562047h47m16.854775808s": want step D [at read N]; N is 1 to 1000; D is a time such as 5ms, of at most 876600h0m0s`: steps(gt.Step{Do: gt.StepWall, Time: math.MinInt64}),
	} {
		assert.Equal(t, want, gt.RunScript(taped(gt.Claim{}), script).Skipped)
	}
}

func FuzzParseScript(f *testing.F) {
	for _, s := range gt.Catalogue() {
		f.Add(s.Script.String())
	}
	f.Add("strategy borrow:1s\nclock mono\nbegin end-5ms\ncallers 3\nslew 0.5 for 1s; leap; coarse 0s # x")
	f.Add("step -2ms at read 2; step +0s at read 1000; step -0s at read 1; callers 2")
	f.Add("step 5ms at read 1; ids 3")
	f.Add("callers 1; step -0s; slew -0 for 1us")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := gt.ParseScript(text)
		if err != nil {
			assert.Regexp(t, `^script line [1-9]`, err.Error())
			return
		}
		for _, form := range []string{s.String(), s.Line()} {
			again, err := gt.ParseScript(form)
			require.NoError(t, err, form)
			require.Equal(t, s, again)
		}
	})
}
