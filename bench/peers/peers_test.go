package peers

import (
	"cmp"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/generator/generatortest"
	"github.com/tickflake/tickflake/monoclock/clocktest"
)

func TestMain(m *testing.M) {
	Serve()
	os.Exit(m.Run())
}

// whole is the report of all peers, made once. Its limit is shorter than that of
// the command; a peer that answers needs a fraction of it.
var whole = sync.OnceValue(func() Report { return Run(3 * time.Second) })

func TestList(t *testing.T) {
	var names []string
	for _, p := range List() {
		names = append(names, p.Name)
	}
	assert.Equal(t, []string{
		"tickflake, under a lease", "tickflake, raw clock, node by hand", "tickflake, mono clock, node by hand",
		"bwmarrin/snowflake", "sony/sonyflake", "google/uuid v7",
		"gofrs/uuid v7", "gofrs/uuid v1", "oklog/ulid", "rs/xid", "MongoDB ObjectID", "segmentio/ksuid",
		"sony/sonyflake v2", "mustafaturan/monoflake", "yitter/idgenerator-go", "godruoyi/go-snowflake", "muyo/sno",
	}, names)
}

// TestReport prints the report with -v.
func TestReport(t *testing.T) {
	report := whole()
	text := report.Markdown()
	t.Log("\n" + text)
	table, _, _ := strings.Cut(text, "\n\n")
	peers, faults := List(), generatortest.Catalogue()
	require.Len(t, report.Peers, len(peers))
	for i, p := range report.Peers {
		assert.Equal(t, peers[i].Name, p.Name)
		assert.Contains(t, table, "| "+p.Name+" |")
		assert.Contains(t, text, "**"+p.Name+"**")
		assert.NotEmpty(t, p.How, "%s: where does its time come in?", p.Name)
		if p.Driven == ByNone {
			assert.Empty(t, p.Results, p.Name)
			continue
		}
		if p.Module != "" {
			assert.Regexp(t, `^v\d+\.\d+\.\d+`, p.Version, p.Name)
		}
		require.Len(t, p.Results, len(faults), p.Name)
		for k, r := range p.Results {
			assert.Equal(t, faults[k].Fault, r.Fault, p.Name)
			if r.Skipped == "" && r.Fault != "F18" { // where it is right not to start
				assert.Positive(t, r.Issued+r.Errors+len(r.Violated), "%s %s did nothing, unexplained", p.Name, r.Fault)
			}
			assert.NotContains(t, r.Skipped, "ended without an answer", "%s %s", p.Name, r.Fault)
		}
	}
}

func result(t *testing.T, r Report, peer, fault string) generatortest.Result {
	for _, p := range r.Peers {
		if p.Name == peer {
			res, ok := p.Result(fault)
			require.True(t, ok, "%s %s", peer, fault)
			return res
		}
	}
	require.Fail(t, "no such peer", peer)
	return generatortest.Result{}
}

// What is known from reading the peers must be what the report finds.
func TestReportFindsWhatIsKnown(t *testing.T) {
	report := whole()

	assert.Positive(t, result(t, report, "bwmarrin/snowflake", "F12").Duplicates, "a new Node begins its sequence at 0, also within the same millisecond")
	assert.Positive(t, result(t, report, "bwmarrin/snowflake", "F11").Duplicates, "a new Node does not know how far the last one was")
	assert.Positive(t, result(t, report, "sony/sonyflake", "F12").Duplicates, "as a new Node of bwmarrin/snowflake")
	assert.Contains(t, result(t, report, "bwmarrin/snowflake", "F16").Skipped, "spins: no answer within 3s", "in a bubble for ever")
	assert.Contains(t, result(t, report, "bwmarrin/snowflake", "F1").Skipped, "reads the time package")
	assert.Greater(t, result(t, report, "sony/sonyflake", "F18").LongestStall, 24*time.Hour, "it sleeps until its epoch")
	assert.Positive(t, result(t, report, "rs/xid", "F17").Violated[generatortest.Stale], "its seconds wrap in 2106")
	back := result(t, report, "oklog/ulid", "F2")
	assert.Positive(t, back.Disorder, "it goes back with the clock")
	assert.True(t, back.OK(), "and does not promise otherwise: %v", back.Violations)
	for _, fault := range []string{"F3", "F7", "F13", "F16"} {
		assert.Zero(t, result(t, report, "oklog/ulid", fault).Disorder, "%s: the clock does not go back, and that is promised", fault)
	}

	for _, s := range generatortest.Catalogue() {
		r := result(t, report, "tickflake, under a lease", s.Fault)
		assert.True(t, r.OK(), "%s: %v", s.Fault, r.Violations)
		assert.Empty(t, r.Skipped, s.Fault)
	}
	for _, mine := range []string{"tickflake, raw clock, node by hand", "tickflake, mono clock, node by hand"} {
		for _, s := range generatortest.Catalogue() {
			r := result(t, report, mine, s.Fault)
			switch s.Fault {
			case "F11", "F12", "F13":
				assert.Positive(t, r.Duplicates, "%s %s: without a grant, a new generator knows nothing of the last one", mine, s.Fault)
			default:
				assert.True(t, r.OK(), "%s %s: %v", mine, s.Fault, r.Violations)
			}
		}
	}
	for _, s := range generatortest.Catalogue() {
		if r := result(t, report, "gofrs/uuid v7", s.Fault); r.Skipped == "" {
			assert.Zero(t, r.Duplicates, "%s: it has 62 random bits", s.Fault)
			assert.True(t, r.OK(), "%s: %v", s.Fault, r.Violations)
		}
	}
}

func TestReportAsJSON(t *testing.T) {
	report := whole()
	text, err := json.Marshal(report)
	require.NoError(t, err)
	var back Report
	require.NoError(t, json.Unmarshal(text, &back))
	again, err := json.Marshal(back)
	require.NoError(t, err)
	assert.JSONEq(t, string(text), string(again))
	assert.Equal(t, report.Markdown(), back.Markdown(), "nothing that the table shows is missing in the JSON")
	assert.Equal(t, report.Limit, back.Limit)
}

func TestRunOnlyNamed(t *testing.T) {
	r := Run(time.Second, "xid", "sno ")
	require.Len(t, r.Peers, 1)
	assert.Equal(t, "rs/xid", r.Peers[0].Name)
	assert.Empty(t, Run(time.Second, "nobody").Peers)
}

// Without Serve, each process would start all the others again.
func TestRunNeedsServe(t *testing.T) {
	t.Setenv(askedFor, "{}")
	assert.Panics(t, func() { Run(time.Second) })
}

// The order is judged where it was promised, and by process; duplicates always.
func TestOrderAsPromised(t *testing.T) {
	run := func(claim generatortest.Claim, text string, ids ...int64) life {
		script, err := generatortest.ParseScript(text)
		require.NoError(t, err)
		return peer(Peer{Name: "sequence", Driven: ByClock, restarts: true}, generatortest.Subject[int64]{
			Claim: claim,
			New: func(*clocktest.Virtual) (generatortest.Process[int64], error) {
				var calls int
				return generatortest.Process[int64]{Next: func() (int64, error) {
					if calls++; calls > len(ids) {
						return 0, errors.New("that was all")
					}
					return ids[calls-1], nil
				}}, nil
			},
		}).run(script)
	}
	ordered := generatortest.Claim{}
	down := run(ordered, "ids 5", 1, 5, 3, 2, 9)
	assert.Equal(t, []string{"1", "5", "3", "2", "9"}, down.IDs)
	assert.Equal(t, 2, down.Result.Violated[generatortest.Disorder])
	loose := run(unordered, "ids 5", 1, 5, 3, 2, 9).Result
	assert.Zero(t, loose.Violated[generatortest.Disorder])
	assert.Equal(t, 2, loose.Disorder, "it is counted")

	assert.Equal(t, 1, run(unordered, "ids 3", 1, 2, 1).Result.Violated[generatortest.Duplicate])
	for _, end := range []string{"crash", "restart"} {
		again := run(ordered, "ids 2; "+end+"; ids 2", 1, 2)
		assert.Zero(t, again.Result.Violated[generatortest.Disorder], "another process begins anew")
		assert.Equal(t, 2, again.Result.Violated[generatortest.Duplicate])
		assert.Equal(t, []string{"1", "2", "1", "2"}, again.IDs)
	}
}

func named(t *testing.T, name string) Peer {
	for _, p := range List() {
		if p.Name == name {
			return p
		}
	}
	require.Fail(t, "no such peer", name)
	return Peer{}
}

// Two processes that issue the same ID are found out.
func TestLives(t *testing.T) {
	p := named(t, "bwmarrin/snowflake")
	l, err := p.lives(Variant{Script: "ids 10", Second: "begin 2026-06-01T13:00:00Z; ids 10"}, 10*time.Second)
	require.NoError(t, err)
	assert.True(t, l.Result.OK(), l.Result.Violations)
	assert.Equal(t, len(l.IDs), l.Result.Issued)
	l, err = p.lives(Variant{Script: "ids 10", Second: "ids 5"}, 10*time.Second)
	require.NoError(t, err)
	// The suite calls once more at that instant, and in each of the three
	// seconds after.
	assert.Equal(t, 5+1+3, l.Result.Duplicates)
	assert.Equal(t, map[generatortest.Kind]int{generatortest.Duplicate: 5 + 1 + 3}, l.Result.Violated)

	l, err = p.lives(Variant{Script: "begin 2000-01-02T00:00:00Z; ids 3", Second: "begin 2000-01-03T00:00:00Z; ids 3"}, 10*time.Second)
	require.NoError(t, err)
	assert.Equal(t, l.Result.Issued, l.Result.Violated[generatortest.EndOfTime], "of both, before the epoch")
}

// A process that does not do what it was asked is not taken for one that spins,
// nor one that waits.
func TestAskWithoutAnswer(t *testing.T) {
	_, err := Peer{Name: "nobody"}.ask("ids 1", 10*time.Second)
	var quiet *silence
	require.Error(t, err)
	assert.False(t, errors.As(err, &quiet))
	assert.ErrorContains(t, err, "ended without an answer")
	assert.ErrorContains(t, err, "nobody")

	_, err = named(t, "bwmarrin/snowflake").ask("ids 5000", time.Second)
	require.ErrorAs(t, err, &quiet)
	assert.ErrorContains(t, err, "spins: no answer within 1s")

	assert.ErrorContains(t, &silence{limit: time.Second, used: 10 * time.Millisecond}, "hangs: no answer within 1s")
}

func TestCells(t *testing.T) {
	p := PeerReport{Results: []generatortest.Result{
		{Fault: "F1", Issued: 3},
		{Fault: "F2", Skipped: "no clock"},
		{Fault: "F3", Violated: map[generatortest.Kind]int{generatortest.Duplicate: 3, generatortest.Stall: 1}},
	}}
	var cells []string
	for _, fault := range []string{"F1", "F2", "F3", "F4"} {
		cells = append(cells, p.cell(fault))
	}
	assert.Equal(t, []string{"✓", "–", "✗ 3 duplicate, 1 stall", "–"}, cells)
}

// A script that replaces one of the catalogue must be one, and its fault there.
func TestVariants(t *testing.T) {
	faults := map[string]bool{}
	for _, s := range generatortest.Catalogue() {
		faults[s.Fault] = true
	}
	for _, p := range List() {
		for fault, v := range p.Instead {
			assert.True(t, faults[fault], "%s %s", p.Name, fault)
			assert.NotEmpty(t, v.Note, "%s %s", p.Name, fault)
			assert.True(t, v.Second != "" || p.Driven == ByBubble, "%s %s: run in this process, it is not replaced", p.Name, fault)
			for _, text := range []string{v.Script, cmp.Or(v.Second, v.Script)} {
				_, err := generatortest.ParseScript(text)
				assert.NoError(t, err, "%s %s", p.Name, fault)
			}
		}
	}
}
