package ways

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tickflake/tickflake/bench/results"
	"github.com/tickflake/tickflake/bench/servers"
)

const about = "Each way makes IDs against a real server, in its ordinary use, with one client and with two, " +
	"each of which has its own connections and shares nothing else with the other, as two processes would. " +
	"A client asks for one ID after the other. The ways take turns of a fraction of a second, in random order, again and again, after a turn that does not count. " +
	"The time is what a client waits for an ID on average. " +
	"At the end all IDs of a way, of all turns and clients, are sorted and searched for any that is there twice."

// report makes the section of what was measured.
func report(r running, subjects []*subject) results.Section {
	section := results.Section{ID: "ways", Title: "The other ways to make an ID", About: about, Command: "go run ./bench --only ways"}
	section.Notes = notes(r)
	if !r.any() {
		section.Skipped = "No server runs here."
		return section
	}
	table := results.Table{ID: "ways", Title: "Time per ID", RowName: "way", Base: aloneName, Columns: []results.Column{
		{ID: "1", Title: "1 client", Unit: "µs/ID", Better: results.Less},
		{ID: "2", Title: "2 clients", Unit: "µs/ID", Better: results.Less},
		{ID: "rate", Title: "2 clients together", Unit: "IDs/s", Better: results.More},
		{ID: "twice", Title: "IDs there twice"},
		{ID: "digits", Title: "Digits of the greatest"},
		{ID: "published", Title: "Published by others, on other machines"},
	}}
	for _, s := range subjects {
		table.Rows = append(table.Rows, s.row())
		if s.err != nil && r.missing(s.way) == nil {
			section.Notes = append(section.Notes, fmt.Sprintf("%s failed: %v.", s.name, s.err))
		}
	}
	section.Tables = []results.Table{table}
	section.Charts = []results.Chart{{ID: "ways", Title: "Time per ID", Kind: results.Bars, Table: "ways",
		Columns: []string{"1", "2"}, YLabel: "µs per ID", LogY: true}}
	section.Verdict = verdict(&table, subjects)
	return section
}

// row is what was found about a way.
func (s *subject) row() results.Row {
	row := results.Row{Name: s.name, Group: s.group, Note: s.note, Cells: []results.Cell{
		{Samples: s.perID[1]}, {Samples: s.perID[2]}, {Samples: s.rate[2]}, {}, {}, {Text: s.published},
	}}
	if s.err != nil {
		row.Note = "not measured, or not to the end: " + servers.Reason(s.err)
	}
	if s.group == results.Floor || len(s.ids) == 0 {
		return row
	}
	row.Cells[3] = results.Cell{Text: fmt.Sprintf("none of %s", results.Figure(float64(len(s.ids)))), Mark: results.Good}
	if s.again > 0 {
		row.Cells[3] = results.Cell{Text: fmt.Sprintf("%s of %s", results.Figure(float64(s.again)), results.Figure(float64(len(s.ids)))), Mark: results.Bad}
	}
	row.Cells[4] = results.Cell{Samples: []float64{float64(digits(s.ids))}}
	return row
}

// digits is how many digits the greatest of the IDs has.
func digits(ids []int64) int { return len(fmt.Sprint(slices.Max(ids))) }

// notes says what ran, and what did not, and why.
func notes(r running) []string {
	var versions, out []string
	for _, s := range r {
		if s.Err == nil {
			versions = append(versions, fmt.Sprintf("%s %s", s.Kind, s.Version))
			continue
		}
		out = append(out, fmt.Sprintf("%s does not run here, so its ways are not measured: %s.", s.Kind, servers.Reason(s.Err)))
	}
	slices.Sort(out)
	out = slices.Compact(out)
	if len(versions) == 0 {
		return out
	}
	return append([]string{
		"Servers: " + strings.Join(slices.Compact(versions), ", ") + ", each on this machine and reached over the loopback interface, where a request takes far less than over a network.",
		"They have the settings that their makers ship, with which PostgreSQL, MariaDB and ZooKeeper sync what they acknowledge. Redis as shipped does not, so there is a second one, with appendfsync always; the lease in Redis is kept there.",
		"Their data is in /var/tmp, or where TMPDIR says. If that is in memory, a sync costs nothing, which the row \"" + floorName + "\" shows.",
		"The segments are kept behind a mutex, so that goroutines can share them, as they can share a tickflake generator.",
	}, out...)
}
