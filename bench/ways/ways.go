// Package ways measures the other ways to make an ID, against real servers: sequences,
// auto-increments, tickets, counters and segments, and beside them tickflake's time-ordered
// IDs under a lease in the same server, and its sequences in both modes.
package ways

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/tickflake/tickflake/bench/measure"
	"github.com/tickflake/tickflake/bench/results"
	"github.com/tickflake/tickflake/internal/rig/servers"
)

// Sections returns the section.
func Sections() []measure.Section {
	return []measure.Section{{ID: "ways", Title: "The other ways to make an ID", Full: 70 * time.Second, Quick: 3 * time.Second,
		About: "Each way makes IDs against a server on this machine, with one client and with two, which have their own connections and share nothing else. " +
			"A client asks for one ID after the other; where a second table has the way, 1,000 goroutines ask one client at the same time as well. " +
			"A client of a database has one connection. The ways take turns of a fraction of a second, in random order, after a turn that does not count. " +
			"The servers have their default settings: PostgreSQL, MariaDB and ZooKeeper sync what they acknowledge, Redis does not, and a second Redis has appendfsync always. " +
			"At the end all IDs of a way are searched for any that is there twice.",
		Measure: measureWays, Verdict: verdict}}
}

// way is one way to make IDs.
type way struct {
	name      string
	group     results.Group
	note      string // what an ID costs the server
	published string // what others have measured
	needs     []place
	crowd     bool // it is measured with many callers as well
	// setUp makes what the clients share, on the servers that the way needs. It may be
	// nil.
	setUp func(ctx context.Context, on []*servers.Server) error
	// open makes a client. Clients share the servers and nothing else, as processes do.
	// ctx is that of the whole section.
	open opener
}

// client makes IDs, as one process does.
type client struct {
	next  func(context.Context) (int64, error)
	close func() error
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

// closing is kept of the budget for checking the IDs and stopping the servers.
const closing = 2 * time.Second

func measureWays(ctx context.Context, run *measure.Run) results.Section {
	began := time.Now()
	if run.Progress != nil {
		run.Progress(0, 1, "starting servers")
	}
	started, stop := servers.All(ctx, wanted...)
	defer func() { _ = stop() }() // on a panic
	inner := *run
	inner.Budget -= closing
	if run.Quick {
		inner.Budget = run.Budget - closing/4
	}
	section := measureOn(ctx, &inner, began, started, list())
	if err := stop(); err != nil {
		section.Notes = append(section.Notes, fmt.Sprintf("Stopping the servers failed: %v.", err))
	}
	return section
}

// measureOn measures ways on servers that run.
func measureOn(ctx context.Context, run *measure.Run, began time.Time, r []*servers.Server, ways []way) results.Section {
	var s results.Section
	for _, server := range r {
		note := fmt.Sprintf("%s %s.", server.Kind, server.Version)
		if server.Err != nil {
			note = fmt.Sprintf("%s does not run here, so its ways are not measured: %s.", server.Kind, servers.Reason(server.Err))
		}
		if !slices.Contains(s.Notes, note) {
			s.Notes = append(s.Notes, note)
		}
	}
	if !slices.ContainsFunc(r, func(s *servers.Server) bool { return s.Err == nil }) {
		s.Skipped = "No server runs here."
		return s
	}
	var subjects []*subject
	for _, w := range ways {
		one := &subject{way: w}
		one.open(ctx, r)
		subjects = append(subjects, one)
	}
	measureAll(ctx, run, began, subjects)
	for _, one := range subjects {
		if err := one.close(); err != nil && ctx.Err() == nil {
			s.Notes = append(s.Notes, fmt.Sprintf("Closing %s failed: %s.", one.name, servers.Reason(err)))
		}
	}
	s.Tables = []results.Table{table(subjects)}
	if t := crowdTable(subjects); len(t.Rows) > 0 {
		s.Tables, s.Targets = append(s.Tables, t), crowdTargets(subjects)
	}
	return s
}

func table(subjects []*subject) results.Table {
	t := results.Table{ID: "ways", Title: "Time per ID", RowName: "way", Base: aloneName, Columns: []results.Column{
		{ID: "1", Title: "1 client", Unit: "µs/ID", Better: results.Less},
		{ID: "2", Title: "2 clients", Unit: "µs/ID", Better: results.Less},
		{ID: "rate", Title: "2 clients together", Unit: "IDs/s", Better: results.More},
		{ID: "twice", Title: "IDs there twice"},
		{ID: "digits", Title: "digits of the greatest"},
		{ID: "published", Title: "published by others"},
	}, Charts: []results.Chart{{ID: "ways", Title: "Time per ID, 1 client", Columns: []string{"1"}, YLabel: "µs per ID", LogY: true}}}
	for _, s := range subjects {
		row := results.Row{Name: s.name, Group: s.group, Note: s.note, Cells: []results.Cell{
			{Samples: s.perID[1]}, {Samples: s.perID[2]}, {Samples: s.rate[2]}, {}, {}, {Text: s.published},
		}}
		if s.err != nil {
			row.Note = "not measured, or not to the end: " + servers.Reason(s.err)
		}
		if s.group != results.Floor && len(s.ids) > 0 {
			all := results.Figure(float64(len(s.ids)))
			row.Cells[3] = results.Cell{Text: "none of " + all, Mark: results.Good}
			if s.again > 0 {
				row.Cells[3] = results.Cell{Text: results.Figure(float64(s.again)) + " of " + all, Mark: results.Bad}
			}
			row.Cells[4] = results.Cell{Samples: []float64{float64(len(fmt.Sprint(slices.Max(s.ids))))}}
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

func verdict(s results.Section) string {
	t := s.Table("ways")
	ours := t.Cell(aloneName, "1").Median()
	if !(ours > 0) {
		return ""
	}
	said := fmt.Sprintf("tickflake takes %s µs per ID", results.Figure(ours))
	if ours < 0.25 { // the default layout has 4,096 IDs per millisecond
		said += ", the ceiling of its layout"
	}
	if faster := t.Ahead(aloneName, "1"); len(faster) > 0 {
		said += "; faster: " + results.List(faster)
	} else {
		said += ", and no other way is measurably faster"
	}
	for _, r := range t.Rows {
		if t.Cell(r.Name, "twice").Mark == results.Bad {
			said += "; " + r.Name + " issued IDs twice"
		}
	}
	return said + countedVerdict(s) + "."
}

// countedVerdict says how fast the sequences are, in the server where each mode is fastest.
func countedVerdict(s results.Section) string {
	said := ""
	if server, us := best(s.Table("ways"), "1", segmented); server != "" {
		said += fmt.Sprintf("; its segmented sequence takes %s µs per number in %s", results.Figure(us), server)
	}
	if server, rate := best(s.Table("crowd"), "rate", ordered); server != "" {
		said += fmt.Sprintf("; its ordered sequence gives 1,000 callers %s numbers per second in %s", results.Figure(math.Round(rate)), server)
	}
	return said
}

// best returns the server whose sequence of a mode is best by the medians of a column.
func best(t *results.Table, column string, m mode) (server string, value float64) {
	for _, name := range sequenceServers {
		got := t.Cell(sequenceName(name, m), column).Median()
		if got > 0 && (server == "" || (got < value) == (m == segmented)) {
			server, value = name, got
		}
	}
	return server, value
}
