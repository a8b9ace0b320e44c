package speed

import (
	"fmt"

	"github.com/tickflake/tickflake/bench/results"
)

// Names of cases that sentences and targets are about.
const (
	nextName   = "Next"
	leasedName = "Next, under a lease"
	bulkName   = "NextN(1024)"
)

func (c costs) targets() []results.Target {
	peer := c.fastestPeer()
	return []results.Target{
		c.target(results.Target{ID: "cost-next", Text: "Next: at most 1.25× the floor", Unit: "×", Want: 1.25, AtMost: true}, nextName, c.floor, ""),
		c.target(results.Target{ID: "cost-peers", Text: "Next: at least 1.5× as fast as the fastest peer of any width", Unit: "×", Want: 1.5}, peer, nextName, c.room(peer, 1.5)),
		c.target(results.Target{ID: "cost-bulk", Text: "NextN(1024): at least 20× as fast per ID as the fastest peer", Unit: "×", Want: 20}, peer, bulkName, ""),
		c.target(results.Target{ID: "cost-lease", Text: "Next under a lease: at most 1.03× Next without one", Unit: "×", Want: 1.03, AtMost: true}, leasedName, nextName, ""),
	}
}

// target fills in how subject stands to base.
func (c costs) target(t results.Target, subject, base, reason string) results.Target {
	wall, cpu := c.ratios(subject, base)
	t.Got.Samples = wall
	return judged(t, cpu, reason)
}

// room says how little time Next would have to take to be so many times as fast as the
// peer, if that is less than a part of the floor above it.
func (c costs) room(peer string, factor float64) string {
	wall, _ := c.ratios(peer, c.floor)
	overFloor := results.Cell{Samples: wall}.Median()
	if needed := overFloor / factor; needed < 1.25 {
		return fmt.Sprintf("%s takes %s the floor itself: Next would have to take at most %s the floor, and its own target is 1.25×", peer, times(overFloor), times(needed))
	}
	return ""
}

func (c costs) verdict() []string {
	if !(c.ns(nextName) > 0 && c.ns(c.floor) > 0) {
		return nil
	}
	out := []string{fmt.Sprintf("Next takes %s ns per ID, %s the floor.", short(c.ns(nextName)), times(c.against(nextName, c.floor)))}
	out = append(out, c.peersVerdict()...)
	if x := c.against(leasedName, nextName); x > 0 {
		out = append(out, fmt.Sprintf("Under a lease, Next takes %s the time that it takes without one.", times(x)))
	}
	if names := c.capped(); len(names) > 0 {
		out = append(out, fmt.Sprintf("These ran at the ceiling of their formats, so their figures are not the cost of the code: %s.", list(names)))
	}
	return append(out, c.allocsVerdict())
}

// against is the median of how a case stands to another, or NaN.
func (c costs) against(subject, base string) float64 {
	wall, _ := c.ratios(subject, base)
	return results.Cell{Samples: wall}.Median()
}

func (c costs) peersVerdict() []string {
	peer := c.fastestPeer()
	if peer == "" {
		return nil
	}
	var out, faster, alike []string
	few := 0 // rounds, if they are too few for all
	for _, row := range c.table.Rows {
		if wall, _ := c.ratios(row.Name, nextName); row.Group == results.Peers && len(wall) > 0 {
			text := fmt.Sprintf("%s (%s the time)", row.Name, times(c.against(row.Name, nextName)))
			switch side(wall) {
			case -1:
				faster = append(faster, text)
			case 0:
				if s, _ := (results.Cell{Samples: wall}).Summary(); s.Whole {
					few = len(wall)
					continue
				}
				alike = append(alike, text)
			}
		}
	}
	if len(faster) > 0 {
		out = append(out, fmt.Sprintf("Faster than Next: %s.", list(faster)))
	}
	if len(alike) > 0 {
		out = append(out, fmt.Sprintf("Not to be told from Next by these rounds: %s.", list(alike)))
	}
	if few > 0 {
		out = append(out, fmt.Sprintf("Which peers are faster or slower than Next cannot be told from %d rounds. The fastest by their medians is %s with %s ns, %s the time.",
			few, peer, short(c.ns(peer)), times(c.against(peer, nextName))))
	}
	if len(faster)+len(alike)+few == 0 {
		out = append(out, fmt.Sprintf("No peer is as fast as Next. The fastest is %s with %s ns, %s the time.",
			peer, short(c.ns(peer)), times(c.against(peer, nextName))))
	}
	if c.widened[peer] {
		if second := c.fastest(func(name string) bool { return !c.widened[name] }); second != "" {
			out = append(out, fmt.Sprintf("Of the peers as they are imported, the fastest is %s with %s ns, %s the time of Next.",
				second, short(c.ns(second)), times(c.against(second, nextName))))
		}
	}
	if x := c.against(peer, bulkName); x > 0 {
		out = append(out, fmt.Sprintf("In bulk, NextN(1024) takes %s ns per ID: %s as fast as the fastest peer.",
			short(c.ns(bulkName)), times(x)))
	}
	return out
}

func (c costs) allocsVerdict() string {
	var names []string
	for _, row := range c.table.Rows {
		if c.table.Cell(row.Name, "allocs").Median() > 0 {
			names = append(names, row.Name)
		}
	}
	if len(names) == 0 {
		return "No case allocates memory."
	}
	return fmt.Sprintf("These allocate memory for each ID: %s.", list(names))
}
