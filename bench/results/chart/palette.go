package chart

import (
	"fmt"
	"image/color"
	"slices"
	"strings"

	"github.com/tickflake/tickflake/bench/results"
)

// role is what a colour is for. A drawing has no colours, only roles, so that a page
// can give it those of its theme.
type role int

const (
	ink   role = iota // text, and the whiskers of intervals
	soft              // text of axes
	rule              // lines of the grid
	paper             // what it is drawn on
	ours              // the shades of a group follow each other
	ours1
	ours2
	ours3
	peer
	peer1
	peer2
	peer3
	peer4
	floor
	floor1
	other // rows of no group
	other1
	other2
	roles // how many there are
)

// shade is a colour in the light theme and in the dark one.
type shade struct{ name, light, dark string }

// palette has a hue per group: cool ones for this library, warm ones for others, grey
// for floors. Within a group, shades are told apart by dashes and markers as well.
var palette = [roles]shade{
	ink:    {"ink", "#1c2026", "#e8eaed"},
	soft:   {"soft", "#555c66", "#a9b0ba"},
	rule:   {"rule", "#dfe2e6", "#353a42"},
	paper:  {"paper", "#ffffff", "#16191e"},
	ours:   {"ours", "#1a63c6", "#6aa9ff"},
	ours1:  {"ours1", "#007c89", "#3cc4cf"},
	ours2:  {"ours2", "#5a3fc0", "#b39bff"},
	ours3:  {"ours3", "#3f7d20", "#8fd15f"},
	peer:   {"peer", "#b85300", "#f2a04e"},
	peer1:  {"peer1", "#b3261e", "#ff8a80"},
	peer2:  {"peer2", "#8a6a00", "#e0c341"},
	peer3:  {"peer3", "#a3277f", "#f58fd3"},
	peer4:  {"peer4", "#7d4a34", "#d6a48c"},
	floor:  {"floor", "#68707b", "#9aa3af"},
	floor1: {"floor1", "#4a5059", "#c5cbd3"},
	other:  {"other", "#6a4bb0", "#b79df0"},
	other1: {"other1", "#2f6f6a", "#6fcac2"},
	other2: {"other2", "#7a5c00", "#d8bb4a"},
}

// shades are the roles of a group's rows, in turn.
func shades(group results.Group) []role {
	switch group {
	case results.Ours:
		return []role{ours, ours1, ours2, ours3}
	case results.Peers:
		return []role{peer, peer1, peer2, peer3, peer4}
	case results.Floor:
		return []role{floor, floor1}
	}
	return []role{other, other1, other2}
}

// mark is the colour under which the role is drawn, before it gets a real one.
func (r role) mark() color.Color { return r.tint(100) }

// tint is mark for so many percent of the role's colour on paper.
func (r role) tint(percent int) color.Color {
	return color.RGBA{R: 0xAB, G: uint8(percent), B: uint8(r), A: 0xFF}
}

// shareOf is how much of its row's colour the k-th of n columns has, in percent.
func shareOf(k, n int) int {
	if n < 2 {
		return 100
	}
	return 100 - k*min(60, 94/(n-1))
}

// Properties returns the CSS declarations that the drawings of [Chart.Inline] need:
// a colour for each theme, chosen by the color-scheme in force.
func Properties() string {
	var css strings.Builder
	for _, s := range palette {
		fmt.Fprintf(&css, "--%s: light-dark(%s, %s);\n", s.name, s.light, s.dark)
	}
	return css.String()
}

// GroupColour returns the CSS property that has the colour of a group.
func GroupColour(group results.Group) string { return "--" + palette[shades(group)[0]].name }

// groups are in the order in which a legend has them.
var groups = []struct {
	group results.Group
	name  string
}{
	{results.Ours, "tickflake"},
	{results.Peers, "peers"},
	{results.Floor, "the least possible"},
	{"", "others"},
}

// groupsOf returns the groups of the rows, in the order of a legend.
func groupsOf(rows []results.Row) (present []results.Group, label map[results.Group]string) {
	label = map[results.Group]string{}
	for _, g := range groups {
		if slices.ContainsFunc(rows, func(r results.Row) bool { return r.Group == g.group }) {
			present = append(present, g.group)
			label[g.group] = g.name
		}
	}
	return present, label
}
