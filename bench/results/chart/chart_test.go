package chart

import (
	"encoding/xml"
	"io"
	"math"
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/bench/results"
	"github.com/tickflake/tickflake/bench/results/internal/specimen"
)

// all are the charts of a made-up report that have something to draw.
func all() []Chart {
	var charts []Chart
	r := specimen.Report(3)
	for i := range r.Sections {
		for _, c := range r.Sections[i].Charts {
			if c.ID != "index-splits" {
				charts = append(charts, Chart{c, r.Sections[i].Table(c.Table)})
			}
		}
	}
	return charts
}

// simple is a chart of one column, of rows that are ours.
func simple(kind results.Kind, log bool, values ...float64) Chart {
	t := &results.Table{ID: "t", Columns: []results.Column{{ID: "c", Title: "time", Unit: "ns"}}}
	for i, v := range values {
		t.Rows = append(t.Rows, results.Row{Name: strconv.Itoa(i), Group: results.Ours, Cells: []results.Cell{{Samples: []float64{v}}}})
	}
	return Chart{results.Chart{ID: "x", Title: "X", Kind: kind, Table: "t", LogY: log}, t}
}

// drawn is the chart in all its forms.
func drawn(t testing.TB, c Chart) map[string]string {
	wide, err := c.Inline(Wide)
	require.NoError(t, err, c.ID)
	narrow, err := c.Inline(Narrow)
	require.NoError(t, err, c.ID)
	file, err := c.Alone()
	require.NoError(t, err, c.ID)
	return map[string]string{"wide": wide, "narrow": narrow, "alone": file}
}

// texts are those of an SVG, which it parses.
func texts(t testing.TB, svg string) []string {
	var all []string
	in := false
	for d := xml.NewDecoder(strings.NewReader(svg)); ; {
		token, err := d.Token()
		if err == io.EOF {
			return all
		}
		require.NoError(t, err)
		switch token := token.(type) {
		case xml.StartElement:
			in = token.Name.Local == "text"
		case xml.EndElement:
			in = false
		case xml.CharData:
			if in {
				all = append(all, string(token))
			}
		}
	}
}

func TestEveryFormIsWellFormedAndHasAllRows(t *testing.T) {
	for _, c := range all() {
		for form, svg := range drawn(t, c) {
			said := strings.Join(texts(t, svg), "\n")
			for _, row := range c.Table.Rows {
				assert.Contains(t, said, string([]rune(row.Name)[:min(len([]rune(row.Name)), 20)]), "%s, %s", c.ID, form)
			}
			assert.NotRegexp(t, "#AB[0-9A-F]{4}", svg, "%s, %s: a role was left without a colour", c.ID, form)
			assert.NotContains(t, svg, "Liberation;", "%s, %s", c.ID, form)
			if form == "alone" {
				assert.NotContains(t, svg, "var(--", c.ID)
			} else {
				assert.NotRegexp(t, "(fill|stroke):#", svg, "%s, %s: a colour that no theme can change", c.ID, form)
			}
		}
	}
}

// Whatever role, whatever tint, a mark comes out as its own colour.
func TestMarksBecomeColours(t *testing.T) {
	for r := range roles {
		for _, percent := range []int{1, 6, 50, 100} {
			for _, th := range []theme{inline, alone} {
				out, c := drawing{width: 10}.canvas(10)
				c.SetColor(r.tint(percent))
				c.Fill(c.Path())
				body, err := th.body(out)
				require.NoError(t, err)
				assert.Contains(t, body, "fill:"+th.colour(r, percent)+`"`)
			}
		}
	}
	assert.Equal(t, "#7f7f7f", mixed("#ffffff", "#000000", 50))
}

// luminance is that of WCAG 2.
func luminance(colour string) float64 {
	l := 0.0
	for i, weight := range []float64{0.2126, 0.7152, 0.0722} {
		v, _ := strconv.ParseUint(colour[1+2*i:3+2*i], 16, 8)
		c := float64(v) / 255
		if c <= 0.04045 {
			l += weight * c / 12.92
		} else {
			l += weight * math.Pow((c+0.055)/1.055, 2.4)
		}
	}
	return l
}

func contrast(a, b string) float64 {
	x, y := luminance(a), luminance(b)
	return (max(x, y) + 0.05) / (min(x, y) + 0.05)
}

func TestPaletteCanBeSeen(t *testing.T) {
	for r, s := range palette {
		least := 3.0 // of what is no text
		switch role(r) {
		case ink, soft:
			least = 4.5
		case paper, rule:
			continue
		}
		assert.GreaterOrEqual(t, contrast(s.light, palette[paper].light), least, "%s, light", s.name)
		assert.GreaterOrEqual(t, contrast(s.dark, palette[paper].dark), least, "%s, dark", s.name)
	}
	assert.InDelta(t, 21, contrast("#ffffff", "#000000"), 1e-9)
}

var barPaths = regexp.MustCompile(`<path d="M([\d.]+),[\d.]+L([\d.]+),[^"]*" style="fill:var\(--ours\)"`)

// widths are those of the bars.
func widths(t testing.TB, svg string) []float64 {
	var all []float64
	for _, found := range barPaths.FindAllStringSubmatch(svg, -1) {
		x0, err := strconv.ParseFloat(found[1], 64)
		require.NoError(t, err)
		x1, err := strconv.ParseFloat(found[2], 64)
		require.NoError(t, err)
		all = append(all, x1-x0)
	}
	return all
}

func TestBarsAreAsLongAsTheirValues(t *testing.T) {
	values := []float64{10, 20, 5, 40}
	for form, svg := range drawn(t, simple(results.Bars, false, values...)) {
		if form == "alone" {
			continue
		}
		got := widths(t, svg)
		require.Len(t, got, len(values), form)
		for i, v := range values {
			assert.InDelta(t, v/values[0], got[i]/got[0], 0.02, form)
		}
	}
	svg, err := simple(results.Bars, true, 1, 10, 100, 1000).Inline(Wide)
	require.NoError(t, err)
	got := widths(t, svg)
	require.Len(t, got, 4)
	assert.InDelta(t, got[1]-got[0], got[2]-got[1], 0.2)
	assert.InDelta(t, got[2]-got[1], got[3]-got[2], 0.2)
	assert.Greater(t, got[0], 5.0, "the shortest bar can be seen")
}

// where returns the coordinate of a text, with y upwards.
func where(t testing.TB, svg, said string, vertical bool) float64 {
	found := regexp.MustCompile(`<text [^>]*\bx="([-\d.]+)" y="([-\d.]+)"[^>]*>` + regexp.QuoteMeta(said) + `</text>`).FindStringSubmatch(svg)
	require.NotNil(t, found, "no text %q", said)
	x, err := strconv.ParseFloat(found[1], 64)
	require.NoError(t, err)
	y, err := strconv.ParseFloat(found[2], 64)
	require.NoError(t, err)
	if vertical {
		return -y
	}
	return x
}

// The axis has to tell the same as the bar: the median, and not the mean or an end of
// the interval.
func TestBarsEndAtTheirMedians(t *testing.T) {
	for _, log := range []bool{false, true} {
		c := simple(results.Bars, log, 0)
		c.Table.Rows[0].Cells[0].Samples = []float64{13, 17, 700}
		svg, err := c.Inline(Wide)
		require.NoError(t, err)
		bars := barPaths.FindAllStringSubmatch(svg, -1)
		require.Len(t, bars, 1)
		end, err := strconv.ParseFloat(bars[0][2], 64)
		require.NoError(t, err)
		if log {
			a, b := where(t, svg, "10", false), where(t, svg, "100", false)
			assert.InDelta(t, a+(b-a)*math.Log10(1.7), end, 0.3)
			continue
		}
		a, b := where(t, svg, "200", false), where(t, svg, "600", false)
		assert.InDelta(t, a+(b-a)*(17-200)/400, end, 0.3)
	}
}

func TestZeroOnALogarithmicAxisHasNoBar(t *testing.T) {
	c := simple(results.Bars, true, 0, 10)
	svg, err := c.Inline(Wide)
	require.NoError(t, err)
	assert.Len(t, widths(t, svg), 1)
	assert.Contains(t, texts(t, svg), "0", "but a figure")
	// With nothing above zero the axis is a linear one.
	svg, err = simple(results.Bars, true, 0, -3).Inline(Wide)
	require.NoError(t, err)
	assert.NotContains(t, svg, "logarithmic")
}

var linePaths = regexp.MustCompile(`<path d="M([^"]*)" style="fill:none;stroke:var\(--ours\);stroke-width:2`)

func TestLinesGoThroughTheirValues(t *testing.T) {
	table := &results.Table{ID: "t", Rows: []results.Row{{Name: "r", Group: results.Ours}}}
	values := []float64{10, 40, 20, 80}
	for i, v := range values {
		table.Columns = append(table.Columns, results.Column{ID: strconv.Itoa(i), Title: strconv.Itoa(i), X: math.Pow(2, float64(i))})
		table.Rows[0].Cells = append(table.Rows[0].Cells, results.Cell{Samples: []float64{v}})
	}
	c := Chart{results.Chart{ID: "x", Kind: results.Lines, Table: "t", LogX: true}, table}
	svg, err := c.Inline(Wide)
	require.NoError(t, err)
	found := linePaths.FindStringSubmatch(svg)
	require.NotNil(t, found)
	var xs, ys []float64
	for point := range strings.SplitSeq(found[1], "L") {
		x, y, _ := strings.Cut(point, ",")
		for _, coordinate := range []struct {
			text string
			of   *[]float64
		}{{x, &xs}, {y, &ys}} {
			v, err := strconv.ParseFloat(coordinate.text, 64)
			require.NoError(t, err)
			*coordinate.of = append(*coordinate.of, v)
		}
	}
	require.Len(t, ys, 4)
	unit := (ys[3] - ys[0]) / 70
	for i, v := range values {
		assert.InDelta(t, ys[0]+unit*(v-10), ys[i], 0.2, "height of point %d", i)
		assert.InDelta(t, xs[0]+float64(i)*(xs[1]-xs[0]), xs[i], 0.2, "powers of two are equally far apart")
	}
	// And the axes tell the same.
	low, high := where(t, svg, "20", true), where(t, svg, "80", true)
	assert.InDelta(t, (high-low)/60, unit, 0.01)
	assert.InDelta(t, low+4, ys[2], 2, "a label stands beside its height")
	assert.InDelta(t, where(t, svg, "2", false), xs[2], 0.2)
}

func TestEveryLineLooksDifferent(t *testing.T) {
	for _, c := range all() {
		if c.Kind != results.Lines {
			continue
		}
		seen := map[marker]string{}
		for _, s := range (drawing{Chart: c}).series() {
			assert.Empty(t, seen[s.marker], "%s: %s looks the same", c.ID, s.row.Name)
			seen[s.marker] = s.row.Name
		}
	}
}

func TestManyColumnsAreHistograms(t *testing.T) {
	table := &results.Table{ID: "t"}
	for i := range 16 {
		table.Columns = append(table.Columns, results.Column{ID: strconv.Itoa(i), Title: strconv.Itoa(i), Unit: "%"})
	}
	for _, name := range []string{"all in one", "even"} {
		row := results.Row{Name: name, Group: results.Ours}
		for i := range 16 {
			v := 6.25
			if name == "all in one" {
				v = 0
				if i == 3 {
					v = 100
				}
			}
			row.Cells = append(row.Cells, results.Cell{Samples: []float64{v}})
		}
		table.Rows = append(table.Rows, row)
	}
	for _, svg := range drawn(t, Chart{results.Chart{ID: "x", Kind: results.Bars, Table: "t"}, table}) {
		said := texts(t, svg)
		assert.Contains(t, said, "100")
		assert.Contains(t, said, "6.250")
		assert.Contains(t, said, "15")
	}
}

func TestLabelsCanSayAnything(t *testing.T) {
	name := "<b>&\"' fill:#AB6400 \uE001 stroke:#123456"
	c := simple(results.Bars, false, 1, 2)
	c.Table.Rows[0].Name = name
	for _, svg := range drawn(t, c) {
		assert.Contains(t, strings.Join(texts(t, svg), "\n"), "<b>&\"' fill:#AB6400  stroke")
	}
}

func TestNothingMeasured(t *testing.T) {
	c := simple(results.Bars, false, 1)
	c.Table.Rows[0].Cells[0] = results.Cell{Text: "never"}
	_, err := c.Inline(Wide)
	assert.ErrorIs(t, err, ErrEmpty)
	_, err = c.Alone()
	assert.ErrorIs(t, err, ErrEmpty)
}

// Whatever the figures, a chart is drawn, and its coordinates are numbers.
func TestAnyFigures(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 8))
	for range 100 {
		table := &results.Table{ID: "t"}
		columns, rows := 1+random.IntN(12), 1+random.IntN(5)
		for i := range columns {
			table.Columns = append(table.Columns, results.Column{ID: strconv.Itoa(i), Title: strconv.Itoa(i), X: float64(random.IntN(5) - 1)})
		}
		for i := range rows {
			row := results.Row{Name: strings.Repeat("n", i*20), Group: []results.Group{"", results.Ours, results.Peers, results.Floor}[random.IntN(4)]}
			for range columns {
				var cell results.Cell
				for range random.IntN(9) {
					v := math.Pow(10, float64(random.IntN(20)-8))
					cell.Samples = append(cell.Samples, []float64{0, v, -v, v * random.Float64()}[random.IntN(4)])
				}
				row.Cells = append(row.Cells, cell)
			}
			table.Rows = append(table.Rows, row)
		}
		c := Chart{results.Chart{ID: "x", Table: "t", Kind: []results.Kind{results.Bars, results.Lines}[random.IntN(2)], LogX: random.IntN(2) == 0, LogY: random.IntN(2) == 0}, table}
		if len(c.drawn()) == 0 {
			continue
		}
		for form, svg := range drawn(t, c) {
			require.NotContains(t, svg, "NaN", form)
			require.NotContains(t, svg, "Inf", form)
		}
	}
}

func TestExtremeFigures(t *testing.T) {
	for _, v := range []float64{math.MaxFloat64, math.SmallestNonzeroFloat64, -math.MaxFloat64, 1e-99, 1e99, huge, tiny} {
		for _, log := range []bool{false, true} {
			for _, kind := range []results.Kind{results.Bars, results.Lines} {
				for _, svg := range drawn(t, simple(kind, log, v, 1, 0)) {
					assert.NotContains(t, svg, "NaN")
					assert.NotContains(t, svg, "Inf")
				}
			}
		}
	}
}
