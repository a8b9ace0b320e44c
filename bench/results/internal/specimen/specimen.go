// Package specimen makes up reports, for tests of what shows them. It has every shape
// that a section of the benchmark has, and no figure of it was ever measured.
package specimen

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/tickflake/tickflake/bench/results"
)

// Report returns a report that depends only on the seed.
func Report(seed uint64) *results.Report {
	m := &maker{rand.New(rand.NewPCG(seed, 1))}
	return &results.Report{
		Schema:  results.Schema,
		Command: "go run ./bench --seed 7",
		Began:   time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC),
		Seconds: 187.4,
		Seed:    7,
		Machine: results.Machine{
			CPU: "Imaginary Processor 9000 @ 2.40GHz", Cores: 2, MemoryBytes: 8 << 30,
			OS: "someos 12 (amd64)", Kernel: "6.1.0", Virtual: "kvm", ClockSource: "tsc", Go: "go1.26.8",
			LoadBefore: [3]float64{0.12, 0.34, 0.56}, Steal: 2.5,
		},
		Sections: []results.Section{m.cost(), m.ceiling(), m.scaling(), m.latency(), m.faults(), m.waste(), m.ways(), m.index()},
	}
}

type maker struct{ *rand.Rand }

// cell returns n samples around a median, with a spread.
func (m *maker) cell(n int, median, spread float64) results.Cell {
	var c results.Cell
	for range n {
		c.Samples = append(c.Samples, median*(1+spread*(m.Float64()*2-1)))
	}
	return c
}

// section returns one with its title and a command.
func section(id, title, about string) results.Section {
	return results.Section{ID: id, Title: title, About: about, Command: "go run ./bench --seed 7 --only " + id}
}

func (m *maker) cost() results.Section {
	s := section("cost", "Cost of one ID", "One goroutine issues IDs from a sequence wide enough not to be the limit. The floor is one clock read and one compare-and-swap. Cases ran in turn, in random order.")
	t := results.Table{ID: "cost", Title: "Time per ID", RowName: "case", Base: "the floor",
		Columns: []results.Column{{ID: "ns", Title: "time", Unit: "ns/ID", Better: results.Less}, {ID: "allocs", Title: "allocations", Unit: "per ID", Better: results.Less}, {ID: "bits", Title: "bits"}}}
	for i, c := range []struct {
		name  string
		group results.Group
		ns    float64
		note  string
	}{
		{"the floor", results.Floor, 33, "a clock read and a compare-and-swap"},
		{"tickflake Next", results.Ours, 37, ""},
		{"tickflake Next, under a lease", results.Ours, 37.5, ""},
		{"tickflake Next, BorrowUpTo", results.Ours, 41, ""},
		{"tickflake Next, random sequence start", results.Ours, 44, ""},
		{"tickflake NextContext", results.Ours, 43, ""},
		{"tickflake NextN, 16 at a time", results.Ours, 4.1, ""},
		{"tickflake NextN, 128 at a time", results.Ours, 1.8, ""},
		{"tickflake NextN, 1024 at a time", results.Ours, 1.2, ""},
		{"tickflake Stream", results.Ours, 31, ""},
		{"tickflake All, the iterator", results.Ours, 39, ""},
		{"bwmarrin/snowflake", results.Peers, 244, "at its ceiling: 4096 per ms"},
		{"sony/sonyflake, defaults", results.Peers, 38500, "at its ceiling: 256 per 10 ms"},
		{"sony/sonyflake, widest sequence that its settings allow it to have", results.Peers, 73, ""},
		{"rs/xid", results.Peers, 64, ""},
		{"segmentio/ksuid", results.Peers, 158, ""},
		{"oklog/ulid", results.Peers, 102, ""},
		{"google/uuid v4", results.Peers, 96, ""},
		{"google/uuid v7", results.Peers, 182, ""},
		{"MongoDB ObjectID", results.Peers, 63, ""},
	} {
		allocs := results.Cell{Samples: []float64{float64(i % 2), float64(i % 2)}}
		t.Rows = append(t.Rows, results.Row{Name: c.name, Group: c.group, Note: c.note,
			Cells: []results.Cell{m.cell(10, c.ns, 0.04), allocs, {Text: fmt.Sprint(64 * (1 + i%2))}}})
	}
	s.Tables = []results.Table{t}
	s.Charts = []results.Chart{{ID: "cost", Title: "Time per ID, one goroutine", Kind: results.Bars, Table: "cost", Columns: []string{"ns"}, YLabel: "nanoseconds per ID", LogY: true}}
	s.Verdict = []string{"`Next` costs 1.12 times the floor; the fastest peer of any width, MongoDB ObjectID, 1.9 times.", "A peer wins nowhere in this table."}
	s.Targets = []results.Target{
		{ID: "next-floor", Text: "`Next` at most 1.25 × the floor", Unit: "×", Want: 1.25, AtMost: true, Got: m.cell(10, 1.12, 0.02)},
		{ID: "next-peer", Text: "`Next` at least 1.5 × faster than the fastest peer of any width", Unit: "×", Want: 1.5, Got: m.cell(10, 1.7, 0.03)},
		{ID: "nextn-peer", Text: "`NextN` at least 20 × faster per ID than the fastest peer", Unit: "×", Want: 20, Got: m.cell(10, 52, 0.05)},
	}
	return s
}

func (m *maker) ceiling() results.Section {
	s := section("ceiling", "At the ceiling", "IDs are asked for without a pause from the default layout, which has 4096 per millisecond.")
	t := results.Table{ID: "ceiling", Title: "At 4096 per millisecond", RowName: "case", Columns: []results.Column{
		{ID: "share1", Title: "1 goroutine", Unit: "%", Better: results.More, X: 1}, {ID: "share8", Title: "8 goroutines", Unit: "%", Better: results.More, X: 8}, {ID: "share64", Title: "64 goroutines", Unit: "%", Better: results.More, X: 64},
		{ID: "cpu", Title: "processor time", Unit: "ns/ID", Better: results.Less}, {ID: "cores", Title: "cores", Better: results.Less}}}
	for _, c := range []struct {
		name       string
		group      results.Group
		share, cpu float64
	}{{"tickflake", results.Ours, 99.9, 61}, {"bwmarrin/snowflake", results.Peers, 100, 247}, {"time.Sleep until the next tick", results.Floor, 83, 50}} {
		t.Rows = append(t.Rows, results.Row{Name: c.name, Group: c.group, Cells: []results.Cell{
			m.cell(5, c.share, 0.001), m.cell(5, c.share*0.998, 0.002), m.cell(5, c.share*0.99, 0.004), m.cell(5, c.cpu, 0.02), m.cell(5, c.cpu/244, 0.02)}})
	}
	s.Tables = []results.Table{t}
	s.Charts = []results.Chart{{ID: "ceiling", Title: "Share of the ceiling", Kind: results.Bars, Table: "ceiling", Columns: []string{"share1", "share8", "share64"}, YLabel: "% of 4096 IDs per ms"}}
	s.Verdict = []string{"tickflake reaches 99.9% of the ceiling with a quarter of bwmarrin/snowflake's processor time; bwmarrin/snowflake comes 0.1% nearer to it."}
	s.Targets = []results.Target{{ID: "ceiling-cpu", Text: "at most a third of bwmarrin/snowflake's processor time per ID", Unit: "%", Want: 33.3, AtMost: true, Got: m.cell(5, 25, 0.03)}}
	return s
}

func (m *maker) scaling() results.Section {
	s := section("scaling", "Scaling", "Goroutines share one generator, or have several between them.")
	t := results.Table{ID: "scaling", Title: "IDs per second", RowName: "case"}
	for _, n := range []int{1, 2, 4, 8, 16, 32, 64} {
		t.Columns = append(t.Columns, results.Column{ID: fmt.Sprintf("g%d", n), Title: fmt.Sprint(n), Unit: "million/s", Better: results.More, X: float64(n)})
	}
	for i, c := range []struct {
		name  string
		group results.Group
		rate  float64
	}{{"clock read and atomic addition", results.Floor, 31}, {"tickflake, one generator", results.Ours, 27}, {"tickflake, streams", results.Ours, 33}, {"tickflake, a generator per goroutine", results.Ours, 29},
		{"rs/xid", results.Peers, 15}, {"sony/sonyflake", results.Peers, 13}, {"google/uuid v4", results.Peers, 10}, {"oklog/ulid", results.Peers, 9}} {
		row := results.Row{Name: c.name, Group: c.group}
		for k := range t.Columns {
			factor := 1 + 0.85*math.Min(1, float64(k))*float64(i%3)/2 - 0.3*math.Min(1, float64(k))
			row.Cells = append(row.Cells, m.cell(6, c.rate*factor, 0.08))
		}
		t.Rows = append(t.Rows, row)
	}
	s.Tables = []results.Table{t}
	s.Charts = []results.Chart{{ID: "scaling", Title: "IDs per second with the number of goroutines", Kind: results.Lines, Table: "scaling", XLabel: "goroutines", YLabel: "million IDs per second", LogX: true}}
	s.Verdict = []string{"Two streams on two cores issue 1.8 times as many IDs as one."}
	s.Notes = []string{"The machine has two cores: beyond two goroutines, nothing can be gained."}
	return s
}

func (m *maker) latency() results.Section {
	s := section("latency", "Latency at a fixed rate", "IDs are asked for on a schedule that does not wait for answers, so a stall is seen by every call that it held up.")
	for i, rate := range []string{"10k", "100k", "1m"} {
		t := results.Table{ID: "latency-" + rate, Title: "Latency at " + rate + " per second", RowName: "case"}
		for _, p := range []float64{50, 90, 99, 99.9, 99.99} {
			t.Columns = append(t.Columns, results.Column{ID: fmt.Sprintf("p%g", p), Title: fmt.Sprintf("p%g", p), Unit: "µs", Better: results.Less, X: 100 / (100 - p)})
		}
		for _, c := range []struct {
			name  string
			group results.Group
			us    float64
		}{{"empty loop", results.Floor, 0.04}, {"tickflake Next", results.Ours, 0.09}, {"bwmarrin/snowflake", results.Peers, 0.12}} {
			row := results.Row{Name: c.name, Group: c.group}
			for k := range t.Columns {
				row.Cells = append(row.Cells, m.cell(4, c.us*math.Pow(5, float64(k))*float64(i+1), 0.3))
			}
			t.Rows = append(t.Rows, row)
		}
		s.Tables = append(s.Tables, t)
		s.Charts = append(s.Charts, results.Chart{ID: "latency-" + rate, Title: t.Title, Kind: results.Lines, Table: t.ID, XLabel: "percentile", YLabel: "microseconds", LogX: true, LogY: true})
	}
	s.Verdict = []string{"At a million IDs per second p99.9 is 2.4 times that of the empty loop."}
	s.Targets = []results.Target{
		{ID: "p999", Text: "p99.9 at 1M IDs/s at most 2 × that of the empty loop", Unit: "×", Want: 2, AtMost: true, Got: m.cell(4, 2.4, 0.1), Why: "The hypervisor took the processor away for milliseconds, in both."},
		{ID: "open", Text: "p99.99 at 1M IDs/s at most 3 × that of the empty loop", Unit: "×", Want: 3, AtMost: true, Open: "fewer than 10 calls were beyond p99.99 in a quick run"},
	}
	return s
}

func (m *maker) faults() results.Section {
	s := section("faults", "Strategies and peers under faults", "Every strategy, and every peer that can be driven by a clock, meets the 20 faults of the catalogue in virtual time.")
	t := results.Table{ID: "faults", Title: "Score card", RowName: "generator"}
	for i := range 20 {
		t.Columns = append(t.Columns, results.Column{ID: fmt.Sprintf("f%d", i+1), Title: fmt.Sprintf("F%d", i+1)})
	}
	names := []string{"tickflake, Reject", "tickflake, WaitUpTo(5ms)", "tickflake, BorrowUpTo(1s)", "tickflake, Chain(BorrowUpTo(1s), WaitUpTo(5s))", "tickflake, Twitter", "tickflake, Leaf", "tickflake, Wait", "tickflake, LastTimestampPlusOne", "tickflake, Default",
		"bwmarrin/snowflake", "sony/sonyflake", "google/uuid v7", "gofrs/uuid v7", "oklog/ulid", "rs/xid", "MongoDB ObjectID", "segmentio/ksuid"}
	for i, name := range names {
		row := results.Row{Name: name, Group: results.Ours}
		if i >= 9 {
			row.Group, row.Note = results.Peers, "in a bubble"
		}
		for range t.Columns {
			switch c := m.IntN(10); {
			case c == 0:
				row.Cells = append(row.Cells, results.Cell{})
			case c < 3 && i >= 9:
				row.Cells = append(row.Cells, results.Cell{Text: fmt.Sprintf("%d duplicates", 1+m.IntN(900)), Mark: results.Bad})
			case c < 5:
				row.Cells = append(row.Cells, results.Cell{Text: "stall 1s"})
			default:
				row.Cells = append(row.Cells, results.Cell{Text: "kept", Mark: results.Good})
			}
		}
		t.Rows = append(t.Rows, row)
	}
	stalls := results.Table{ID: "stalls", Title: "Longest stall", RowName: "generator", Columns: []results.Column{{ID: "stall", Title: "longest stall", Unit: "ms", Better: results.Less}}}
	for i, name := range names[:6] {
		stalls.Rows = append(stalls.Rows, results.Row{Name: name, Group: results.Ours, Cells: []results.Cell{{Samples: []float64{float64(i * i)}}}})
	}
	stalls.Rows[5].Cells[0] = results.Cell{Text: "for ever", Mark: results.Bad}
	s.Tables = []results.Table{t, stalls}
	s.Charts = []results.Chart{{ID: "stalls", Title: "Longest stall under a step back", Kind: results.Bars, Table: "stalls"}}
	s.Verdict = []string{"No tickflake strategy issued a duplicate; 5 of 8 peers did."}
	return s
}

func (m *maker) waste() results.Section {
	s := section("waste", "IDs wasted, and their spread", "How many slots a generator leaves unused at the tick's end, and how low-rate IDs fall modulo 2 and 16.")
	t := results.Table{ID: "waste", Title: "Spread of low-rate IDs", RowName: "sequence start", Columns: []results.Column{{ID: "even", Title: "even", Unit: "%"}, {ID: "chi", Title: "χ² modulo 16", Better: results.Less}}}
	t.Rows = []results.Row{
		{Name: "zero", Group: results.Ours, Cells: []results.Cell{{Samples: []float64{100, 100, 100}, Mark: results.Bad}, {Samples: []float64{-0.5, 15000, 15001}, Mark: results.Bad}}},
		{Name: "random | 0 to 100 <or so>", Group: results.Ours, Cells: []results.Cell{{Samples: []float64{49.8, 50.1, 50.3}, Mark: results.Good}, {Samples: []float64{14, 16, 12}, Mark: results.Good}}},
	}
	s.Tables = []results.Table{t}
	return s
}

func (m *maker) ways() results.Section {
	s := section("ways", "Other ways to make an ID", "Each in its ordinary use, against real servers on this machine.")
	s.Skipped = "no server is installed: postgres, mariadbd, redis-server and zkServer.sh were not found; to fill it: apt-get install postgresql mariadb-server redis-server zookeeper"
	return s
}

func (m *maker) index() results.Section {
	s := section("index", "Index friendliness", "A million rows are inserted, keyed by each kind of ID.")
	t := results.Table{ID: "index", Title: "PostgreSQL", RowName: "key", Base: "UUIDv4", Columns: []results.Column{{ID: "rows", Title: "rows", Unit: "per second", Better: results.More}, {ID: "size", Title: "index", Unit: "MiB", Better: results.Less}, {ID: "splits", Title: "page splits", Better: results.Less}}}
	for _, c := range []struct {
		name   string
		group  results.Group
		factor float64
	}{{"tickflake", results.Ours, 1}, {"UUIDv4", results.Peers, 2.4}, {"UUIDv7", results.Peers, 1.6}, {"auto-increment", "", 0.96}} {
		t.Rows = append(t.Rows, results.Row{Name: c.name, Group: c.group, Cells: []results.Cell{m.cell(4, 85000/c.factor, 0.03), m.cell(4, 21*c.factor, 0.001), {}}})
	}
	s.Tables = []results.Table{t}
	s.Charts = []results.Chart{{ID: "index-rows", Title: "Rows per second", Kind: results.Bars, Table: "index", Columns: []string{"rows"}}, {ID: "index-splits", Title: "Page splits", Kind: results.Bars, Table: "index", Columns: []string{"splits"}}}
	s.Notes = []string{"Page splits: this server's version does not tell."}
	return s
}
