package page

import (
	"fmt"
	"html/template"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// The picture's size in its own units, close to pixels on a wide screen; a phone shrinks it to two thirds.
const (
	width, height = 520.0, 296.0
	rightMargin   = 16.0
	bottomMargin  = 46.0
	letter        = 7.4 // an average letter, at the size that a phone uses
	markRow       = 16.0
	nameRow       = 14.0
	colours       = 8 // in the style sheet
)

// picture is a chart as the template places it.
type picture struct {
	Title, Note string
	SVG         template.HTML
	Axes        string // for the crosshair: the scales as JSON
	Legend      []entry
	Empty       bool
	Undrawn     int    // series beyond the bound
	Shade       string // what the shaded stretches are, where there are some
}

// entry is a series in the legend and in the numbers below the picture.
type entry struct {
	Name                 string
	Swatch               template.HTML
	Points               string
	Least, Greatest, End string
}

// plot is the work on one picture.
type plot struct {
	Chart
	pen
	id                       int
	curves                   []curve
	x, y                     scale
	xTicks, yTicks           []tick
	left, right, top, bottom float64
	slot                     float64 // the room of one place on the X axis of bars
	marks                    []placedMark
	shaded                   []Span // in pixels
}

type placedMark struct {
	at, textAt float64
	row        int // -1: no room for its label
	end        bool
	label      string
}

func (c Chart) draw(id int) picture {
	raw := c.curves()
	p := plot{Chart: c, id: id, curves: raw}
	if c.Kind == Stack {
		p.curves = stackUp(raw)
	}
	view := picture{Title: c.Title, Note: c.Note, Undrawn: max(0, len(c.Series)-mostSeries)}
	xs, ys := extents(p.curves)
	if !xs.ok {
		view.Empty = true
		return view
	}
	p.layOut(xs, ys)
	if p.shaded = p.stretches(); len(p.shaded) > 0 {
		view.Shade = c.Shade
	}
	p.open(raw)
	p.drawFrame()
	switch c.Kind {
	case Bars:
		p.drawBars()
	case Stack:
		p.drawStack()
	default:
		p.drawLines()
	}
	p.drawMarks()
	p.raw("</svg>")
	view.SVG = template.HTML(p.String()) //nolint:gosec // the pen escapes every text
	view.Axes, view.Legend = p.axes(), legend(c.Kind, raw)
	return view
}

// layOut decides the scales and the margins.
func (p *plot) layOut(xs, ys extent) {
	for _, m := range p.Marks {
		if p.Kind != Bars && (scale{log: p.LogX}).shows(m.At) {
			xs.include(m.At)
		}
	}
	p.x, p.xTicks = placeAxis(xs, p.Chart)
	if p.Kind == Bars {
		p.barAxis(xs)
	}
	p.y, p.yTicks = valueAxis(ys, p.LogY && p.Kind != Stack)
	p.left = 16
	for _, t := range p.yTicks {
		p.left = max(p.left, 12+letter*float64(utf8.RuneCountInString(t.label)))
	}
	p.right = width - rightMargin
	p.slot = p.barSlot()
	p.x.from, p.x.to = p.left+p.slot/2, p.right-p.slot/2
	rows := p.placeMarks()
	p.top, p.bottom = 30+float64(rows)*markRow, height-bottomMargin
	for _, t := range p.xTicks {
		if len(p.placeLines(t.label)) > 1 {
			p.bottom = height - bottomMargin - nameRow
		}
	}
	p.y.from, p.y.to = p.bottom, p.top
}

// open begins the picture and describes it for those who cannot see it.
func (p *plot) open(raw []curve) {
	p.printf(`<svg viewBox="0 0 %s %s" role="img" aria-labelledby="t%d d%d">`, px(width), px(height), p.id, p.id)
	p.printf(`<title id="t%d">%s</title><desc id="d%d">%s</desc>`, p.id, escape(p.Title), p.id, escape(p.describe(raw)))
}

func (p *plot) describe(raw []curve) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s over %s.", p.Y, p.X)
	for _, e := range legend(p.Kind, raw) {
		fmt.Fprintf(&b, " %s: %s points, from %s to %s, at the end %s.", e.Name, e.Points, e.Least, e.Greatest, e.End)
	}
	for _, m := range p.marks {
		fmt.Fprintf(&b, " Mark: %s.", m.label)
	}
	if len(p.shaded) > 0 {
		fmt.Fprintf(&b, " Shaded: %s.", p.Shade)
	}
	return b.String()
}

func (p *plot) drawFrame() {
	for _, s := range p.shaded {
		p.printf(`<path class="shade" d="M%s %sH%sV%sH%sz"/>`, px(s.From), px(p.top), px(s.To), px(p.bottom), px(s.From))
	}
	p.text(0, 13, "start", p.Y)
	for _, t := range p.yTicks {
		y := p.y.at(t.at)
		p.printf(`<path class="grid" d="M%s %sH%s"/>`, px(p.left), px(y), px(p.right))
		p.text(p.left-7, y+4, "end", t.label)
	}
	p.printf(`<path class="base" d="M%s %sH%s"/>`, px(p.left), px(p.ground()), px(p.right))
	p.drawPlaces()
	p.text(p.right, height-5, "end", p.placeName())
}

// ground is where bars and areas stand: on zero, or on the floor of a logarithmic axis.
func (p *plot) ground() float64 {
	if p.y.log {
		return p.bottom
	}
	return p.y.at(0)
}

// axes tells the crosshair how to turn pixels back into values. Bars have none: their numbers stand on them.
func (p *plot) axes() string {
	if p.Kind == Bars {
		return ""
	}
	kind := "n"
	switch {
	case p.LogX && holdsPercentiles(p.Chart.X):
		kind = "p"
	case !p.LogX && holdsSeconds(p.Chart.X):
		kind = "t"
	}
	return "[" + p.x.json() + "," + p.y.json() + `,"` + kind + `"]`
}

func (s scale) json() string {
	part := func(v float64) string { return strconv.FormatFloat(v, 'g', 8, 64) }
	return fmt.Sprintf("[%s,%s,%s,%s,%t]", px(s.from), px(s.to), part(s.lo), part(s.hi), s.log)
}

func legend(kind Kind, curves []curve) []entry {
	entries := make([]entry, 0, len(curves))
	for i, c := range curves {
		var values extent
		points, end := 0, math.NaN()
		for _, v := range c.ys {
			if !math.IsNaN(v) {
				values.include(v)
				points, end = points+1, v
			}
		}
		e := entry{Name: c.name, Swatch: swatch(kind, i, c, signed(curves, len(c.xs))), Points: decimal(float64(points), 0), Least: "–", Greatest: "–", End: number(end)}
		if values.ok {
			e.Least, e.Greatest = number(values.lo), number(values.hi)
		}
		entries = append(entries, e)
	}
	return entries
}
