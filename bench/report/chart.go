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
	width       = 480.0 // which a phone shows whole
	barHeight   = 18
	axisHeight  = 44
	titleHeight = 22
	charWidth   = 6.8 // about that of a letter
)

// shades are the colours of the groups. The style sheet has a variable for each.
var shades = map[Group]string{Ours: "ours", Peers: "peer", Floor: "floor"}

// scale maps values from 0 to most to pixels.
type scale struct{ most, from, to float64 }

func (s scale) at(v float64) float64 { return s.from + min(max(v/s.most, 0), 1)*(s.to-s.from) }

// ticks are about five round numbers.
func (s scale) ticks() (all []float64) {
	step := math.Pow(10, math.Floor(math.Log10(s.most/4)))
	for _, by := range []float64{2, 2.5, 2} { // 2, 5, 10
		if s.most/step > 6 {
			step *= by
		}
	}
	for v := 0.0; v <= s.most; v += step {
		all = append(all, math.Round(v*1e9)/1e9)
	}
	return all
}

// drawing is a chart that is being drawn.
type drawing struct {
	*Table
	svg   strings.Builder
	names float64 // the width of the longest name of a row
	most  float64 // the greatest value
}

// chart draws the chart of the table as SVG, or "" if it has none or nothing was measured for it.
// The colours are those of the style sheet's variables.
func (t *Table) chart() string {
	if t.Chart == nil {
		return ""
	}
	d := &drawing{Table: t}
	for _, r := range t.Rows {
		d.names = max(d.names, charWidth*float64(utf8.RuneCountInString(r.Name))+12)
		if s, ok := t.Cell(r.Name, t.Chart.Column).Summary(); ok {
			d.most = max(d.most, s.Hi)
		}
	}
	if d.most <= 0 {
		return ""
	}
	height := d.bars() + titleHeight
	label := html.EscapeString(t.Chart.Title + "; all figures are in the table " + t.Title)
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %g %g" width="%g" height="%g" role="img" aria-label="%s" font-family="'Liberation Sans',Arial,sans-serif" font-size="12">`+
		`<text y="13" font-weight="bold" style="fill:var(--ink)">%s</text><g transform="translate(0 %d)">%s</g></svg>`,
		width, height, width, height, label, html.EscapeString(t.Chart.Title), titleHeight, d.svg.String())
}

func (d *drawing) text(x, y float64, anchor, shade, text string) {
	fmt.Fprintf(&d.svg, `<text x="%.1f" y="%.1f" text-anchor="%s" style="fill:var(--%s)">%s</text>`, x, y, anchor, shade, html.EscapeString(text))
}

func (d *drawing) line(shade string, x1, y1, x2, y2 float64) {
	fmt.Fprintf(&d.svg, `<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" style="stroke:var(--%s)"/>`, x1, y1, x2, y2, shade)
}

// bars draws a horizontal bar per row, with its interval and figure, and returns the height.
func (d *drawing) bars() float64 {
	x := scale{d.most, d.names, width - 50}
	bottom := 6 + float64(len(d.Rows))*(barHeight+5)
	for _, v := range x.ticks() {
		d.line("rule", x.at(v), 6, x.at(v), bottom)
		d.text(x.at(v), bottom+15, "middle", "soft", Figure(v))
	}
	for i, r := range d.Rows {
		top := 6 + float64(i)*(barHeight+5)
		middle := top + barHeight/2
		d.text(0, middle+4, "start", "ink", r.Name)
		cell := d.Cell(r.Name, d.Chart.Column)
		s, ok := cell.Summary()
		if !ok {
			continue
		}
		fmt.Fprintf(&d.svg, `<rect x="%.1f" y="%.1f" width="%.1f" height="%d" style="fill:var(--%s)"/>`, x.from, top+2, x.at(s.Median)-x.from, barHeight-4, shades[r.Group])
		if lo, hi := x.at(s.Lo), x.at(s.Hi); hi-lo > 4 {
			d.line("ink", lo, middle, hi, middle)
			d.line("ink", lo, middle-3, lo, middle+3)
			d.line("ink", hi, middle-3, hi, middle+3)
		}
		d.text(x.at(s.Hi)+5, middle+4, "start", "ink", cell.Value())
	}
	d.text((x.from+x.to)/2, bottom+34, "middle", "soft", d.Chart.Label)
	return bottom + axisHeight
}
