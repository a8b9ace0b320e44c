package chart

import (
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/tickflake/tickflake/bench/results"
)

// manyColumns is from how many columns on the bars of a row stand upright beside each
// other, as a histogram.
const manyColumns = 9

// Heights of histograms, in CSS pixels.
const (
	stripHeight = 44
	stripGap    = 14
)

// strips draws a histogram per row, all with the same scale.
func (d drawing) strips() (*vgsvg.Canvas, vg.Length) {
	s := &stripRows{drawing: d, pitch: stripHeight + stripGap}
	if d.narrow {
		s.pitch += nameHeight
	}
	_, s.top = d.extent(false)
	rows := len(d.Table.Rows)
	height := s.pitch*vg.Length(rows) + axisHeight

	p := d.plot()
	p.Add(s)
	p.X.Min, p.X.Max = -0.7, float64(len(d.columns))-0.3
	p.Y.Min, p.Y.Max = 0, float64(rows)
	p.Y.LineStyle.Width, p.Y.Tick.Length = 0, 0
	p.Y.Tick.Label = style(ink, normal, text.XRight, text.YCenter)
	var names []plot.Tick
	for i, row := range d.Table.Rows {
		if !d.narrow {
			names = append(names, plot.Tick{Value: s.at(i) + 0.4, Label: fit(row.Name, p.Y.Tick.Label, 0.4*d.width)})
		}
	}
	p.Y.Tick.Marker = plot.ConstantTicks(names)
	p.X.Label.Text = fit(d.axisTitle(d.YLabel, false)+"; the figure is the tallest bar", p.X.Label.TextStyle, d.width-20)

	out, c := d.canvas(height)
	area := draw.Crop(c, 2, -2, 2, 0)
	across := scale{min: p.X.Min, max: p.X.Max}
	for k, i := range d.columns {
		across.ticks = append(across.ticks, plot.Tick{Value: float64(k), Label: d.Table.Columns[i].Title})
	}
	across.set(&p.X)
	across.apart(p.DataCanvas(area).Size().X, p.X.Tick.Label).set(&p.X)
	p.Draw(area)
	return out, height
}

// stripRows is the plotter of the histograms.
type stripRows struct {
	drawing
	pitch vg.Length // from one to the next
	top   float64   // what a bar of full height stands for
}

// at is where the foot of a row's histogram is on the axis: the first row is on top.
func (s *stripRows) at(row int) float64 { return float64(len(s.Table.Rows) - 1 - row) }

// Plot draws the histograms.
func (s *stripRows) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	unit := x(1) - x(0)
	for i, row := range s.Table.Rows {
		foot := y(s.at(i)) + 2
		c.StrokeLine2(line(rule, 1), c.Min.X, foot, c.Max.X, foot)
		tallest, measured := 0.0, false
		for k, column := range s.columns {
			v, ok := value(row.Cells[column], false)
			if !ok {
				continue
			}
			tallest, measured = max(tallest, v.Median), true
			middle := x(float64(k))
			box(&c, shades(row.Group)[0], 100, middle-0.38*unit, middle+0.38*unit, foot, foot+s.height(v.Median))
		}
		if measured {
			c.FillText(style(ink, small, text.XLeft, text.YBottom), vg.Point{X: c.Max.X + 4, Y: foot + 2}, results.Figure(tallest))
		}
		if s.narrow {
			c.FillText(style(ink, normal, text.XLeft, text.YBottom), vg.Point{X: c.Min.X, Y: foot + stripHeight + 4}, fit(row.Name, style(ink, normal, 0, 0), s.width-16))
		}
	}
}

// height is that of a bar; what is below zero has none.
func (s *stripRows) height(v float64) vg.Length {
	if s.top <= 0 || v <= 0 {
		return 0
	}
	return stripHeight * vg.Length(v/s.top)
}

// GlyphBoxes makes room for the figures.
func (s *stripRows) GlyphBoxes(*plot.Plot) []plot.GlyphBox {
	width := style(ink, small, 0, 0).Width(results.Figure(s.top)) + 40
	return []plot.GlyphBox{{X: 1, Rectangle: vg.Rectangle{Max: vg.Point{X: width}}}}
}
