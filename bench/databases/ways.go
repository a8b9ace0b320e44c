// Package databases has the sections of the report that need the servers of stores: the other ways to make an ID, IDs for
// old rows, and what kinds of primary keys cost.
package databases

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/tickflake/tickflake/bench/measure"
	"github.com/tickflake/tickflake/bench/report"
	"github.com/tickflake/tickflake/integration/servers"
	"github.com/tickflake/tickflake/sequence"
)

// Sections returns the sections, in the order of the report.
func Sections() []measure.Section {
	return []measure.Section{waysSection(), oldSection(), indexSection()}
}

// waysSection measures sequences, auto-increments, tickets, counters and segments, and beside them tickflake's time-ordered
// IDs under a lease in the same server, and its sequences in both modes.
func waysSection() measure.Section {
	return measure.Section{ID: "ways", Title: "The other ways to make an ID", Full: 70 * time.Second, Quick: 3 * time.Second,
		About: "Each way makes IDs against a server on this machine, with one client and with two, which have their own connections and share nothing else. " +
			"A client asks for one ID after the other; some are asked by 1,000 goroutines at the same time as well. " +
			"A client of a database has one connection. The ways take turns of a fraction of a second, in random order, after a turn that does not count. " +
			"The servers have their default settings: PostgreSQL, MariaDB and ZooKeeper sync what they acknowledge, Redis does not, and a second Redis has appendfsync always.",
		Measure: measureWays}
}

// way is one way to make IDs.
type way struct {
	name   string
	group  report.Group    // "" is that of the peers
	note   string          // what an ID costs the server
	on     *servers.Server // nil: none
	crowd  bool            // it is measured with many callers as well
	ticks  bool            // it has a ceiling per tick, of which a turn is a whole number
	schema string          // what the clients share
	// open makes a client. Clients share the servers and nothing else, as processes do.
	// ctx is that of the whole section.
	open opener

	clients []client
}

// client makes IDs, as one process does.
type client struct {
	next  func(context.Context) (int64, error)
	close func() error
}

const (
	callers = 1000    // of a crowd
	tick    = 1 << 12 // IDs of the default layout
)

func measureWays(ctx context.Context, run *measure.Run) report.Section {
	return run.On(ctx, wanted, func(started []*servers.Server, s *report.Section) {
		ways := list(started)
		var loads []*measure.Load
		for _, w := range ways {
			if w.on == nil || w.on.Err == nil {
				loads = append(loads, w.start(ctx, run)...)
			}
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
		measure.Failed(s, loads)
		s.Tables, s.Targets = []report.Table{waysTable(loads)}, waysTargets(loads)
	})
}

// start gets the way ready, and makes loads of one client, of two, and of a crowd.
func (w *way) start(ctx context.Context, run *measure.Run) (loads []*measure.Load) {
	load := func(at string, unit int, do func(ctx context.Context, n int) error) {
		b := &measure.Batch{Unit: unit, LeadIn: measure.Pick(run, -1, 0), Most: measure.Pick(run, 10, 24) * tick, Target: measure.Pick(run, 15*time.Millisecond, 60*time.Millisecond)}
		if w.ticks {
			b.LeadIn = unit
		}
		b.Do = []measure.Do{func(ctx context.Context, n int) (measure.Figures, error) { return nil, do(ctx, n) }}
		loads = append(loads, &measure.Load{Row: w.name, At: at, Group: cmp.Or(w.group, report.Peers), Note: w.note, Turn: b.Turn})
	}
	unit := 1
	if w.ticks {
		unit = tick
	}
	load("1", unit, func(ctx context.Context, n int) error { return w.clients[0].take(ctx, n) })
	load("2", unit, func(ctx context.Context, n int) error {
		return measure.Together(2, func(i int) error { return w.clients[i].take(ctx, n) })
	})
	if w.crowd {
		load("crowd", callers, func(ctx context.Context, n int) error { return w.clients[0].rush(ctx, n) })
	}
	if err := w.ready(ctx); err != nil {
		for _, l := range loads {
			l.Err = err
		}
	}
	return loads
}

// ready makes what the clients share, and the clients.
func (w *way) ready(ctx context.Context) error {
	if w.schema != "" {
		db, err := w.on.SQL(nil)
		if err != nil {
			return err
		}
		_, err = db.ExecContext(ctx, w.schema)
		if err = errors.Join(err, db.Close()); err != nil {
			return err
		}
	}
	for n := range 2 {
		c, err := w.open(ctx, w.on, n)
		if err != nil {
			return err
		}
		w.clients = append(w.clients, c)
	}
	return nil
}

// take takes n IDs, one after the other.
func (c client) take(ctx context.Context, n int) (err error) {
	for range n {
		if _, err = c.next(ctx); err != nil {
			return err
		}
	}
	return nil
}

// rush has a crowd take n IDs between them.
func (c client) rush(ctx context.Context, n int) error {
	var taken atomic.Int64
	return measure.Together(callers, func(int) (err error) {
		for taken.Add(1) <= int64(n) && err == nil {
			_, err = c.next(ctx)
		}
		return err
	})
}

func waysTable(loads []*measure.Load) report.Table {
	t := measure.Grid(report.Table{ID: "ways", Title: "Time per ID", RowName: "way", Base: aloneName, Columns: []report.Column{
		{ID: "1", Title: "1 client", Unit: "µs/ID", Better: report.Less},
		{ID: "2", Title: "2 clients together", Unit: "IDs/s", Better: report.More},
		{ID: "crowd", Title: "1,000 callers of one client", Unit: "IDs/s", Better: report.More},
	}}, loads, func(l *measure.Load) report.Cell {
		return l.Of("wall").By(func(ns float64) float64 {
			switch l.At {
			case "1":
				return ns / 1e3
			case "2":
				return 2e9 / ns
			}
			return 1e9 / ns
		})
	})
	said := "No other way is measurably faster"
	if faster := t.Ahead(aloneName, "1"); len(faster) > 0 {
		said = "Measurably faster: " + report.List(faster)
	}
	said = fmt.Sprintf("tickflake takes %s µs per ID, the ceiling of its layout. %s.", t.Cell(aloneName, "1"), said)
	t.Say("%s", said)
	t.Say("%s In PostgreSQL, its segmented sequence takes %s µs per number, and its ordered sequence gives 1,000 callers %s numbers per second.",
		said, t.Cell(sequenceName("PostgreSQL", sequence.Segmented), "1"), t.Cell(sequenceName("PostgreSQL", sequence.Ordered), "crowd"))
	return t
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

// waysTargets hold the ordered mode to its speed.
func waysTargets(loads []*measure.Load) (all []report.Target) {
	for _, r := range rivals {
		ours := measure.Find(loads, sequenceName(r.server, sequence.Ordered), "crowd")
		all = append(all, report.Target{ID: "ways-ordered-" + strings.ToLower(r.server), Unit: "×", Want: r.want, Got: ours.Pair("wall").By(report.Inverse),
			Text: fmt.Sprintf("Ordered sequence in %s, 1,000 callers: at least %s× %s", r.server, report.Figure(r.want), r.text)})
	}
	return all
}
