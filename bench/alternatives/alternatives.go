// Package alternatives measures the other ways to make an ID, against real servers: sequences,
// auto-increments, tickets, counters and segments, and beside them tickflake's time-ordered
// IDs under a lease in the same server, and its sequences in both modes.
package alternatives

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/tickflake/tickflake/bench/measure"
	"github.com/tickflake/tickflake/bench/report"
	"github.com/tickflake/tickflake/integration/fleet"
	"github.com/tickflake/tickflake/integration/servers"
	"github.com/tickflake/tickflake/sequence"
)

// Sections returns the section.
func Sections() []measure.Section {
	return []measure.Section{{ID: "ways", Title: "The other ways to make an ID", Full: 70 * time.Second, Quick: 3 * time.Second,
		About: "Each way makes IDs against a server on this machine, with one client and with two, which have their own connections and share nothing else. " +
			"A client asks for one ID after the other; where a second table has the way, 1,000 goroutines ask one client at the same time as well. " +
			"A client of a database has one connection. The ways take turns of a fraction of a second, in random order, after a turn that does not count. " +
			"The servers have their default settings: PostgreSQL, MariaDB and ZooKeeper sync what they acknowledge, Redis does not, and a second Redis has appendfsync always. " +
			"At the end all IDs of a way are searched for any that is there twice.",
		Measure: measureWays}}
}

// way is one way to make IDs.
type way struct {
	name   string
	group  report.Group // "" is that of the peers
	note   string       // what an ID costs the server
	needs  []place
	crowd  bool   // it is measured with many callers as well
	ticks  bool   // it has a ceiling per tick, of which a turn is a whole number
	schema string // what the clients share, on each database
	// open makes a client. Clients share the servers and nothing else, as processes do.
	// ctx is that of the whole section.
	open opener

	clients []*client
	err     error // why it is not measured
	issued  fleet.Ledger
}

// client makes IDs, as one process does.
type client struct {
	next  func(context.Context) (int64, error)
	close func() error
	ids   []int64 // of a turn
}

// place is the part of a server in the section.
type place int

const (
	postgres place = iota
	maria
	secondMaria // for the tickets, which come from two
	redisAsShipped
	redisSynced
	zooKeeper
)

var wanted = []servers.Wanted{
	postgres:       {Kind: servers.PostgreSQL},
	maria:          {Kind: servers.MariaDB},
	secondMaria:    {Kind: servers.MariaDB},
	redisAsShipped: {Kind: servers.Redis},
	redisSynced:    {Kind: servers.Redis, Settings: []string{"--appendonly", "yes", "--appendfsync", "always"}},
	zooKeeper:      {Kind: servers.ZooKeeper},
}

const (
	callers = 1000    // of a crowd
	tick    = 1 << 12 // IDs of the default layout
)

func measureWays(ctx context.Context, run *measure.Run) (s report.Section) {
	started, stop := servers.All(ctx, wanted...)
	defer func() { _ = stop() }() // on a panic
	run.Until = run.Until.Add(-measure.Pick(run, 500*time.Millisecond, 2*time.Second))
	for _, server := range started {
		note := fmt.Sprintf("%s %s.", server.Kind, server.Version)
		if server.Err != nil {
			note = fmt.Sprintf("%s does not run here, so its ways are not measured: %s.", server.Kind, servers.Reason(server.Err))
		}
		if !slices.Contains(s.Notes, note) {
			s.Notes = append(s.Notes, note)
		}
	}
	if !slices.ContainsFunc(started, func(s *servers.Server) bool { return s.Err == nil }) {
		s.Skipped = "No server runs here."
		return s
	}
	ways := list()
	var loads []*measure.Load
	for _, w := range ways {
		loads = append(loads, w.start(ctx, run, started)...)
	}
	for _, r := range rivals {
		if base := measure.Find(loads, r.theirs, "1"); base.Turn != nil {
			measure.Find(loads, sequenceName(r.server, sequence.Ordered), "crowd").Base = base
		}
	}
	run.Measure(ctx, measure.Pick(run, 1, 3), 0, loads...)
	for _, w := range ways {
		for _, c := range w.clients {
			if err := c.close(); err != nil && ctx.Err() == nil {
				s.Note("Closing %s failed: %s.", w.name, servers.Reason(err))
			}
		}
	}
	if err := stop(); err != nil {
		s.Note("Stopping the servers failed: %v.", err)
	}
	s.Tables, s.Targets = tables(ways, loads), targets(loads)
	return s
}

// start gets the way ready, and makes loads of one client, of two, and of a crowd.
func (w *way) start(ctx context.Context, run *measure.Run, started []*servers.Server) (loads []*measure.Load) {
	var on []*servers.Server
	w.group = cmp.Or(w.group, report.Peers)
	for _, p := range w.needs {
		on, w.err = append(on, started[p]), errors.Join(w.err, started[p].Err)
	}
	for _, s := range on {
		var db *sql.DB
		if w.err != nil || w.schema == "" {
			break
		}
		if db, w.err = s.SQL(nil); w.err == nil {
			_, err := db.ExecContext(ctx, w.schema)
			w.err = errors.Join(err, db.Close())
		}
	}
	for n := 0; n < 2 && w.err == nil; n++ {
		c, err := w.open(ctx, on, n)
		if w.err = err; err == nil {
			w.clients = append(w.clients, &c)
		}
	}
	if w.err != nil {
		return nil
	}
	load := func(at string, unit int, do func(ctx context.Context, n int) error, by ...*client) {
		b := &measure.Batch{Unit: unit, LeadIn: measure.Pick(run, -1, 0), Most: measure.Pick(run, 10, 24) * tick, Target: measure.Pick(run, 15*time.Millisecond, 60*time.Millisecond)}
		if w.ticks {
			b.LeadIn = unit
		}
		b.Do = []measure.Do{func(ctx context.Context, n int) (measure.Figures, error) {
			for _, c := range by {
				c.ids = slices.Grow(c.ids[:0], n)[:n]
			}
			began := time.Now()
			err := do(ctx, n)
			took := time.Since(began)
			for _, c := range by {
				slices.Sort(c.ids) // runs of numbers take less room
				w.issued.Add(w.name, 0, 0, c.ids...)
			}
			return measure.Figures{"wall": float64(took) / float64(max(n, 1))}, err
		}}
		loads = append(loads, &measure.Load{Row: w.name, At: at, Group: w.group, Turn: b.Turn, Served: len(w.needs) > 0})
	}
	unit, one, two := 1, w.clients[0], w.clients[1]
	if w.ticks {
		unit = tick
	}
	load("1", unit, one.take, one)
	load("2", unit, func(ctx context.Context, n int) error {
		return measure.Together(2, func(i int) error { return w.clients[i].take(ctx, n) })
	}, one, two)
	if w.crowd {
		load("crowd", callers, one.rush, one)
	}
	return loads
}

// take takes n IDs, one after the other.
func (c *client) take(ctx context.Context, n int) (err error) {
	for i := range n {
		if c.ids[i], err = c.next(ctx); err != nil {
			c.ids = c.ids[:i]
			return err
		}
	}
	return nil
}

// rush has a crowd take n IDs between them.
func (c *client) rush(ctx context.Context, n int) error {
	var taken atomic.Int64
	err := measure.Together(callers, func(int) (err error) {
		for at := taken.Add(1); at <= int64(n) && err == nil; at = taken.Add(1) {
			c.ids[at-1], err = c.next(ctx)
		}
		return err
	})
	if err != nil {
		c.ids = nil // some are missing
	}
	return err
}

func tables(ways []*way, loads []*measure.Load) []report.Table {
	micros := func(ns float64) float64 { return ns / 1e3 }
	t := report.Table{ID: "ways", Title: "Time per ID", RowName: "way", Base: aloneName, Columns: []report.Column{
		{ID: "1", Title: "1 client", Unit: "µs/ID", Better: report.Less},
		{ID: "2", Title: "2 clients", Unit: "µs/ID", Better: report.Less},
		{ID: "rate", Title: "2 clients together", Unit: "IDs/s", Better: report.More},
		{ID: "twice", Title: "IDs there twice"},
	}}
	crowd := report.Table{ID: "crowd", Title: "1,000 callers of one client", RowName: "way", Detail: true, Columns: []report.Column{
		{ID: "rate", Title: "together", Unit: "IDs/s", Better: report.More},
	}}
	for _, w := range ways {
		one, two, many := measure.Find(loads, w.name, "1"), measure.Find(loads, w.name, "2"), measure.Find(loads, w.name, "crowd")
		row := report.Row{Name: w.name, Group: w.group, Note: w.note, Cells: []report.Cell{
			one.Of("wall", micros), two.Of("wall", micros), two.Of("wall", func(ns float64) float64 { return 2e9 / ns }), {},
		}}
		if err := errors.Join(w.err, one.Err, two.Err, many.Err); err != nil {
			row.Note = "not measured, or not to the end: " + servers.Reason(err)
		}
		if n, _ := w.issued.Count(); n > 0 {
			row.Cells[3] = report.Cell{Text: "none of " + report.Figure(float64(n)), Mark: report.Good}
			if again, example := w.issued.Twice(); again > 0 {
				row.Cells[3] = report.Cell{Text: report.Figure(float64(again)) + " of " + report.Figure(float64(n)), Mark: report.Bad}
				row.Note = example
			}
		}
		t.Rows = append(t.Rows, row)
		if w.crowd {
			crowd.Rows = append(crowd.Rows, report.Row{Name: w.name, Group: w.group, Cells: []report.Cell{many.Of("wall", func(ns float64) float64 { return 1e9 / ns })}})
		}
	}
	said := ". No other way is measurably faster"
	if faster := t.Ahead(aloneName, "1"); len(faster) > 0 {
		said = ". Measurably faster: " + report.List(faster)
	}
	for _, r := range t.Rows {
		if t.Cell(r.Name, "twice").Mark == report.Bad {
			said += ". " + r.Name + " issued IDs twice"
		}
	}
	t.Say("tickflake takes %s µs per ID, the ceiling of its layout%s.", t.Cell(aloneName, "1"), said)
	crowd.Say("In PostgreSQL, its segmented sequence takes %s µs per number, and its ordered sequence gives 1,000 callers %s numbers per second.",
		t.Cell(sequenceName("PostgreSQL", sequence.Segmented), "1"), crowd.Cell(sequenceName("PostgreSQL", sequence.Ordered), "rate"))
	return []report.Table{t, crowd}
}

// rivals are the numbers that servers count by themselves, with which the ordered mode is compared: a crowd with a
// single caller. Both are committed when the caller has them, which a number of nextval is not.
var rivals = []struct {
	server, theirs, text string
	want                 float64
}{
	{"PostgreSQL", postgresRows, "rows with auto-increment that are committed one after the other", 40},
	{"ZooKeeper", sequentialNodes, "sequential nodes that are made one after the other", 300},
}

// targets hold the ordered mode to its speed.
func targets(loads []*measure.Load) (all []report.Target) {
	for _, r := range rivals {
		ours := measure.Find(loads, sequenceName(r.server, sequence.Ordered), "crowd")
		all = append(all, ours.Pair("wall").Rates().Judge(report.Target{ID: "ways-ordered-" + strings.ToLower(r.server), Unit: "×", Want: r.want,
			Text: fmt.Sprintf("Ordered sequence in %s, 1,000 callers: at least %s× %s", r.server, report.Figure(r.want), r.text)}))
	}
	return all
}
