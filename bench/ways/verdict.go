package ways

import (
	"fmt"
	"math"
	"strings"

	"github.com/tickflake/tickflake/bench/results"
)

// verdict says what the table comes to.
func verdict(table *results.Table, subjects []*subject) []string {
	var out []string
	for _, server := range []string{"PostgreSQL", "MariaDB", "Redis", "ZooKeeper"} {
		out = append(out, besideLease(table, server)...)
	}
	out = append(out, fasterPeers(table)...)
	out = append(out, shortest(table)...)
	return append(out, unique(subjects)...)
}

// besideLease compares tickflake under a lease in a server with what asks that server
// for IDs.
func besideLease(table *results.Table, server string) []string {
	ours := table.Cell(leasedName(server), "1").Median()
	if math.IsNaN(ours) {
		return nil
	}
	var others []string
	for _, row := range table.Rows {
		if row.Group != results.Peers || !strings.Contains(row.Name, server) {
			continue
		}
		if theirs := row.Cells[0].Median(); theirs > ours {
			others = append(others, fmt.Sprintf("%s %s", row.Name, times(theirs/ours)))
		}
	}
	if len(others) == 0 {
		return nil
	}
	line := fmt.Sprintf("tickflake under a lease in %s takes %s µs per ID", server, results.Figure(ours))
	if alone := table.Cell(aloneName, "1").Median(); !math.IsNaN(alone) {
		line += fmt.Sprintf(" (%s without any server)", results.Figure(alone))
	}
	return []string{line + "; beside it, an ID takes longer with " + strings.Join(others, ", ") + "."}
}

func times(ratio float64) string {
	return fmt.Sprintf("(%s×)", results.Figure(ratio))
}

// fasterPeers says which peers beat tickflake, which is at the ceiling of its layout, as
// far as the repeats tell.
func fasterPeers(table *results.Table) []string {
	ours := table.Cell(aloneName, "1")
	var faster, unsure []string
	for _, row := range table.Rows {
		d, ok := row.Cells[0].Against(ours)
		if row.Group != results.Peers || !ok || !(d.Ratio < 1) {
			continue
		}
		text := fmt.Sprintf("%s (%s µs)", row.Name, results.Figure(row.Cells[0].Median()))
		if d.Significant() {
			faster = append(faster, text)
		} else {
			unsure = append(unsure, text)
		}
	}
	const ceiling = "default layout ends at 4,096 IDs per millisecond and node, 0.2441 µs each"
	var out []string
	switch {
	case len(ours.Samples) == 0:
		return nil
	case len(faster) > 0:
		out = append(out, fmt.Sprintf("Faster than tickflake's %s µs: %s. tickflake's %s; large segments have no such end.",
			results.Figure(ours.Median()), strings.Join(faster, ", "), ceiling))
	case len(unsure) == 0:
		return []string{"No other way makes IDs faster than tickflake, whose " + ceiling + "."}
	}
	if len(unsure) > 0 {
		out = append(out, fmt.Sprintf("Less than tickflake's %s µs, but so few or so different repeats may show that by chance: %s.",
			results.Figure(ours.Median()), strings.Join(unsure, ", ")))
	}
	return out
}

// shortest says how short the numbers of the others are.
func shortest(table *results.Table) []string {
	ours := table.Cell(aloneName, "digits").Median()
	theirs := 0.0
	for _, row := range table.Rows {
		if n := table.Cell(row.Name, "digits").Median(); row.Group == results.Peers && n > theirs {
			theirs = n
		}
	}
	if theirs == 0 || !(theirs < ours) {
		return nil
	}
	return []string{fmt.Sprintf("Numbers that are counted stay short: the greatest that any other way made here has %s digits, those of tickflake %s. "+
		"And where a row is inserted anyway, the time of an auto-increment here is that of the insert, which is paid in any case; but the ID is known only afterwards.",
		results.Figure(theirs), results.Figure(ours))}
}

// unique says whether all IDs were.
func unique(subjects []*subject) []string {
	var bad []string
	ids, ways := 0, 0
	for _, s := range subjects {
		if s.group == results.Floor || len(s.ids) == 0 {
			continue
		}
		ids += len(s.ids)
		ways++
		if s.again > 0 {
			bad = append(bad, fmt.Sprintf("%s issued %s IDs more than once", s.name, results.Figure(float64(s.again))))
		}
	}
	switch {
	case ways == 0:
		return nil
	case len(bad) > 0:
		return []string{strings.Join(bad, "; ") + "."}
	}
	return []string{fmt.Sprintf("None of the %d ways issued an ID twice, in %s IDs.", ways, results.Figure(float64(ids)))}
}
