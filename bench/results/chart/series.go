package chart

import (
	"math"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/tickflake/tickflake/bench/results"
)

// series is how a row is drawn as a line.
type series struct {
	row    *results.Row
	colour role
	dashes []vg.Length
	marker marker
}

// dashes are the patterns of a group's lines, in turn; floors have their own.
var (
	dashes = [][]vg.Length{nil, {8, 4}, {10, 3, 2, 3}}
	dots   = []vg.Length{2, 3}
)

// series returns the rows with a look for each, which differs from those of the others
// in more than colour.
func (d drawing) series() []series {
	nth := map[results.Group]int{}
	var all []series
	for i := range d.Table.Rows {
		row := &d.Table.Rows[i]
		shades, n := shades(row.Group), nth[row.Group]
		nth[row.Group]++
		s := series{row: row, colour: shades[n%len(shades)], dashes: dashes[n%len(dashes)], marker: marker{i % len(shapes), i / len(shapes) % 2}}
		if row.Group == results.Floor {
			s.dashes = dots
		}
		all = append(all, s)
	}
	return all
}

// line is the style of the series' line.
func (s series) line() draw.LineStyle { return line(s.colour, 2, s.dashes...) }

// point draws one of the series' points.
func (s series) point(c *draw.Canvas, at vg.Point) { s.marker.draw(c, s.colour, at) }

// sign draws a piece of the line with its marker, for a legend.
func (s series) sign(c *draw.Canvas, at vg.Point) {
	c.StrokeLine2(s.line(), at.X, at.Y, at.X+signWidth, at.Y)
	s.point(c, vg.Point{X: at.X + signWidth/2, Y: at.Y})
}

// marker is a shape, filled or hollow.
type marker struct{ shape, hollow int }

// shapes have so many corners, of which the first is at an angle: a circle, a square, a
// triangle, a diamond, and a triangle on its head.
var shapes = []struct {
	corners int
	from    float64
	radius  vg.Length
}{{0, 0, 4}, {4, math.Pi / 4, 5}, {3, math.Pi / 2, 5.2}, {4, 0, 5}, {3, -math.Pi / 2, 5.2}}

func (m marker) draw(c *draw.Canvas, colour role, at vg.Point) {
	shape := shapes[m.shape]
	var path vg.Path
	if shape.corners == 0 {
		path.Move(vg.Point{X: at.X + shape.radius, Y: at.Y})
		path.Arc(at, shape.radius, 0, 2*math.Pi)
	}
	for i := range shape.corners {
		sin, cos := math.Sincos(shape.from + 2*math.Pi*float64(i)/float64(shape.corners))
		corner := vg.Point{X: at.X + shape.radius*vg.Length(cos), Y: at.Y + shape.radius*vg.Length(sin)}
		if i == 0 {
			path.Move(corner)
		} else {
			path.Line(corner)
		}
	}
	path.Close()
	inside, edge := colour, paper
	if m.hollow > 0 {
		inside, edge = paper, colour
	}
	c.SetColor(inside.mark())
	c.Fill(path)
	c.SetLineStyle(line(edge, 1.2))
	c.Stroke(path)
}
