package page

import (
	"fmt"
	"html/template"
	"math"
	"slices"
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
	colours       = 8 // in the style sheet
)

// picture is a chart as the template places it.
type picture struct {
	Title, Note string
	SVG         template.HTML
	Axes        string // for the crosshair: the scales as JSON
	Legend      []entry
	Empty       bool
	Undrawn     int // series beyond the bound
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
	p.y.from, p.y.to = p.bottom, p.top
}

// placeMarks finds a row for each label where it does not touch another, and says how many rows that took.
func (p *plot) placeMarks() int {
	const most = 3
	free := [most]float64{}
	rows := 0
	marks := slices.Clone(p.Marks)
	slices.SortStableFunc(marks, func(a, b Mark) int { return compareFinite(a.At, b.At) })
	for _, m := range marks {
		at := p.x.at(m.At)
		if !(at >= p.left-1 && at <= p.right+1) {
			continue
		}
		placed := placedMark{at: at, textAt: at + 4, row: -1, label: m.Label}
		size := letter*float64(utf8.RuneCountInString(m.Label)) + 4
		start := at
		if at+size > width {
			placed.end, placed.textAt, start = true, at-4, at-size
		}
		for row := 0; row < most && start >= 0; row++ {
			if start >= free[row] {
				placed.row, free[row] = row, start+size+6
				rows = max(rows, row+1)
				break
			}
		}
		p.marks = append(p.marks, placed)
	}
	return rows
}

func compareFinite(a, b float64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
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
	return b.String()
}

func (p *plot) drawFrame() {
	p.text(0, 13, "start", p.Y)
	for _, t := range p.yTicks {
		y := p.y.at(t.at)
		class := "grid"
		if y >= p.bottom-0.05 || t.at == 0 && !p.y.log {
			class = "base"
		}
		p.printf(`<path class="%s" d="M%s %sH%s"/>`, class, px(p.left), px(y), px(p.right))
		p.text(p.left-7, y+4, "end", t.label)
	}
	p.drawPlaces()
	p.text(p.right, height-5, "end", p.placeName())
}

// drawPlaces writes the ticks of the X axis as far as their labels do not touch.
func (p *plot) drawPlaces() {
	free := math.Inf(-1)
	for _, t := range p.xTicks {
		x, label := p.x.at(t.at), t.label
		if len(p.Names) > 0 && p.Kind == Bars {
			label = shorten(label, p.slot)
		}
		half := letter * float64(utf8.RuneCountInString(label)) / 2
		p.printf(`<path class="base" d="M%s %sv4"/>`, px(x), px(p.bottom))
		if x-half < free {
			continue
		}
		free = x + half + 8
		if x+half > width {
			p.text(width, p.bottom+18, "end", label)
			continue
		}
		p.text(x, p.bottom+18, "", label)
	}
}

// placeName names the X axis. Ticks of time and of percentiles carry their unit themselves.
func (p *plot) placeName() string {
	if unit := unitOf(p.X); holdsSeconds(p.X) && !p.LogX || p.LogX && unit == "%" {
		return strings.TrimRight(strings.TrimRight(p.X, " )]")[:strings.LastIndex(p.X, unit)], " ,([")
	}
	return p.X
}

// shorten cuts a label to the room it has.
func shorten(label string, room float64) string {
	fits := max(2, int(room/letter))
	if runes := []rune(label); len(runes) > fits {
		return string(runes[:fits-1]) + "…"
	}
	return label
}

func (p *plot) drawMarks() {
	for _, m := range p.marks {
		y := p.top
		if m.row >= 0 {
			y = 24 + float64(m.row)*markRow
		}
		p.printf(`<path class="mark" d="M%s %sV%s"/>`, px(m.at), px(y), px(p.bottom))
		class := "start"
		if m.end {
			class = "end"
		}
		if m.row >= 0 {
			p.text(m.textAt, y+9, class, m.label)
		}
	}
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
