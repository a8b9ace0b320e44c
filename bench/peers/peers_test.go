package peers

import (
	"bytes"
	"context"
	"errors"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/generator/generatortest"
	"github.com/tickflake/tickflake/monoclock/clocktest"
	"github.com/tickflake/tickflake/strategies"
)

func TestMain(m *testing.M) {
	Serve()
	os.Exit(m.Run())
}

// three are tickflake with its default strategy, in each setting.
func three() (list []Peer) {
	for _, in := range []Setting{Leased, Raw, Mono} {
		list = append(list, Tickflake("Default()", strategies.Default(), in))
	}
	return list
}

// everybody are tickflake and the peers.
func everybody() []Peer { return append(three(), List()...) }

// whole is the results of all, by name and fault, measured once. The limit suits a machine that
// has much else to do; a peer that spins uses it up.
var whole = sync.OnceValue(func() map[string]map[string]generatortest.Result {
	all := map[string]map[string]generatortest.Result{}
	for i, got := range Run(context.Background(), everybody(), 5*time.Second, func(int, int, string) {}) {
		all[everybody()[i].Name] = got
	}
	return all
})

func TestReport(t *testing.T) {
	report := whole()
	for _, p := range everybody() {
		assert.NotEmpty(t, p.How, "%s: where does its time come in?", p.Name)
		require.Len(t, report[p.Name], len(generatortest.Catalogue()), p.Name)
		for fault, r := range report[p.Name] {
			assert.Equal(t, fault, r.Fault, p.Name)
			if r.Skipped == "" && r.Fault != "F18" { // where it is right not to start
				assert.Positive(t, r.Issued+r.Errors+len(r.Violated), "%s %s did nothing, unexplained", p.Name, fault)
			}
			assert.NotContains(t, r.Skipped, "ended without an answer", "%s %s", p.Name, fault)
		}
	}
}

func result(t *testing.T, r map[string]map[string]generatortest.Result, peer, fault string) generatortest.Result {
	got, ok := r[peer][fault]
	require.True(t, ok, "%s %s", peer, fault)
	return got
}

// bubbles are the names of the peers that are driven by one.
func bubbles() (names []string) {
	for _, p := range List() {
		if p.Driven == ByBubble {
			names = append(names, p.Name)
		}
	}
	return names
}

// The report must find the behaviour that is known from the source of the peers.
func TestReportFindsWhatIsKnown(t *testing.T) {
	report := whole()

	assert.Positive(t, result(t, report, "bwmarrin/snowflake", "F12").Duplicates, "a new Node begins its sequence at 0, also within the same millisecond")
	assert.Positive(t, result(t, report, "bwmarrin/snowflake", "F11").Duplicates, "a new Node does not know how far the last one was")
	assert.Positive(t, result(t, report, "sony/sonyflake", "F12").Duplicates, "as a new Node of bwmarrin/snowflake")
	assert.Contains(t, result(t, report, "bwmarrin/snowflake", "F16").Skipped, "spins: no answer within 5s", "in a bubble for ever")
	assert.Contains(t, result(t, report, "bwmarrin/snowflake", "F1").Skipped, "reads the time package")
	assert.Greater(t, result(t, report, "sony/sonyflake", "F18").LongestStall, 24*time.Hour, "it sleeps until its epoch")
	for _, name := range bubbles() {
		if name == "google/uuid v7" { // it has random bits
			continue
		}
		assert.GreaterOrEqual(t, result(t, report, name, "F11").Duplicates, 1000, "%s: a new one does not know how far the last one was", name)
		assert.Positive(t, result(t, report, name, "F12").Duplicates, "%s: and begins its sequence anew in the same tick", name)
	}
	end := result(t, report, "sony/sonyflake", "F17")
	assert.True(t, end.OK() && end.Errors > 0, "it refuses after the end of time: %v", end.Violations)
	assert.Positive(t, result(t, report, "bwmarrin/snowflake", "F17").Violated[generatortest.EndOfTime], "its milliseconds run into the sign")
	assert.Positive(t, result(t, report, "rs/xid", "F17").Violated[generatortest.Stale], "its seconds wrap in 2106")
	back := result(t, report, "oklog/ulid", "F2")
	assert.Positive(t, back.Disorder, "it goes back with the clock")
	assert.True(t, back.OK(), "and does not promise otherwise: %v", back.Violations)
	for _, fault := range []string{"F3", "F7", "F13", "F16"} {
		assert.Zero(t, result(t, report, "oklog/ulid", fault).Disorder, "%s: the clock does not go back, and that is promised", fault)
	}

	for _, s := range generatortest.Catalogue() {
		r := result(t, report, "tickflake Default(), lease", s.Fault)
		assert.True(t, r.OK(), "%s: %v", s.Fault, r.Violations)
		assert.Empty(t, r.Skipped, s.Fault)
	}
	for _, mine := range []string{"tickflake Default(), raw clock", "tickflake Default(), monoclock"} {
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
		}).run(script, true)
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
	l, err := p.lives(t.Context(), Variant{Script: "ids 10", Second: "begin 2026-06-01T13:00:00Z; ids 10"}, time.Minute)
	require.NoError(t, err)
	assert.True(t, l.Result.OK(), l.Result.Violations)
	assert.Equal(t, len(l.IDs), l.Result.Issued)
	l, err = p.lives(t.Context(), Variant{Script: "ids 10", Second: "ids 5"}, time.Minute)
	require.NoError(t, err)
	// The suite calls once more at that instant, and in each of the three
	// seconds after.
	assert.Equal(t, 5+1+3, l.Result.Duplicates)
	assert.Equal(t, map[generatortest.Kind]int{generatortest.Duplicate: 5 + 1 + 3}, l.Result.Violated)

	l, err = p.lives(t.Context(), Variant{Script: "begin 2000-01-02T00:00:00Z; ids 3", Second: "begin 2000-01-03T00:00:00Z; ids 3"}, time.Minute)
	require.NoError(t, err)
	assert.Equal(t, l.Result.Issued, l.Result.Violated[generatortest.EndOfTime], "of both, before the epoch")
}

// The longest stall of several callers is that of one: with several, it is unknown who
// waits for what.
func TestStallOfOneCaller(t *testing.T) {
	p := peer(Peer{Name: "waits", Driven: ByClock}, generatortest.Subject[int64]{
		Claim: generatortest.Claim{Unordered: true}, Tick: time.Millisecond,
		New: func(clock *clocktest.Virtual) (generatortest.Process[int64], error) {
			var last atomic.Int64
			return generatortest.Process[int64]{Next: func() (int64, error) {
				clock.Now()
				clock.Sleep(3 * time.Millisecond)
				return last.Add(1), nil
			}}, nil
		},
	})
	got := p.put(t.Context(), generatortest.Scenario{Fault: "F16", Script: generatortest.Script{
		Callers: 4, Steps: []generatortest.Step{{Do: generatortest.IDs, Count: 9}}}}, time.Second)
	assert.Equal(t, 3*time.Millisecond, got.LongestStall)
}

func TestIDs(t *testing.T) {
	for _, p := range append(three(), List()...) {
		low, err := p.IDs(t.Context(), 64, max(p.Tick, time.Millisecond), time.Minute)
		require.NoError(t, err, p.Name)
		assert.Len(t, low, 64, p.Name)
		switch p.Name {
		case "tickflake Default(), raw clock", "bwmarrin/snowflake":
			assert.Equal(t, make([]byte, 64), low, "%s: the sequence begins at zero in every tick", p.Name)
		case "sony/sonyflake", "gofrs/uuid v1": // it ends in the machine's number
			assert.Equal(t, bytes.Repeat([]byte{7}, 64), low, p.Name)
		case "rs/xid", "MongoDB ObjectID": // it ends in a counter
			for i := 1; i < len(low); i++ {
				require.Equal(t, low[i-1]+1, low[i], p.Name)
			}
		}
	}
	counts := peer(Peer{Name: "counts", Driven: ByClock, low: lowest}, generatortest.Subject[int64]{
		New: func(*clocktest.Virtual) (generatortest.Process[int64], error) {
			var last int64
			return generatortest.Process[int64]{Next: func() (int64, error) { last++; return last, nil }}, nil
		},
	})
	low, err := counts.IDs(t.Context(), 5, time.Second, time.Second)
	require.NoError(t, err)
	assert.Equal(t, []byte{1, 2, 3, 4, 5}, low)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = named(t, "sony/sonyflake").IDs(ctx, 1, time.Second, time.Second)
	assert.Error(t, err)
}
