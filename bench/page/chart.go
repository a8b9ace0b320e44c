package page

import (
	"bytes"
	"fmt"
	"html"
	"image/color"
	"math"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/tickflake/tickflake/bench/results"
)

// Sizes of a chart, in CSS pixels.
const (
	chartWidth = 800
	phoneWidth = 420 // of the chart that opens the report, which a phone shows whole
	lineHeight = 18  // of a name in a legend, and of a bar
	lineChart  = 360
	axisHeight = 50
)

// A shade is a colour in the light theme and in the dark one. Charts are drawn in the
// light one; a page replaces it by the CSS variable of the name.
type shade struct{ name, light, dark string }

var palette = []shade{
	{"ink", "#1C2026", "#e8eaed"}, {"soft", "#555C66", "#a9b0ba"}, {"rule", "#DFE2E6", "#353a42"}, {"paper", "#FFFFFF", "#16191e"},
	{"ours", "#1A63C6", "#6aa9ff"}, {"ours1", "#007C89", "#3cc4cf"}, {"ours2", "#5A3FC0", "#b39bff"},
	{"peer", "#B85300", "#f2a04e"}, {"peer1", "#B3261E", "#ff8a80"}, {"peer2", "#8A6A00", "#e0c341"}, {"peer3", "#A3277F", "#f58fd3"}, {"peer4", "#7D4A34", "#d6a48c"},
	{"floor", "#68707B", "#9aa3af"},
}

// shades are the colours of a group's rows, in turn.
var shades = map[results.Group][]string{
	results.Ours:  {"ours", "ours1", "ours2"},
	results.Peers: {"peer", "peer1", "peer2", "peer3", "peer4"},
	results.Floor: {"floor"},
	"":            {"ours2"},
}

// share is how much of its colour a bar of the column has on the paper, to tell the columns
// of a row apart.
func share(column int) float64 { return math.Pow(0.55, float64(column)) }

// most is how many columns a chart of bars can tell apart.
const most = 4

// colour returns the light form of a shade.
func colour(name string) color.NRGBA { return tint(name, 0) }

// tint returns the light form of a shade for a column of a chart of bars.
func tint(name string, column int) color.NRGBA {
	i := slices.IndexFunc(palette, func(s shade) bool { return s.name == name })
	c := color.NRGBA{A: 0xFF}
	for k, v := range []*uint8{&c.R, &c.G, &c.B} {
		full, _ := strconv.ParseUint(palette[i].light[1+2*k:3+2*k], 16, 8) // of the palette above
		*v = uint8(float64(full)*share(column) + 255*(1-share(column)))
	}
	return c
}

// properties are the CSS variables of the palette.
func properties() string {
	var css strings.Builder
	for _, s := range palette {
		fmt.Fprintf(&css, "--%s: light-dark(%s, %s);\n", s.name, s.light, s.dark)
	}
	return css.String()
}

// inline turns a drawing into one that follows the theme of the page around it.
func inline(svg string) string {
	var pairs []string
	for _, s := range palette {
		for k := range most {
			c := tint(s.name, k)
			pairs = append(pairs, fmt.Sprintf("#%02X%02X%02X", c.R, c.G, c.B), fmt.Sprintf("color-mix(in srgb, var(--%s) %.0f%%, var(--paper))", s.name, 100*share(k)))
		}
	}
	return strings.NewReplacer(pairs...).Replace(svg)
}

// drawChart draws a chart of a table as SVG, in the colours of the light theme. The result
// is empty if nothing was measured for the chart.
func drawChart(t *results.Table, c results.Chart) (string, error) {
	d := drawing{Chart: c, table: t, columns: t.Drawn(c)}
	if len(d.columns) == 0 {
		return "", nil
	}
	p := plot.New()
	p.BackgroundColor = nil
	for _, axis := range []*plot.Axis{&p.X, &p.Y} {
		axis.Label.TextStyle = style("soft")
		axis.Tick.Label = style("soft")
		axis.LineStyle.Color, axis.Tick.LineStyle.Color = colour("soft"), colour("rule")
	}
	p.X.Tick.Label.XAlign, p.X.Tick.Label.YAlign, p.X.Label.TextStyle.XAlign = text.XCenter, text.YTop, text.XCenter
	p.Y.Tick.Label.XAlign, p.Y.Tick.Label.YAlign = text.XRight, text.YCenter
	legend := plot.NewLegend()
	legend.TextStyle, legend.Top, legend.Left, legend.Padding = style("ink"), true, true, 3
	height, beside, above := vg.Length(lineChart), vg.Length(0), vg.Length(0)
	if c.Lines {
		d.lines(p, &legend)
		for _, r := range t.Rows {
			beside = max(beside, 1.15*legend.TextStyle.Width(r.Name)+40)
		}
	} else {
		entries := d.bars(p, &legend)
		above = lineHeight * vg.Length(entries)
		height = lineHeight*vg.Length(len(t.Rows)*len(d.columns))*1.25 + axisHeight + above
	}
	width := vg.Length(chartWidth)
	if c.ID == openingID {
		width = phoneWidth
	}
	canvas := vgsvg.New(width, height)
	all := draw.New(canvas)
	all.SetColor(colour("paper"))
	all.Fill(all.Rectangle.Path())
	if c.Lines {
		legend.Draw(draw.Crop(all, width-beside, 0, 0, 0))
	} else {
		legend.Draw(all)
	}
	p.Draw(draw.Crop(all, 0, -beside-10, 0, -above))
	var out bytes.Buffer
	if _, err := canvas.WriteTo(&out); err != nil {
		return "", fmt.Errorf("chart %s: %w", c.ID, err)
	}
	svg := out.String()
	svg = svg[strings.Index(svg, "<svg "):]
	svg = strings.ReplaceAll(svg, "font-family:Liberation Sans;", "font-family:'Liberation Sans',Arial,sans-serif;")
	label := html.EscapeString(c.Title + "; all figures are in the table " + t.Title)
	return strings.Replace(svg, "<svg ", chartBegin+`role="img" aria-label="`+label+`" `, 1), nil
}

// chartBegin is the beginning of every chart.
const chartBegin = `<svg data-chart="tickflake" `

// IsChart reports whether a text is a chart of a report.
func IsChart(svg string) bool { return strings.HasPrefix(svg, chartBegin) }

func style(shade string) text.Style {
	return text.Style{Color: colour(shade), Font: font.Font{Typeface: "Liberation", Variant: "Sans", Size: 12}, Handler: plot.DefaultTextHandler}
}

// drawing is a chart with its table.
type drawing struct {
	results.Chart
	table   *results.Table
	columns []int // of the table
}

// The arithmetic of axes holds between tiny and huge, and nothing here is as small or as
// large.
const (
	tiny = 1e-100
	huge = 1e100
)

// value returns what is drawn of a cell, or false if there is nothing to draw.
func value(c results.Cell, log bool) (results.Summary, bool) {
	s, ok := c.Summary()
	return s, ok && s.Hi < huge && s.Lo > -huge && !(log && s.Median < tiny)
}

// scale sets an axis of values: from 0, or between powers of ten if it is logarithmic. It
// reports whether it is.
func (d drawing) scale(axis *plot.Axis) (log bool) {
	least, greatest := math.Inf(1), math.Inf(-1)
	for _, r := range d.table.Rows {
		for _, k := range d.columns {
			if s, ok := value(r.Cells[k], d.LogY); ok {
				least, greatest = min(least, s.Median), max(greatest, s.Hi)
			}
		}
	}
	axis.Label.Text = d.YLabel
	if d.LogY && greatest > 0 {
		axis.Label.Text += " (logarithmic)"
		axis.Scale = plot.LogScale{}
		axis.Tick.Marker = plot.LogTicks{Prec: -1}
		// A bar of the least value needs a length.
		axis.Min, axis.Max = math.Pow(10, math.Floor(math.Log10(least/1.3))), math.Pow(10, math.Ceil(math.Log10(greatest)))
		return true
	}
	axis.Min, axis.Max = min(least, 0), max(greatest, 0)
	if axis.Min == axis.Max {
		axis.Max++
	}
	axis.Tick.Marker = figureTicks{}
	return false
}

// figureTicks are the default ticks with labels such as "200,000".
type figureTicks struct{}

func (figureTicks) Ticks(min, max float64) []plot.Tick {
	ticks := plot.DefaultTicks{}.Ticks(min, max)
	for i := range ticks {
		if ticks[i].Label != "" {
			ticks[i].Label = results.Figure(math.Round(ticks[i].Value*1e9) / 1e9)
		}
	}
	return ticks
}

// lines adds a line per row.
func (d drawing) lines(p *plot.Plot, legend *plot.Legend) {
	glyphs := []draw.GlyphDrawer{draw.CircleGlyph{}, draw.SquareGlyph{}, draw.TriangleGlyph{}, draw.RingGlyph{}, draw.BoxGlyph{}}
	grid := plotter.NewGrid()
	grid.Vertical.Color, grid.Horizontal.Color = colour("rule"), colour("rule")
	p.Add(grid)
	log := d.scale(&p.Y)
	nth := map[results.Group]int{}
	for _, r := range d.table.Rows {
		n := nth[r.Group]
		nth[r.Group]++
		look := colour(shades[r.Group][n%len(shades[r.Group])])
		var points plotter.XYs
		var margins plotter.YErrors
		for _, k := range d.columns {
			if s, ok := value(r.Cells[k], log); ok {
				points = append(points, plotter.XY{X: d.table.Columns[k].X, Y: s.Median})
				margins = append(margins, struct{ Low, High float64 }{s.Median - max(s.Lo, p.Y.Min), s.Hi - s.Median})
			}
		}
		line, scatter := &plotter.Line{XYs: points}, &plotter.Scatter{XYs: points}
		line.LineStyle = draw.LineStyle{Color: look, Width: 2}
		if r.Group == results.Floor {
			line.Dashes = []vg.Length{4, 3}
		}
		scatter.GlyphStyle = draw.GlyphStyle{Color: look, Radius: 4, Shape: glyphs[n%len(glyphs)]}
		legend.Add(r.Name, line, scatter)
		if len(points) > 0 {
			whiskers := &plotter.YErrorBars{XYs: points, YErrors: margins, LineStyle: draw.LineStyle{Color: look, Width: 1}, CapWidth: 5}
			p.Add(line, whiskers, scatter)
		}
	}
	d.scale(&p.Y) // again: adding a plotter widens the axis
	p.X.Label.Text = d.XLabel
	var ticks []plot.Tick
	p.X.Min, p.X.Max = math.Inf(1), math.Inf(-1)
	for _, k := range d.columns {
		c := d.table.Columns[k]
		p.X.Min, p.X.Max = min(p.X.Min, c.X), max(p.X.Max, c.X)
		ticks = append(ticks, plot.Tick{Value: c.X, Label: strings.TrimSuffix(strings.TrimSuffix(c.Title, " goroutines"), " goroutine")})
	}
	if d.LogX && p.X.Min > 0 {
		p.X.Scale = plot.LogScale{}
	}
	if p.X.Min == p.X.Max {
		p.X.Max++
	}
	p.X.Tick.Marker = plot.ConstantTicks(ticks)
}

// bars adds a bar per row and column, and returns how many entries the legend has.
func (d drawing) bars(p *plot.Plot, legend *plot.Legend) (entries int) {
	b := &barPlotter{drawing: d}
	b.log = d.scale(&p.X)
	grid := plotter.NewGrid()
	grid.Vertical.Color, grid.Horizontal.Color = colour("rule"), nil
	p.Add(grid, b)
	p.Y.Min, p.Y.Max = -0.5, float64(len(d.table.Rows))-0.5
	p.HideY()
	if len(d.columns) > 1 {
		for k, i := range d.columns {
			legend.Add(d.table.Columns[i].Title, swatch(tint("soft", k)))
			entries++
		}
	}
	return entries
}

// swatch is the sign of a column in a legend.
type swatch color.NRGBA

func (s swatch) Thumbnail(c *draw.Canvas) {
	c.FillPolygon(color.NRGBA(s), corners(c.Min.X, c.Max.X, c.Min.Y, c.Max.Y))
}

func corners(x0, x1, y0, y1 vg.Length) []vg.Point {
	return []vg.Point{{X: x0, Y: y0}, {X: x1, Y: y0}, {X: x1, Y: y1}, {X: x0, Y: y1}}
}

// barPlotter draws horizontal bars with their intervals and figures. The first row is on
// top. Gonum's bar chart starts at 0, so it cannot be logarithmic.
type barPlotter struct {
	drawing
	log bool
}

func (b *barPlotter) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	thick := 0.8 / float64(len(b.columns))
	label := style("ink")
	label.YAlign = text.YCenter
	for i, r := range b.table.Rows {
		row := float64(len(b.table.Rows) - 1 - i)
		// The name ends where the reader's font ends it, so it starts at the left.
		c.FillText(label, vg.Point{X: c.Min.X - b.names(), Y: y(row)}, r.Name)
		top := row + 0.4
		for k, column := range b.columns {
			s, ok := value(r.Cells[column], b.log)
			if !ok {
				continue
			}
			upper, lower := y(top-float64(k)*thick)-1, y(top-float64(k+1)*thick)+1
			c.FillPolygon(tint(shades[r.Group][0], k), corners(x(max(p.X.Min, 0)), x(s.Median), lower, upper))
			middle, end := (lower+upper)/2, x(s.Hi)
			if lo := x(max(s.Lo, p.X.Min)); end-lo > 4 {
				line := draw.LineStyle{Color: colour("ink"), Width: 1}
				c.StrokeLine2(line, lo, middle, end, middle)
				c.StrokeLine2(line, lo, middle-3, lo, middle+3)
				c.StrokeLine2(line, end, middle-3, end, middle+3)
			}
			c.FillText(label, vg.Point{X: end + 4, Y: middle}, r.Cells[column].Value())
		}
	}
}

// names is the room for the rows' names. The reader's font may be wider than the one that
// is measured here.
func (b *barPlotter) names() vg.Length {
	widest := vg.Length(0)
	for _, r := range b.table.Rows {
		widest = max(widest, style("ink").Width(r.Name))
	}
	return 1.15*widest + 10
}

// GlyphBoxes makes room for the names and for the figures behind the bars.
func (b *barPlotter) GlyphBoxes(p *plot.Plot) []plot.GlyphBox {
	boxes := []plot.GlyphBox{{Rectangle: vg.Rectangle{Min: vg.Point{X: -b.names()}}}}
	for _, r := range b.table.Rows {
		for _, k := range b.columns {
			if s, ok := value(r.Cells[k], b.log); ok {
				width := 1.15*style("ink").Width(r.Cells[k].Value()) + 8
				boxes = append(boxes, plot.GlyphBox{X: min(p.X.Norm(s.Hi), 1), Rectangle: vg.Rectangle{Max: vg.Point{X: width}}})
			}
		}
	}
	return boxes
}
