package scorecard

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tickflake/tickflake/bench/peers"
	"github.com/tickflake/tickflake/bench/results"
)

// verdict says in words what the cells come to.
func verdict(rows []*row, all []fault) []string {
	var lines []string
	add := func(line string) {
		if line != "" {
			lines = append(lines, line)
		}
	}
	add(twice("Under a lease", of(rows, peers.Leased), all))
	add(twice("With a node number given by hand, on either clock", append(of(rows, peers.Mono), of(rows, peers.Raw)...), all))
	add(unmoved(of(rows, peers.Mono), all))
	add(raw(of(rows, peers.Raw), all))
	add(peersTwice(rows, all))
	add(peersFine(rows, all))
	add(peersAhead(rows, all))
	return lines
}

func of(rows []*row, in peers.Setting) []*row {
	return slices.DeleteFunc(slices.Clone(rows), func(r *row) bool { return r.strategy == nil || r.setting != in })
}

// twice says in which faults rows of tickflake issued IDs twice, and where those are.
func twice(where string, rows []*row, all []fault) string {
	ran := 0
	var bad []string
	for _, f := range all {
		tried, failed, most := 0, 0, 0
		for _, r := range rows {
			o, ok := r.ran(f)
			if !ok {
				continue
			}
			tried++
			if most = max(most, o.Duplicates); o.Duplicates > 0 {
				failed++
			}
		}
		if tried > 0 {
			ran++
		}
		if failed > 0 {
			bad = append(bad, fmt.Sprintf("%s %s (%d of %d rows, up to %s IDs)", f.id, f.name, failed, tried, count(most)))
		}
	}
	switch {
	case ran == 0:
		return ""
	case len(bad) == 0:
		return fmt.Sprintf("%s, no strategy issued an ID twice in any of %d faults.", where, ran)
	}
	return fmt.Sprintf("%s, no strategy issued an ID twice in %d of %d faults. IDs came twice in %s.", where, ran-len(bad), ran, strings.Join(bad, ", "))
}

// unmoved says which faults of the clock nobody notices on a monoclock.
func unmoved(rows []*row, all []fault) string {
	var faults []string
	for _, f := range all {
		if len(rows) > 0 && !f.rightly && !slices.ContainsFunc(rows, func(r *row) bool { return r.cell(f).Mark != results.Good }) {
			faults = append(faults, f.id)
		}
	}
	if len(faults) == 0 {
		return ""
	}
	return fmt.Sprintf("On a monoclock no caller noticed %s, whatever the strategy.", strings.Join(faults, ", "))
}

// raw says what the strategies make of a wall clock that goes wrong, F1 to F10.
func raw(rows []*row, all []fault) string {
	var served []string
	least, name := -1, ""
	for _, r := range rows {
		if slices.ContainsFunc(all[:10], func(f fault) bool { _, ok := r.ran(f); return !ok }) {
			return ""
		}
		var errors int
		var stall, lead time.Duration
		for _, f := range all[:10] {
			if o, ok := r.ran(f); ok {
				errors += o.Errors
				stall, lead = max(stall, o.LongestStall), max(lead, o.LargestLead)
			}
		}
		switch {
		case errors == 0:
			served = append(served, fmt.Sprintf("%s (longest stall %s, largest lead %s)", r.short, lasts(stall).Text, lasts(lead).Text))
		case least < 0 || errors < least:
			least, name = errors, r.short
		}
	}
	switch {
	case len(rows) == 0:
		return ""
	case len(served) == 0:
		return fmt.Sprintf("On a raw clock, in F1 to F10, calls failed with every strategy; the fewest, %s, with %s.", count(least), name)
	case name == "":
		return fmt.Sprintf("On a raw clock, in F1 to F10, no call failed with %s.", strings.Join(served, "; "))
	}
	return fmt.Sprintf("On a raw clock, in F1 to F10, no call failed with %s. Of the others, %s failed the fewest calls: %s.", strings.Join(served, "; "), name, count(least))
}

// peersTwice says which peers issued IDs twice.
func peersTwice(rows []*row, all []fault) string {
	var bad []string
	for _, r := range others(rows) {
		var faults []string
		for _, f := range all {
			if o, ok := r.ran(f); ok && o.Duplicates > 0 {
				faults = append(faults, f.id)
			}
		}
		if len(faults) > 0 {
			bad = append(bad, fmt.Sprintf("%s (%s)", r.Name, strings.Join(faults, ", ")))
		}
	}
	if len(bad) == 0 {
		return ""
	}
	return "Peers that issued IDs twice: " + strings.Join(bad, ", ") + "."
}

// peersFine says which peers did not, and in how many faults they could be run.
func peersFine(rows []*row, all []fault) string {
	var good []string
	for _, r := range others(rows) {
		ran, bad := 0, 0
		for _, f := range all {
			if _, ok := r.ran(f); !ok {
				continue
			}
			if ran++; r.cell(f).Mark == results.Bad {
				bad++
			}
		}
		if ran > 0 && bad == 0 {
			good = append(good, fmt.Sprintf("%s (%d)", r.Name, ran))
		}
	}
	if len(good) == 0 {
		return ""
	}
	return "Peers of which nothing went wrong in the faults that they could be run in, and in how many: " + strings.Join(good, ", ") + "."
}

// peersAhead says where a peer did better than tickflake as it comes: under a lease,
// with the default strategy.
func peersAhead(rows []*row, all []fault) string {
	i := slices.IndexFunc(rows, func(r *row) bool { return r.setting == peers.Leased && r.short == defaultName })
	if i < 0 {
		return ""
	}
	var where []string
	for _, f := range all {
		if _, ok := rows[i].ran(f); !ok || rows[i].cell(f).Mark == results.Good {
			continue
		}
		var names []string
		for _, r := range others(rows) {
			if r.cell(f).Mark == results.Good {
				names = append(names, r.Name+r.star(f))
			}
		}
		if len(names) > 0 {
			where = append(where, fmt.Sprintf("%s (%s, where tickflake has “%s”)", f.id, strings.Join(names, ", "), rows[i].cell(f).Text))
		}
	}
	if len(where) == 0 {
		return ""
	}
	return fmt.Sprintf("Where callers noticed %s, and nothing of a peer: %s.", rows[i].Name, strings.Join(where, "; "))
}

func others(rows []*row) []*row {
	return slices.DeleteFunc(slices.Clone(rows), func(r *row) bool { return r.strategy != nil })
}
