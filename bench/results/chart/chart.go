// Package chart draws the charts of a report as SVG, with gonum/plot.
//
// A drawing has roles in place of colours. In a page they become CSS properties, so
// that the chart follows the page's theme; in a file of its own, colours on paper.
package chart

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/tickflake/tickflake/bench/results"
)

// ErrEmpty is the error of a chart whose columns have no samples at all.
var ErrEmpty = errors.New("nothing was measured for this chart")

// Widths of drawings, in CSS pixels: one for screens, one for phones. A drawing that
// is merely made smaller cannot be read, so there is one for each.
const (
	Wide   vg.Length = 920
	Narrow vg.Length = 340
)

// Chart is a chart with the table that it draws.
type Chart struct {
	results.Chart
	Table *results.Table
}

// Inline draws the chart for a page whose style has [Properties], in one of the
// widths. It fails with [ErrEmpty] if there is nothing to draw.
func (c Chart) Inline(width vg.Length) (string, error) {
	kind := "wide"
	if width < Wide {
		kind = "narrow"
	}
	return c.svg(inline, "chart-"+c.ID+"-"+kind, ` class="`+kind+`"`, width)
}

// Alone draws the chart as a file of its own. It brings its paper with it, so it can
// be read on any page.
func (c Chart) Alone() (string, error) {
	return c.svg(alone, "chart-"+c.ID, "", Wide)
}

func (c Chart) svg(t theme, id, attributes string, width vg.Length) (string, error) {
	d := drawing{Chart: c, width: width, narrow: width < Wide, columns: c.drawn()}
	if len(d.columns) == 0 {
		return "", ErrEmpty
	}
	paint := d.bars
	switch {
	case c.Kind == results.Lines:
		paint = d.lines
	case len(d.columns) >= manyColumns:
		paint = d.strips
	}
	canvas, height := paint()
	body, err := t.body(canvas)
	if err != nil {
		return "", fmt.Errorf("chart %s: %w", c.ID, err)
	}
	style := "font-family: " + t.font
	if t.font != inline.font {
		const margin = 16
		body = fmt.Sprintf(`<rect x="%d" y="%d" width="%g" height="%g" rx="6" fill="%s"/>`+"\n%s",
			-margin, -margin, width+2*margin, height+2*margin, t.colour(paper, 100), body)
		return element(id, c.Title, c.about(), attributes, style, -margin, body, width+2*margin, height+2*margin), nil
	}
	return element(id, c.Title, c.about(), attributes, style, 0, body, width, height), nil
}

// drawn returns the indices of the columns that the chart shows: those it names, or
// all, as far as they have samples.
func (c Chart) drawn() []int {
	var columns []int
	for i, column := range c.Table.Columns {
		named := len(c.Columns) == 0 || slices.Contains(c.Columns, column.ID)
		if named && slices.ContainsFunc(c.Table.Rows, func(r results.Row) bool { return len(r.Cells[i].Samples) > 0 }) {
			columns = append(columns, i)
		}
	}
	return columns
}

// about describes the drawing for those who do not see it.
func (c Chart) about() string {
	shape := "Bars"
	if c.Kind == results.Lines {
		shape = "Lines"
	}
	return fmt.Sprintf("%s for %d rows; all figures are in the table %q.", shape, len(c.Table.Rows), c.Table.Title)
}

// drawing is a chart as it is drawn in one width.
type drawing struct {
	Chart
	width   vg.Length
	narrow  bool
	columns []int // of the table
}

// Sizes of type, in CSS pixels.
const (
	small  = 12
	normal = 13
)

// style is a text's style.
func style(r role, size float64, x text.XAlignment, y text.YAlignment) text.Style {
	return text.Style{
		Color:   r.mark(),
		Font:    font.Font{Typeface: "Liberation", Variant: "Sans", Size: vg.Points(size)},
		XAlign:  x,
		YAlign:  y,
		Handler: handler,
	}
}

// line is a line's style.
func line(r role, width float64, dashes ...vg.Length) draw.LineStyle {
	return draw.LineStyle{Color: r.mark(), Width: vg.Points(width), Dashes: dashes}
}

// canvas returns an empty one of the drawing's width.
func (d drawing) canvas(height vg.Length) (*vgsvg.Canvas, draw.Canvas) {
	c := vgsvg.New(d.width, height)
	return c, draw.New(c)
}

// plot returns an empty plot in the drawing's style.
func (d drawing) plot() *plot.Plot {
	p := plot.New()
	p.TextHandler = handler
	p.BackgroundColor = nil
	p.Title.TextStyle = style(ink, normal, text.XCenter, text.YTop)
	p.Legend.TextStyle = style(ink, small, text.XLeft, text.YCenter)
	p.X.Tick.Label = style(soft, small, text.XCenter, text.YTop)
	p.Y.Tick.Label = style(soft, small, text.XRight, text.YCenter)
	for _, axis := range []*plot.Axis{&p.X, &p.Y} {
		axis.Label.TextStyle = style(soft, small, text.XCenter, text.YBottom)
		axis.Label.Padding = vg.Points(4)
		axis.Tick.LineStyle = line(rule, 1)
		axis.Tick.Length = vg.Points(4)
		axis.LineStyle = line(soft, 1)
		axis.Padding = 0
	}
	return p
}

// Axes reach from tiny to huge, and as far below zero: beyond, the arithmetic of their
// ticks would not hold, and nothing is as small or as large.
const (
	tiny = 1e-100
	huge = 1e100
)

// value returns what a cell of the drawing came to, or false if that cannot be drawn.
func value(c results.Cell, log bool) (results.Summary, bool) {
	s, ok := c.Summary()
	switch {
	case !ok, s.Hi > huge, s.Lo < -huge:
		return s, false
	case log && s.Median < tiny:
		return s, false
	}
	return s, true
}

// extent is the least and the greatest that is drawn, with the whiskers.
func (d drawing) extent(log bool) (lo, hi float64) {
	lo, hi = math.Inf(1), math.Inf(-1)
	for _, row := range d.Table.Rows {
		for _, i := range d.columns {
			if s, ok := value(row.Cells[i], log); ok {
				hi = max(hi, s.Hi)
				if log && s.Lo < tiny {
					s.Lo = s.Median
				}
				lo = min(lo, s.Lo)
			}
		}
	}
	return lo, hi
}

// unit returns what an axis says of the columns' unit, if they have one in common.
func (d drawing) unit() string {
	unit := d.Table.Columns[d.columns[0]].Unit
	for _, i := range d.columns {
		if d.Table.Columns[i].Unit != unit {
			return ""
		}
	}
	return unit
}
