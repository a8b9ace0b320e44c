package spread

import (
	"bytes"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/bench/measure"
	"github.com/tickflake/tickflake/bench/peers"
	"github.com/tickflake/tickflake/bench/results"
	"github.com/tickflake/tickflake/bench/yours"
	"github.com/tickflake/tickflake/generator"
	flake "github.com/tickflake/tickflake/snowflake"
)

func TestMain(m *testing.M) {
	yours.Add(yours.Mine())
	peers.Serve()
	os.Exit(m.Run())
}

func TestWasted(t *testing.T) {
	const perTick = 10
	for name, tt := range map[string]struct {
		slots []slot
		want  waste
	}{
		"none":              {nil, waste{}},
		"one tick":          {[]slot{11, 12, 13}, waste{}},
		"no whole tick":     {[]slot{19, 20}, waste{}},
		"a whole one":       {[]slot{19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30}, waste{ticks: 1}},
		"in any order":      {[]slot{30, 25, 20, 21, 29, 22, 23, 24, 26, 27, 19, 28}, waste{ticks: 1}},
		"start":             {[]slot{19, 24, 25, 26, 27, 28, 29, 30}, waste{ticks: 1, start: 0.4}},
		"end":               {[]slot{19, 20, 21, 22, 30}, waste{ticks: 1, end: 0.7}},
		"between":           {[]slot{19, 20, 22, 23, 24, 26, 27, 28, 29, 30}, waste{ticks: 1, between: 0.2}},
		"all of it, skip 1": {[]slot{5, 22, 24, 25, 28, 30}, waste{ticks: 2, skipped: 0.5, start: 0.2, between: 0.3, end: 0.1}},
		"nobody there":      {[]slot{5, 30}, waste{ticks: 2, skipped: 1}},
		"skip at the end":   {[]slot{9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 50}, waste{ticks: 4, skipped: 0.75}},
	} {
		got := wasted(slices.Clone(tt.slots), perTick)
		for _, pair := range [][2]float64{{tt.want.skipped, got.skipped}, {tt.want.start, got.start}, {tt.want.between, got.between}, {tt.want.end, got.end}} {
			assert.InDelta(t, pair[0], pair[1], 1e-12, name)
		}
		assert.Equal(t, tt.want.ticks, got.ticks, name)
		var issued float64
		for _, s := range tt.slots {
			if got.ticks > 0 && s/perTick > slices.Min(tt.slots)/perTick && s/perTick < slices.Max(tt.slots)/perTick {
				issued++
			}
		}
		if got.ticks > 0 {
			assert.InDelta(t, 1-issued/float64(perTick*got.ticks), got.all(), 1e-12, name)
		}
	}
}

func TestSpreadOf(t *testing.T) {
	even := bytes.Repeat([]byte{0, 2, 4, 6, 8, 10, 12, 14}, 128)
	all := make([]byte, 1024)
	for i := range all {
		all[i] = byte(i)
	}
	s := spreadOf(all, 16)
	assert.InDelta(t, 1, s.p, 1e-12)
	assert.Equal(t, 1.0/16, s.most)

	s = spreadOf(even, 2)
	assert.Less(t, s.p, 1e-6)
	assert.Equal(t, 1.0, s.most)

	// 60 of 100 are even: chi-square is 4 with one degree of freedom, and p 0.0455.
	s = spreadOf(append(bytes.Repeat([]byte{0}, 60), bytes.Repeat([]byte{1}, 40)...), 2)
	assert.InDelta(t, 0.0455, s.p, 1e-4)
	assert.Equal(t, 0.6, s.most)
}

// What the generators issue is read right: each slot once, and none left out between
// those of one caller.
func TestBusy(t *testing.T) {
	all, err := openAll()
	require.NoError(t, err)
	defer closeAll(all)
	require.Len(t, all, len(starts)+6)
	for _, b := range all {
		for range 2 {
			slots, err := b.issue(nil, fewest)
			require.NoError(t, err, b.name)
			w := wasted(slots, b.perTick)
			assert.GreaterOrEqual(t, w.ticks, fewest, b.name)
			assert.Len(t, slices.Compact(slices.Clone(slots)), len(slots), "%s issued twice", b.name)
			if !strings.Contains(b.name, "streams") {
				assert.Zero(t, w.between, b.name)
			}
			if b.starts == 0 {
				assert.Zero(t, w.start, b.name)
			}
		}
	}
	layout := flake.Default()
	gen, err := generator.New(generator.WithNode(5))
	require.NoError(t, err)
	for range 5000 {
		id, err := gen.Next()
		require.NoError(t, err)
		d, err := layout.Decode(id)
		require.NoError(t, err)
		require.Equal(t, slot(d.Time.Sub(layout.Epoch)/time.Millisecond)*perTick+slot(d.Sequence), slotOf(int64(id)))
	}
}

func run(progress func(done, of int, what string)) *measure.Run {
	return &measure.Run{Quick: true, Budget: 500 * time.Millisecond, Rand: rand.New(rand.NewPCG(1, 2)), Progress: progress}
}

func check(t *testing.T, s results.Section) {
	s.ID = "waste"
	require.NoError(t, (&results.Report{Schema: results.Schema, Sections: []results.Section{s}}).Check())
}

func TestSection(t *testing.T) {
	told := 0
	s := Sections()[0].Measure(t.Context(), run(func(done, of int, what string) {
		told++
		assert.LessOrEqual(t, done, of)
		assert.NotEmpty(t, what)
	}))
	check(t, s)
	assert.Positive(t, told)
	assert.Empty(t, s.Notes)

	chances := s.Table("waste-chances")
	for _, r := range chances.Rows {
		for _, c := range r.Cells {
			require.Len(t, c.Samples, 1, r.Name)
		}
	}
	assert.NotEmpty(t, chances.Cell("yours", "p-2").Samples)
	// Those that begin each tick at zero, and those that end in the machine's number.
	for _, name := range []string{"tickflake, start zero", "bwmarrin/snowflake", "sony/sonyflake"} {
		assert.Less(t, chances.Cell(name, "p-2").Samples[0], 1e-6, name)
		assert.Equal(t, 100.0, chances.Cell(name, "most").Samples[0], name)
		assert.Equal(t, results.Bad, chances.Cell(name, "p-16").Mark)
	}
	assert.Greater(t, chances.Cell("tickflake, start random:2", "p-2").Samples[0], uniform)
	assert.Less(t, chances.Cell("tickflake, start random:2", "p-16").Samples[0], uniform)
	assert.Equal(t, 1.0, chances.Cell("rs/xid", "p-16").Samples[0], "it counts")
	for _, r := range s.Table("waste-busy").Rows {
		for _, c := range r.Cells {
			assert.GreaterOrEqual(t, len(c.Samples), least, r.Name)
		}
	}
	assert.Contains(t, verdict(s), "all IDs into one of 16 shards: tickflake, start zero, bwmarrin/snowflake, sony/sonyflake")
	assert.Contains(t, verdict(s), "costs a busy generator 3.113% of its slots.")
}

// What a random start costs is known, if not to the digit.
func TestExpected(t *testing.T) {
	assert.Zero(t, expected(0))
	assert.InDelta(t, 7.5/4096, expected(16), 1e-12)
	assert.InDelta(t, 0.49988, expected(4096), 1e-5)
	b, err := ours("random", 4096, next)
	require.NoError(t, err)
	defer func() { require.NoError(t, b.close()) }()
	// 40 starts are 0.5 on average, give or take 0.046. Six of those are beyond chance. A
	// tick in which nothing ran has none.
	var starts, sum float64
	for starts < 40 {
		slots, err := b.issue(nil, 40)
		require.NoError(t, err)
		w := wasted(slots, perTick)
		n := float64(w.ticks) * (1 - w.skipped)
		starts, sum = starts+n, sum+w.start*n
	}
	assert.InDelta(t, expected(4096), sum/starts, 0.3)
}
