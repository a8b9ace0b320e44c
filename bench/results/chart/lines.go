package chart

import (
	"cmp"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// Sizes of a chart of lines, in CSS pixels.
const (
	linesHeight  = 380
	narrowHeight = 300
	titleHeight  = 24 // of what stands above the vertical axis
	labelHeight  = 19 // of a name beside the lines
)

// lines draws a line per row. In the wide form its name stands where it ends, in the
// narrow one in a legend.
func (d drawing) lines() (*vgsvg.Canvas, vg.Length) {
	all := d.series()
	slices.SortStableFunc(d.columns, func(a, b int) int { return cmp.Compare(d.Table.Columns[a].X, d.Table.Columns[b].X) })
	plotted := &lineRows{drawing: d, all: all}
	p := d.plot()
	p.Add(&plotter.Grid{Vertical: line(rule, 1), Horizontal: line(rule, 1)}, plotted)

	p.Y.LineStyle.Width, p.Y.Tick.Length = 0, 0 // the grid does

	logY := d.LogY
	lo, hi := d.extent(logY)
	n, height := 6, vg.Length(linesHeight)
	if d.narrow {
		n, height = 4, narrowHeight
	}
	values := linear(lo, hi, n)
	if logY && hi > 0 {
		values = logarithmic(lo, hi)
		plotted.log = true
	}
	values.set(&p.Y)
	p.X.Label.Text = fit(d.XLabel, p.X.Label.TextStyle, d.width-60)

	var l legend
	var names vg.Length // width of the names beside the lines
	sty := style(ink, normal, text.XLeft, text.YCenter)
	if d.narrow {
		for _, s := range all {
			l.add(s.row.Name, s.sign)
		}
		l.flow(d.width)
	} else {
		for _, s := range all {
			names = max(names, sty.Width(fit(s.row.Name, sty, 0.3*d.width)))
		}
		names += 60
		height = max(height, labelHeight*vg.Length(len(all))+axisHeight+titleHeight)
	}
	total := height + l.height + titleHeight
	out, c := d.canvas(total)
	l.draw(c)
	title := fit(d.axisTitle(d.YLabel, plotted.log), style(soft, small, 0, 0), d.width)
	c.FillText(style(soft, small, text.XLeft, text.YTop), vg.Point{X: 0, Y: total - l.height - 2}, title)

	area := draw.Crop(c, 2, -names-6, 2, -l.height-titleHeight)
	across := d.across()
	across.set(&p.X)
	// The first label may reach out further than those of the other axis.
	half := p.X.Tick.Label.Width(across.ticks[0].Label) / 2
	area.Min.X += max(0, half-p.DataCanvas(area).Min.X)
	across.apart(p.DataCanvas(area).Size().X, p.X.Tick.Label).set(&p.X)
	p.Draw(area)
	if !d.narrow {
		plotted.names(p, p.DataCanvas(area), c.Max.X-names)
	}
	return out, total
}

// across is the scale of the columns, with a tick for each.
func (d drawing) across() scale {
	s := scale{log: d.LogX}
	for i, k := range d.columns {
		column := d.Table.Columns[k]
		if column.X <= 0 {
			s.log = false
		}
		if i == 0 || column.X < s.min {
			s.min = column.X
		}
		if i == 0 || column.X > s.max {
			s.max = column.X
		}
		s.ticks = append(s.ticks, plot.Tick{Value: column.X, Label: column.Title})
	}
	// A little air on both sides, so that markers do not stand on the axis.
	if s.min == s.max {
		s.min, s.max, s.log = s.min-1, s.max+1, false
	}
	return s
}

// lineRows is the plotter of the lines.
type lineRows struct {
	drawing
	all []series
	log bool // the vertical axis
}

// place is where a point is drawn, with the ends of its whisker.
type place struct {
	at     vg.Point
	lo, hi vg.Length
}

// places returns where the points of a series are drawn.
func (l *lineRows) places(c *draw.Canvas, p *plot.Plot, s series) []place {
	x, y := p.Transforms(c)
	var places []place
	for _, k := range l.columns {
		if v, ok := value(s.row.Cells[k], l.log); ok {
			at := vg.Point{X: x(l.Table.Columns[k].X), Y: y(v.Median)}
			places = append(places, place{at, y(max(v.Lo, p.Y.Min)), y(v.Hi)})
		}
	}
	return places
}

// Plot draws the lines.
func (l *lineRows) Plot(c draw.Canvas, p *plot.Plot) {
	for _, s := range l.all {
		places := l.places(&c, p, s)
		var points []vg.Point
		for _, v := range places {
			points = append(points, v.at)
			if v.lo < v.hi {
				const cap = 3
				c.StrokeLine2(line(s.colour, 1), v.at.X, v.lo, v.at.X, v.hi)
				c.StrokeLine2(line(s.colour, 1), v.at.X-cap, v.lo, v.at.X+cap, v.lo)
				c.StrokeLine2(line(s.colour, 1), v.at.X-cap, v.hi, v.at.X+cap, v.hi)
			}
		}
		if len(points) > 1 {
			c.StrokeLines(s.line(), points)
		}
		for _, at := range points {
			s.point(&c, at)
		}
	}
}

// GlyphBoxes makes room for the markers at the ends.
func (l *lineRows) GlyphBoxes(*plot.Plot) []plot.GlyphBox {
	side := vg.Rectangle{Min: vg.Point{X: -8, Y: -4}, Max: vg.Point{X: 8, Y: 4}}
	return []plot.GlyphBox{{X: 0, Rectangle: side}, {X: 1, Rectangle: side}}
}

// names writes the rows' names at x, each as near as there is room to where its line
// ends, and leads the lines there.
func (l *lineRows) names(p *plot.Plot, c draw.Canvas, x vg.Length) {
	type end struct {
		series
		from vg.Point
		y    vg.Length
	}
	var ends []end
	for _, s := range l.all {
		if places := l.places(&c, p, s); len(places) > 0 {
			at := places[len(places)-1].at
			ends = append(ends, end{s, at, at.Y})
		}
	}
	slices.SortStableFunc(ends, func(a, b end) int { return cmp.Compare(b.from.Y, a.from.Y) })
	for i := range ends { // downwards, each below the last one
		if i > 0 {
			ends[i].y = min(ends[i].y, ends[i-1].y-labelHeight)
		}
	}
	lowest := c.Min.Y
	for i := len(ends) - 1; i >= 0; i-- { // and upwards again from the bottom
		ends[i].y = max(ends[i].y, lowest)
		lowest = ends[i].y + labelHeight
	}
	sty := style(ink, normal, text.XLeft, text.YCenter)
	for _, e := range ends {
		c.StrokeLines(line(e.colour, 1, 1, 2), []vg.Point{{X: e.from.X + 6, Y: e.from.Y}, {X: c.Max.X + 4, Y: e.from.Y}, {X: x + 6, Y: e.y}})
		e.sign(&c, vg.Point{X: x + 8, Y: e.y})
		c.FillText(sty, vg.Point{X: x + 8 + signWidth + 6, Y: e.y}, fit(e.row.Name, sty, 0.3*l.width))
	}
}
