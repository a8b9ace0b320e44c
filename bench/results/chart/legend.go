package chart

import (
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// legend stands above a chart and says what its colours and tints are.
type legend struct {
	entries []entry
	height  vg.Length
}

// entry is a sign with its name. Its corner is so far from the legend's upper left one.
type entry struct {
	x, y vg.Length
	name string
	sign func(c *draw.Canvas, at vg.Point) // draws it signWidth wide, at the middle of its left side
}

const (
	signWidth    = 16
	legendHeight = 20 // of a line
)

// legend is that of bars: the columns, if there are several, and the groups of rows.
func (d drawing) legend() legend {
	var l legend
	if len(d.columns) > 1 {
		for k, i := range d.columns {
			l.add(d.Table.Columns[i].Title, swatch(soft, shareOf(k, len(d.columns))))
		}
	}
	if present, label := groupsOf(d.Table.Rows); len(present) > 1 {
		for _, g := range present {
			l.add(label[g], swatch(shades(g)[0], 100))
		}
	}
	l.flow(d.width)
	return l
}

// add adds an entry without a place.
func (l *legend) add(name string, sign func(*draw.Canvas, vg.Point)) {
	l.entries = append(l.entries, entry{name: name, sign: sign})
}

// flow puts the entries into lines of the width.
func (l *legend) flow(width vg.Length) {
	sty := style(ink, small, text.XLeft, text.YCenter)
	var x, y vg.Length
	for i := range l.entries {
		e := &l.entries[i]
		e.name = fit(e.name, sty, width-signWidth-6)
		needed := signWidth + 6 + sty.Width(e.name)
		if x > 0 && x+needed > width {
			x, y = 0, y+legendHeight
		}
		e.x, e.y = x, y
		x += needed + 18
	}
	if len(l.entries) > 0 {
		l.height = y + legendHeight + 8
	}
}

// draw draws the legend at the top of c.
func (l *legend) draw(c draw.Canvas) {
	for _, e := range l.entries {
		at := vg.Point{X: c.Min.X + e.x, Y: c.Max.Y - e.y - legendHeight/2}
		e.sign(&c, at)
		c.FillText(style(ink, small, text.XLeft, text.YCenter), vg.Point{X: at.X + signWidth + 6, Y: at.Y}, e.name)
	}
}

// swatch is the sign of a bar.
func swatch(colour role, percent int) func(*draw.Canvas, vg.Point) {
	return func(c *draw.Canvas, at vg.Point) {
		box(c, colour, percent, at.X, at.X+signWidth, at.Y-6, at.Y+6)
	}
}
