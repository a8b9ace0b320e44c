package main

import (
	"fmt"
	"strings"

	"github.com/tickflake/tickflake/snowflake"
)

// box is a run of bits in a diagram.
type box struct {
	name string
	bits int
}

// boxes returns the 64 bits of an ID, high ones first. The first box holds the
// sign and whatever the layout leaves unused, which are always 0.
func boxes(l snowflake.Layout) []box {
	all := []box{{"0", 64 - usedBits(l)}, {"time", l.TimeBits}}
	sequence := box{"sequence", l.SequenceBits}
	if l.Order == snowflake.TimeSequenceNode {
		all = append(all, sequence)
	}
	if len(l.Parts) == 0 {
		all = append(all, box{"node", l.NodeBits})
	}
	for _, p := range l.Parts {
		all = append(all, box{p.Name, p.Bits})
	}
	if l.Order == snowflake.TimeNodeSequence {
		all = append(all, sequence)
	}
	return all
}

// diagram draws the bits of an ID:
//
//	 63   62                 22 21        12 11        0
//	+----+---------------------+------------+-----------+
//	| 0  | time                | node       | sequence  |
//	+----+---------------------+------------+-----------+
//	 1 bit 41 bits              10 bits      12 bits
//
// A box is half as many characters wide as it has bits, or as its labels need.
func diagram(l snowflake.Layout) string {
	var numbers, border, names, widths strings.Builder
	high := 63
	for _, b := range boxes(l) {
		if b.bits == 0 {
			continue
		}
		first, last := fmt.Sprint(high), ""
		if b.bits > 1 {
			last = fmt.Sprint(high - b.bits + 1)
		}
		high -= b.bits
		width := fmt.Sprintf("%d bits", b.bits)
		if b.bits == 1 {
			width = "1 bit"
		}
		inner := max(b.bits/2, len(b.name), len(width), len(first)+1+len(last))
		fmt.Fprintf(&numbers, "  %s%*s", first, inner-len(first)+1, last+" ")
		border.WriteString("+" + strings.Repeat("-", inner+2))
		fmt.Fprintf(&names, "| %-*s ", inner, b.name)
		fmt.Fprintf(&widths, "  %-*s ", inner, width)
	}
	var all strings.Builder
	for _, line := range []string{numbers.String(), border.String() + "+", names.String() + "|", border.String() + "+", widths.String()} {
		all.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	return all.String()
}
