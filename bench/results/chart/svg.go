package chart

import (
	"bytes"
	"fmt"
	"html"
	"regexp"
	"strconv"
	"strings"

	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/vgsvg"
)

// anchors are put before a text to tell the SVG where it is anchored. They are
// characters that no text has.
const (
	anchorStart  = '\uE000'
	anchorMiddle = '\uE001'
	anchorEnd    = '\uE002'
)

// slack is by how much a reader's font may be wider than the one measured with.
const slack = 1.08

// anchored is a text handler that leaves to the reader's program how wide a text is.
// The page has its own font, which is not the one that is measured here, so a text
// that ends somewhere must be anchored at its end.
type anchored struct{ text.Plain }

var handler = anchored{text.Plain{Fonts: font.DefaultCache}}

// Box measures with the slack.
func (a anchored) Box(txt string, fnt font.Font) (width, height, depth vg.Length) {
	width, height, depth = a.Plain.Box(txt, fnt)
	return width * slack, height, depth
}

// Draw draws one line that is not turned.
func (a anchored) Draw(c vg.Canvas, txt string, sty text.Style, pt vg.Point) {
	anchor := anchorStart
	switch sty.XAlign {
	case text.XCenter:
		anchor = anchorMiddle
	case text.XRight:
		anchor = anchorEnd
	}
	txt = strings.Map(func(r rune) rune {
		if r >= anchorStart && r <= anchorEnd {
			return -1
		}
		return r
	}, txt)
	face := a.Fonts.Lookup(sty.Font, sty.Font.Size)
	ext := face.Extents()
	c.SetColor(sty.Color)
	pt.Y += (ext.Ascent+ext.Descent)*vg.Length(sty.YAlign) - ext.Ascent + sty.Font.Size
	c.FillString(face, pt, string(anchor)+txt)
}

// theme puts colours and a font in place of roles.
type theme struct {
	colour func(r role, percent int) string
	font   string
}

// inline leaves the colours to the page.
var inline = theme{
	colour: func(r role, percent int) string {
		full := fmt.Sprintf("var(--%s)", palette[r].name)
		if percent == 100 {
			return full
		}
		return fmt.Sprintf("color-mix(in srgb, %s %d%%, var(--paper))", full, percent)
	},
	font: "inherit",
}

// alone has the colours of the light theme, on paper of its own.
var alone = theme{
	colour: func(r role, percent int) string { return mixed(palette[r].light, palette[paper].light, percent) },
	font:   "-apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', 'Liberation Sans', Arial, sans-serif",
}

// mixed is so many percent of colour a in b.
func mixed(a, b string, percent int) string {
	var out [3]int
	for i := range out {
		x, _ := strconv.ParseUint(a[1+2*i:3+2*i], 16, 8)
		y, _ := strconv.ParseUint(b[1+2*i:3+2*i], 16, 8)
		out[i] = (int(x)*percent + int(y)*(100-percent)) / 100
	}
	return fmt.Sprintf("#%02x%02x%02x", out[0], out[1], out[2])
}

var (
	tags     = regexp.MustCompile(`<[^>]*>`)
	marks    = regexp.MustCompile(`#AB[0-9A-F]{4}`)
	fonts    = regexp.MustCompile(`font-family:[^;"]*;font-variant:[^;"]*;font-weight:[^;"]*;font-style:[^;"]*;`)
	textTags = regexp.MustCompile(`<text ([^>]*)>([\x{E000}-\x{E002}])`)
)

// body returns what stands inside of the canvas' svg element, in the theme.
func (t theme) body(c *vgsvg.Canvas) (string, error) {
	var out bytes.Buffer
	if _, err := c.WriteTo(&out); err != nil {
		return "", err
	}
	_, inside, _ := strings.Cut(out.String(), "<svg ")
	_, inside, found := strings.Cut(inside, ">")
	inside, _, ended := strings.Cut(inside, "</svg>")
	if !found || !ended {
		return "", fmt.Errorf("gonum/plot wrote no svg element: %.80q", out.String())
	}
	// Only what stands in tags is changed: a label can say anything.
	inside = tags.ReplaceAllStringFunc(inside, func(tag string) string {
		tag = fonts.ReplaceAllString(tag, "")
		return marks.ReplaceAllStringFunc(tag, func(mark string) string {
			percent, _ := strconv.ParseUint(mark[3:5], 16, 8) // the pattern lets nothing else through
			r, _ := strconv.ParseUint(mark[5:], 16, 8)
			return t.colour(role(r), int(percent))
		})
	})
	inside = textTags.ReplaceAllStringFunc(inside, func(tag string) string {
		for anchor, name := range map[rune]string{anchorStart: "start", anchorMiddle: "middle", anchorEnd: "end"} {
			if before, ok := strings.CutSuffix(tag, string(anchor)); ok {
				return strings.Replace(before, "<text ", `<text text-anchor="`+name+`" `, 1)
			}
		}
		return tag
	})
	return strings.TrimSpace(inside), nil
}

// element puts the svg element around a body. Its IDs begin with id.
// The drawing's corner is at origin, in both directions.
func element(id, title, desc, attributes, style string, origin int, body string, w, h vg.Length) string {
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" id="%[1]s" viewBox="%[9]d %[9]d %[2]g %[3]g" width="%[2]g" height="%[3]g" role="img" aria-labelledby="%[1]s-title %[1]s-desc"%[4]s style="%[5]s">
<title id="%[1]s-title">%[6]s</title>
<desc id="%[1]s-desc">%[7]s</desc>
%[8]s
</svg>`, html.EscapeString(id), w.Points(), h.Points(), attributes, style, html.EscapeString(title), html.EscapeString(desc), body, origin)
}
