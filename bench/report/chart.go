package report

import (
	"fmt"
	"html"
	"math"
	"strings"
	"unicode/utf8"
)

// Sizes in a chart, in CSS pixels.
const (
	chartWidth = 800
	phoneWidth = 420 // of the chart that opens the report, which a phone shows whole
	barHeight  = 18
	lineHeight = 300 // of a chart of lines, without its axis
	axisHeight = 44
	charWidth  = 6.8 // about that of a letter
)

// shades are the colours of a group's lines, in turn. The style sheet has a variable for each.
var shades = map[Group][]string{
	Ours: {"ours", "ours1", "ours2"}, Peers: {"peer", "peer1", "peer2", "peer3", "peer4"}, Floor: {"floor"}, "": {"ours2"},
}

// scale maps values to pixels.
type scale struct {
	least, most, from, to float64
	log                   bool
}

func (s scale) at(v float64) float64 {
	least, most := s.least, s.most
	if s.log {
		v, least, most = math.Log10(max(v, least)), math.Log10(least), math.Log10(most)
	}
	return s.from + (min(max(v, least), most)-least)/(most-least)*(s.to-s.from)
}

// ticks are powers of ten, or about five round numbers.
func (s scale) ticks() (all []float64) {
	if s.log {
		for v := s.least; v <= s.most*1.01; v *= 10 {
			all = append(all, v)
		}
		return all
	}
	step := math.Pow(10, math.Floor(math.Log10((s.most-s.least)/4)))
	for _, by := range []float64{2, 2.5, 2} { // 2, 5, 10
		if (s.most-s.least)/step > 6 {
			step *= by
		}
	}
	for i := math.Ceil(s.least / step); i*step <= s.most; i++ {
		all = append(all, math.Round(i*step*1e9)/1e9)
	}
	return all
}

// drawing is a chart that is being drawn.
type drawing struct {
	Chart
	*Table
	columns []int
	svg     strings.Builder
}

// Chart draws a chart of the table as SVG, or "" if nothing was measured for it. The colours are
// those of the style sheet's variables.
func (t *Table) chart(c Chart) string {
	d := &drawing{Chart: c, Table: t, columns: t.drawn(c)}
	if len(d.columns) == 0 {
		return ""
	}
	width, height := float64(chartWidth), 0.0
	if c.ID == openingID {
		width = phoneWidth
	}
	if c.Lines {
		height = d.lines(width)
	} else {
		height = d.bars(width)
	}
	label := html.EscapeString(c.Title + "; all figures are in the table " + t.Title)
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %g %g" width="%g" height="%g" role="img" aria-label="%s" font-family="'Liberation Sans',Arial,sans-serif" font-size="12">%s</svg>`,
		width, height, width, height, label, d.svg.String())
}

func (d *drawing) text(x, y float64, anchor, shade, text string) {
	fmt.Fprintf(&d.svg, `<text x="%.1f" y="%.1f" text-anchor="%s" style="fill:var(--%s)">%s</text>`, x, y, anchor, shade, html.EscapeString(text))
}

func (d *drawing) line(shade string, x1, y1, x2, y2 float64) {
	fmt.Fprintf(&d.svg, `<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" style="stroke:var(--%s)"/>`, x1, y1, x2, y2, shade)
}

// values is the scale of the cells: from 0, or between powers of ten if it is logarithmic.
func (d *drawing) values(from, to float64) scale {
	least, most := math.Inf(1), 0.0
	for _, r := range d.Rows {
		for _, k := range d.columns {
			if s, ok := r.Cells[k].Summary(); ok && (s.Median > 0 || !d.LogY) {
				least, most = min(least, s.Median), max(most, s.Hi)
			}
		}
	}
	if d.LogY && most > 0 {
		d.YLabel += " (logarithmic)"
		// A bar of the least value needs a length.
		return scale{math.Pow(10, math.Floor(math.Log10(least/1.3))), math.Pow(10, math.Ceil(math.Log10(most))), from, to, true}
	}
	if most <= 0 {
		most = 1
	}
	return scale{min(least, 0), most, from, to, false}
}

// names is the width of the longest name of a row.
func (d *drawing) names() (width float64) {
	for _, r := range d.Rows {
		width = max(width, charWidth*float64(utf8.RuneCountInString(r.Name)))
	}
	return width + 12
}

// bars draws a horizontal bar per row and column, with its interval and figure, and returns the
// height.
func (d *drawing) bars(width float64) float64 {
	x := d.values(d.names(), width-70)
	y := 6.0
	if len(d.columns) > 1 { // a legend of the columns
		for k, i := range d.columns {
			d.bar("soft", k, x.from, y, 24, barHeight-6)
			d.text(x.from+30, y+10, "start", "ink", d.Table.Columns[i].Title)
			y += barHeight
		}
	}
	bottom := y + float64(len(d.Rows))*(float64(len(d.columns))*barHeight+5)
	for _, v := range x.ticks() {
		d.line("rule", x.at(v), y, x.at(v), bottom)
		d.text(x.at(v), bottom+15, "middle", "soft", Figure(v))
	}
	for _, r := range d.Rows {
		d.text(0, y+float64(len(d.columns))*barHeight/2+4, "start", "ink", r.Name)
		for k, column := range d.columns {
			if s, ok := r.Cells[column].Summary(); ok {
				d.bar(shades[r.Group][0], k, x.from, y+2, x.at(s.Median)-x.from, barHeight-4)
				lo, hi, middle := x.at(s.Lo), x.at(s.Hi), y+barHeight/2
				if hi-lo > 4 {
					d.line("ink", lo, middle, hi, middle)
					d.line("ink", lo, middle-3, lo, middle+3)
					d.line("ink", hi, middle-3, hi, middle+3)
				}
				d.text(hi+5, middle+4, "start", "ink", r.Cells[column].Value())
			}
			y += barHeight
		}
		y += 5
	}
	d.text((x.from+x.to)/2, bottom+34, "middle", "soft", d.YLabel)
	return bottom + axisHeight
}

// bar draws a bar. That of a later column is paler.
func (d *drawing) bar(shade string, column int, x, y, width, height float64) {
	fmt.Fprintf(&d.svg, `<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" style="fill:var(--%s);fill-opacity:%.2f"/>`, x, y, width, height, shade, math.Pow(0.55, float64(column)))
}

// lines draws a line per row, with intervals, and returns the height.
func (d *drawing) lines(width float64) float64 {
	y := d.values(lineHeight, 12)
	first, last := d.Table.Columns[d.columns[0]].X, d.Table.Columns[d.columns[len(d.columns)-1]].X
	x := scale{first, max(last, first+1), 70, width - d.names() - 40, d.LogX && first > 0}
	d.text(0, 9, "start", "soft", d.YLabel)
	for _, v := range y.ticks() {
		d.line("rule", x.from, y.at(v), x.to, y.at(v))
		d.text(x.from-6, y.at(v)+4, "end", "soft", Figure(v))
	}
	for _, k := range d.columns {
		c := d.Table.Columns[k]
		d.line("rule", x.at(c.X), y.to, x.at(c.X), y.from)
		title, _, _ := strings.Cut(c.Title, " goroutine")
		d.text(x.at(c.X), y.from+16, "middle", "soft", title)
	}
	d.text((x.from+x.to)/2, y.from+34, "middle", "soft", d.XLabel)
	nth := map[Group]int{}
	for i, r := range d.Rows {
		n := nth[r.Group]
		nth[r.Group]++
		shade, dashes := shades[r.Group][n%len(shades[r.Group])], ""
		if r.Group == Floor {
			dashes = ";stroke-dasharray:" + strings.Repeat("4 3 ", n+1)
		}
		points := ""
		for _, k := range d.columns {
			if s, ok := r.Cells[k].Summary(); ok {
				at := x.at(d.Table.Columns[k].X)
				points += fmt.Sprintf("%.1f,%.1f ", at, y.at(s.Median))
				d.line(shade, at, y.at(s.Lo), at, y.at(s.Hi))
				fmt.Fprintf(&d.svg, `<circle cx="%.1f" cy="%.1f" r="3.5" style="fill:var(--%s)"/>`, at, y.at(s.Median), shade)
			}
		}
		fmt.Fprintf(&d.svg, `<polyline points="%s" style="fill:none;stroke-width:2;stroke:var(--%s)%s"/>`, points, shade, dashes)
		at := 18 + float64(i)*barHeight
		d.line(shade, x.to+14, at-4, x.to+34, at-4)
		d.text(x.to+40, at, "start", "ink", r.Name)
	}
	return max(lineHeight, 18+float64(len(d.Rows))*barHeight) + axisHeight
}
