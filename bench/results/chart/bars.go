package chart

import (
	"cmp"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/tickflake/tickflake/bench/results"
)

// Heights in a chart of bars, in CSS pixels.
const (
	barHeight  = 14
	manyHeight = 12 // of a bar where a row has several
	barGap     = 9  // between rows
	nameHeight = 18 // of a row's name, where it stands above its bars
	axisHeight = 44
)

// bars draws the rows below each other, a bar per column: names are long. In the
// narrow form they stand above their bars.
func (d drawing) bars() (*vgsvg.Canvas, vg.Length) {
	rows := &barRows{drawing: d, log: d.LogX || d.LogY, height: barHeight}
	if len(d.columns) > 1 {
		rows.height = manyHeight
	}
	rows.place()
	legend := d.legend()
	height := legend.height + rows.total + axisHeight

	p := d.plot()
	values := rows.scale()
	p.Add(&plotter.Grid{Vertical: line(rule, 1)}, rows)
	p.Y.Min, p.Y.Max = 0, float64(rows.total)
	p.Y.Tick.Marker = plot.ConstantTicks(rows.names())
	p.Y.Tick.Label = style(ink, normal, text.XRight, text.YCenter)
	p.Y.Tick.Length = 0
	p.X.Label.Text = fit(d.axisTitle(cmp.Or(d.YLabel, d.XLabel), rows.log), p.X.Label.TextStyle, d.width-40)

	out, c := d.canvas(height)
	legend.draw(draw.Crop(c, 0, 0, height-legend.height, 0))
	left := vg.Length(2)
	if d.narrow {
		left = 10 // half a label of the axis
	}
	area := draw.Crop(c, left, -2, 2, -legend.height)
	values.set(&p.X) // first with all labels, to learn how long the axis is
	values.apart(p.DataCanvas(area).Size().X, p.X.Tick.Label).set(&p.X)
	p.Draw(area)
	return out, height
}

// axisTitle says what an axis shows: what the chart says, or the columns' unit.
func (d drawing) axisTitle(label string, log bool) string {
	label = cmp.Or(label, d.unit())
	if log {
		return strings.TrimPrefix(label+" (logarithmic)", " ")
	}
	return label
}

// barRows is the plotter of the bars.
type barRows struct {
	drawing
	log    bool
	height vg.Length // of a bar
	rows   []barRow
	total  vg.Length // height of all rows
}

// barRow is what is drawn of a row.
type barRow struct {
	*results.Row
	top   float64 // of its bars, above the axis
	slots []slot
}

// slot is a bar, or a text in the place of one.
type slot struct {
	cell    results.Cell
	value   results.Summary
	bar     bool
	percent int // of the colour
}

// middle is how high above the axis the middle of the i-th slot is.
func (r barRow) middle(i int, height vg.Length) float64 {
	return r.top - (float64(i)+0.5)*float64(height)
}

// place decides what is drawn of each row, and where: the first one on top. Of a cell
// without a value, the text is drawn only if it is in the first column: it is the
// reason why there is no bar, and the other columns only go with that.
func (b *barRows) place() {
	offset := vg.Length(barGap) / 2
	for i := range b.Table.Rows {
		r := barRow{Row: &b.Table.Rows[i]}
		if b.narrow {
			offset += nameHeight
		}
		r.top = -float64(offset) // of the whole, so far
		for k, column := range b.columns {
			s := slot{cell: r.Cells[column], percent: shareOf(k, len(b.columns))}
			if s.value, s.bar = value(s.cell, b.log); s.bar || k == 0 {
				r.slots = append(r.slots, s)
			}
		}
		offset += b.height*vg.Length(len(r.slots)) + barGap
		b.rows = append(b.rows, r)
	}
	b.total = offset - barGap/2
	for i := range b.rows {
		b.rows[i].top += float64(b.total)
	}
}

// scale is that of the bars' length. A logarithmic one begins well below the least
// value, or its bar could not be seen.
func (b *barRows) scale() scale {
	lo, hi := b.extent(b.log)
	n := 6
	if b.narrow {
		n = 4
	}
	if b.log && hi > 0 {
		return logarithmic(lo/1.6, hi)
	}
	b.log = false
	return linear(lo, hi, n)
}

// names are the rows' names as ticks of the axis, in the wide form.
func (b *barRows) names() []plot.Tick {
	if b.narrow {
		return nil
	}
	var ticks []plot.Tick
	for _, r := range b.rows {
		middle := r.top - float64(len(r.slots))*float64(b.height)/2
		ticks = append(ticks, plot.Tick{Value: middle, Label: fit(r.Name, style(ink, normal, 0, 0), 0.4*b.width)})
	}
	return ticks
}

// label is what stands behind a bar, or in its place.
func (b *barRows) label(c results.Cell) string {
	return fit(c.Label(), style(ink, small, 0, 0), 0.3*b.width)
}

// Plot draws the bars.
func (b *barRows) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	base := max(0, p.X.Min)
	for _, r := range b.rows {
		if b.narrow {
			name := fit(r.Name, style(ink, normal, 0, 0), b.width-16)
			c.FillText(style(ink, normal, text.XLeft, text.YBottom), vg.Point{X: c.Min.X + 4, Y: y(r.top) + 3}, name)
		}
		colour := shades(r.Group)[0]
		for i, s := range r.slots {
			middle := y(r.middle(i, b.height))
			end, shade := x(base), soft // of bar and whisker; of the label
			if s.bar {
				half := b.height/2 - 1
				box(&c, colour, s.percent, x(base), x(s.value.Median), middle-half, middle+half)
				whisker(&c, x(max(s.value.Lo, p.X.Min)), x(s.value.Hi), middle)
				end, shade = max(end, x(s.value.Hi)), ink
			}
			c.FillText(style(shade, small, text.XLeft, text.YCenter), vg.Point{X: end + 5, Y: middle + 1}, b.label(s.cell))
		}
	}
}

// GlyphBoxes makes room for the labels.
func (b *barRows) GlyphBoxes(p *plot.Plot) []plot.GlyphBox {
	var boxes []plot.GlyphBox
	for _, r := range b.rows {
		for _, s := range r.slots {
			at := 0.0
			if s.bar {
				at = min(max(p.X.Norm(s.value.Hi), 0), 1)
			}
			width := style(ink, small, 0, 0).Width(b.label(s.cell))
			boxes = append(boxes, plot.GlyphBox{X: at, Rectangle: vg.Rectangle{Max: vg.Point{X: width + 8}}})
		}
	}
	return boxes
}

// box draws a bar with so many percent of a colour.
func box(c *draw.Canvas, colour role, percent int, x0, x1, y0, y1 vg.Length) {
	corners := []vg.Point{{X: x0, Y: y0}, {X: x1, Y: y0}, {X: x1, Y: y1}, {X: x0, Y: y1}}
	c.FillPolygon(colour.tint(percent), corners)
	if percent < 100 {
		c.StrokeLines(line(colour, 1), append(corners, corners[0]))
	}
}

// whisker draws an interval, on a lighter line so that it shows on its bar. One that
// is narrower than its own lines would only be a blot.
func whisker(c *draw.Canvas, x0, x1, y vg.Length) {
	const cap, least = 3, 5
	if x1-x0 < least {
		return
	}
	for _, sty := range []draw.LineStyle{line(paper, 3), line(ink, 1)} {
		c.StrokeLine2(sty, x0, y, x1, y)
		for _, x := range []vg.Length{x0, x1} {
			c.StrokeLine2(sty, x, y-cap, x, y+cap)
		}
	}
}

// fit cuts a text that is longer than there is room for.
func fit(txt string, sty text.Style, room vg.Length) string {
	runes := []rune(txt)
	for n := len(runes); n > 1 && sty.Width(txt) > room; n-- {
		txt = strings.TrimRight(string(runes[:n-1]), " ,") + "…"
	}
	return txt
}
