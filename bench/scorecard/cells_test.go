package scorecard

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/bench/peers"
	"github.com/tickflake/tickflake/bench/results"
	"github.com/tickflake/tickflake/generator/generatortest"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/lease/leasetest"
	"github.com/tickflake/tickflake/monoclock/clocktest"
	"github.com/tickflake/tickflake/strategies"
)

// A generator that begins a tick anew when the clock goes back is shown as bad.
func TestPlantedGenerator(t *testing.T) {
	broken := generatortest.Subject[int64]{
		Tick: time.Millisecond,
		Time: func(id int64) time.Time { return time.UnixMilli(id >> 16) },
		New: func(clock *clocktest.Virtual) (generatortest.Process[int64], error) {
			var last, count int64
			return generatortest.Process[int64]{Next: func() (int64, error) {
				if now := clock.Now().UnixMilli(); now != last {
					last, count = now, 0
				}
				count++
				return last<<16 | count, nil
			}}, nil
		},
	}
	r := &row{short: "broken", results: map[string]generatortest.Result{}}
	r.Name, r.Driven = "broken", peers.ByClock
	all := faults()
	for _, s := range generatortest.Run(broken, generatortest.Catalogue()[:3]...).Results {
		r.results[s.Fault] = s
	}
	back, ahead := r.cell(all[0]), r.cell(all[2])
	assert.Equal(t, results.Bad, back.Mark)
	assert.Contains(t, back.Text, " dup")
	assert.Equal(t, results.Cell{Text: "✓", Mark: results.Good}, ahead, "no clock goes back")
	s := results.Section{Tables: tables([]*row{r}, all)}
	assert.Positive(t, cell(t, table(t, s, "faults-duplicates"), "broken", "F1").Samples[0])
	assert.NotEmpty(t, cell(t, table(t, s, "faults-wrong"), "broken: F2", "first").Text)
	assert.Equal(t, []float64{1, 0, 2, 17}, []float64{
		cell(t, table(t, s, "faults-summary"), "broken", "fine").Samples[0], cell(t, table(t, s, "faults-summary"), "broken", "price").Samples[0],
		cell(t, table(t, s, "faults-summary"), "broken", "wrong").Samples[0], cell(t, table(t, s, "faults-summary"), "broken", "none").Samples[0]})
	assert.Equal(t, "Under a lease, no strategy issues an ID twice; broken do in some faults.", verdict(s))
}

func TestJudged(t *testing.T) {
	r := &row{}
	r.Tick = time.Millisecond
	r.Instead = map[string]peers.Variant{"F7": {}}
	bad := func(kinds ...generatortest.Kind) generatortest.Result {
		o := generatortest.Result{Violated: map[generatortest.Kind]int{}, LongestStall: 1500 * time.Millisecond, LargestLead: time.Hour}
		for i, k := range kinds {
			o.Violated[k] = 1200 * (i + 1)
		}
		return o
	}
	f, rightly := fault{id: "F1"}, fault{id: "F17", rightly: true}
	for _, tt := range []struct {
		fault   fault
		outcome generatortest.Result
		want    results.Cell
	}{
		{f, generatortest.Result{}, results.Cell{Text: "✓", Mark: results.Good}},
		{fault{id: "F7"}, generatortest.Result{}, results.Cell{Text: "✓*", Mark: results.Good}},
		{f, generatortest.Result{Skipped: "why not"}, results.Cell{Text: "–"}},
		{f, bad(generatortest.Stall), results.Cell{Text: "✗ stall 1.5 s", Mark: results.Bad}},
		{f, bad(generatortest.Lead), results.Cell{Text: "✗ lead 1 h", Mark: results.Bad}},
		{f, bad(generatortest.Lead, generatortest.Duplicate), results.Cell{Text: "✗ 2,400 dup", Mark: results.Bad}},
		{f, bad("of a new kind"), results.Cell{Text: "✗ 1200 of a new kind", Mark: results.Bad}},
		{f, generatortest.Result{Errors: 12, Disorder: 3}, results.Cell{Text: "12 err"}},
		{rightly, generatortest.Result{Errors: 12}, results.Cell{Text: "✓", Mark: results.Good}},
		{f, generatortest.Result{Disorder: 3, LongestStall: time.Second}, results.Cell{Text: "3 disorder"}},
		{f, generatortest.Result{LongestStall: time.Millisecond}, results.Cell{Text: "✓", Mark: results.Good}},
		{f, generatortest.Result{LongestStall: 3 * time.Second}, results.Cell{Text: "stall 3 s"}},
		{f, generatortest.Result{LargestLead: time.Millisecond}, results.Cell{Text: "✓", Mark: results.Good}},
		{f, generatortest.Result{LargestLead: 2 * time.Minute}, results.Cell{Text: "lead 2 min"}},
	} {
		r.results = map[string]generatortest.Result{tt.fault.id: tt.outcome}
		assert.Equal(t, tt.want, r.cell(tt.fault), "%+v", tt.outcome)
	}
	assert.Equal(t, results.Cell{Text: notRun}, r.cell(fault{id: "F2"}), "it was not tried")

}

func TestSpans(t *testing.T) {
	for want, d := range map[string]time.Duration{
		"1 ns": 1, "1.5 µs": 1500, "2 ms": 2 * time.Millisecond, "59.9 s": 59900 * time.Millisecond, "1 min": time.Minute,
		"1.5 h": 90 * time.Minute, "47 h": 47 * time.Hour, "365 d": 8760 * time.Hour, "14.7 years": 128544 * time.Hour,
	} {
		assert.Equal(t, want, span(d))
	}
}

// One strategy after the other, under the faults of leases, is what it promises to be;
// and what is not would be found out.
func TestLeaseFaults(t *testing.T) {
	for _, n := range named {
		for _, f := range faults() {
			if f.run == nil {
				continue
			}
			o := f.result(t.Context(), n.strategy)
			assert.Positive(t, o.Issued, "%s %s", n.name, f.id)
			if f.id == "F19" {
				assert.Equal(t, map[generatortest.Kind]int{generatortest.Duplicate: 600}, o.Violated, n.name)
				assert.Equal(t, 600, o.Duplicates)
				continue
			}
			assert.Empty(t, o.Violations, "%s %s", n.name, f.id)
			switch f.id {
			case "F15":
				if n.name == "Reject()" { // two outages of 120 s, less what was granted then, at ten calls a second
					assert.InDelta(t, 2*(1200-230), o.Errors, 70)
				}
				assert.True(t, o.Errors > 10 || o.LongestStall > time.Minute, "%s: nobody noticed that the store was away", n.name)
			case "F20":
				assert.Equal(t, len(damages), o.Errors, "%s: each damage is refused once", n.name)
			}
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, f := range faults() {
		if f.run != nil {
			assert.NotEmpty(t, f.result(ctx, strategies.Wait()).Skipped)
		}
	}
}

// Each judgement of a record can fail.
func TestRecord(t *testing.T) {
	node := lease.WithNode(lease.NodeNumber(3))
	behind := func(r *record) { // the process that starts is behind what another left
		cells := leasetest.NewMemory()
		p, err := r.start(t.Context(), clocktest.NewVirtual(noon), cells, node)
		require.NoError(t, err)
		r.call(p)
		require.NoError(t, p.gen.Close())
		p, err = r.start(t.Context(), clocktest.NewVirtual(noon.Add(-time.Second)), cells, node)
		require.NoError(t, err)
		r.call(p)
	}
	waits := newRecord(strategies.Wait())
	behind(waits)
	assert.Empty(t, waits.Violated)
	assert.Equal(t, time.Second, waits.LongestStall.Round(10*time.Millisecond))
	waits.wait = 0 // as if it had promised not to
	behind(waits)
	assert.Equal(t, 1, waits.Violated[generatortest.Stall])

	borrows := newRecord(strategies.BorrowUpTo(time.Minute))
	behind(borrows)
	assert.Empty(t, borrows.Violated)
	assert.Equal(t, time.Second, borrows.LargestLead.Round(10*time.Millisecond))
	borrows.borrow = 0
	behind(borrows)
	assert.Positive(t, borrows.Violated[generatortest.Lead])

	rejects := newRecord(strategies.Reject())
	behind(rejects)
	assert.Empty(t, rejects.Violated)
	assert.Equal(t, 1, rejects.Errors)

	alone := newRecord(strategies.Reject())
	p, err := alone.start(t.Context(), clocktest.NewVirtual(noon), leasetest.NewMemory())
	require.NoError(t, err)
	require.True(t, alone.call(p))
	p.last += 1 << 40
	alone.call(p)
	assert.Equal(t, map[generatortest.Kind]int{generatortest.Disorder: 1}, alone.Violated)
	require.NoError(t, p.gen.Close())
	alone.call(p)
	assert.Equal(t, 1, alone.Violated[generatortest.WrongError], "an error that a closed generator has")
}

// A process that starts on a damaged file, or writes over it, is found out.
func TestTear(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cell")
	require.NoError(t, os.WriteFile(path, []byte("whole"), 0o600))
	half := func(s string) string { return s[:2] }

	r := newRecord(strategies.Wait())
	require.NoError(t, r.tear(path, half, func() (*process, error) {
		return r.start(t.Context(), clocktest.NewVirtual(noon), leasetest.NewMemory())
	}))
	assert.Equal(t, map[generatortest.Kind]int{generatortest.NoStart: 1}, r.Violated)

	r = newRecord(strategies.Wait())
	require.NoError(t, os.WriteFile(path, []byte("whole"), 0o600))
	require.NoError(t, r.tear(path, half, func() (*process, error) {
		return nil, errors.Join(errors.New("no"), os.WriteFile(path, nil, 0o600))
	}))
	assert.Equal(t, map[generatortest.Kind]int{generatortest.WrongError: 1, generatortest.NoRecovery: 1}, r.Violated)
	assert.Error(t, r.tear(path, func(s string) string { return s }, nil), "that is no damage")
}
