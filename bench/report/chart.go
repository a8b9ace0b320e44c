package report

import (
	"fmt"
	"html"
	"strings"
	"unicode/utf8"
)

// Sizes in a chart, in CSS pixels.
const (
	width       = 480.0 // which a phone shows whole
	barHeight   = 18
	titleHeight = 22
	charWidth   = 6.8 // about that of a letter
)

// shades are the colours of the groups. The style sheet has a variable for each.
var shades = map[Group]string{Ours: "ours", Peers: "peer", Floor: "floor"}

// chart draws the chart of the table as SVG: a horizontal bar per row, with its interval and figure.
// It is "" if there is none or nothing was measured for it. The colours are those of the style
// sheet's variables.
func (t *Table) chart() string {
	if t.Chart == nil {
		return ""
	}
	names, most := 0.0, 0.0 // the width of the longest name of a row, and the greatest value
	for _, r := range t.Rows {
		names = max(names, charWidth*float64(utf8.RuneCountInString(r.Name))+12)
		if s, ok := t.Cell(r.Name, t.Chart.Column).Summary(); ok {
			most = max(most, s.Hi)
		}
	}
	if most <= 0 {
		return ""
	}
	var svg strings.Builder
	text := func(x, y float64, anchor, shade, text string) {
		fmt.Fprintf(&svg, `<text x="%.1f" y="%.1f" text-anchor="%s" style="fill:var(--%s)">%s</text>`, x, y, anchor, shade, html.EscapeString(text))
	}
	at := func(v float64) float64 { return names + max(v/most, 0)*(width-50-names) }
	for i, r := range t.Rows {
		top := 6 + float64(i)*(barHeight+5)
		middle := top + barHeight/2
		text(0, middle+4, "start", "ink", r.Name)
		cell := t.Cell(r.Name, t.Chart.Column)
		s, ok := cell.Summary()
		if !ok {
			continue
		}
		fmt.Fprintf(&svg, `<rect x="%.1f" y="%.1f" width="%.1f" height="%d" style="fill:var(--%s)"/>`, names, top+2, at(s.Median)-names, barHeight-4, shades[r.Group])
		if lo, hi := at(s.Lo), at(s.Hi); hi-lo > 4 {
			fmt.Fprintf(&svg, `<path d="M%.1f %.1fv6m0-3H%.1fm0-3v6" style="fill:none;stroke:var(--ink)"/>`, lo, middle-3, hi)
		}
		text(at(s.Hi)+5, middle+4, "start", "ink", cell.Value())
	}
	bottom := 6 + float64(len(t.Rows))*(barHeight+5)
	text((names+width-50)/2, bottom+12, "middle", "soft", t.Chart.Label)
	height := bottom + 20 + titleHeight
	label := html.EscapeString(t.Chart.Title + "; all figures are in the table " + t.Title)
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %g %g" width="%g" height="%g" role="img" aria-label="%s" font-family="'Liberation Sans',Arial,sans-serif" font-size="12">`+
		`<text y="13" font-weight="bold" style="fill:var(--ink)">%s</text><g transform="translate(0 %d)">%s</g></svg>`,
		width, height, width, height, label, html.EscapeString(t.Chart.Title), titleHeight, svg.String())
}
