package page

import (
	"html/template"
	"math"
	"slices"
	"unicode/utf8"
)

// drawLines draws the curves, then their signs on top, so that no line crosses a sign.
func (p *plot) drawLines() {
	var thinned []curve
	for _, c := range p.curves {
		c = p.pixels(c)
		c = c.only(thin(c.xs, c.ys, int(p.right-p.left)))
		p.line(c, false)
		thinned = append(thinned, c)
	}
	for i, c := range thinned {
		if signed(p.curves, len(c.xs)) {
			p.signs(i, c)
		}
	}
}

// few is the number of points up to which each one has its sign.
const few = 12

// signed says whether a curve bears signs: a lonely one of many points does not need them.
func signed(curves []curve, points int) bool { return len(curves) > 1 || points <= few }

// pixels moves a curve from values to places in the picture.
func (p *plot) pixels(c curve) curve {
	xs, ys := make([]float64, len(c.xs)), make([]float64, len(c.ys))
	for i := range xs {
		xs[i], ys[i] = p.x.at(c.xs[i]), p.y.at(c.ys[i])
	}
	c.xs, c.ys = xs, ys
	return c
}

// only keeps the chosen points.
func (c curve) only(kept []int) curve {
	xs, ys := make([]float64, len(kept)), make([]float64, len(kept))
	for to, from := range kept {
		xs[to], ys[to] = c.xs[from], c.ys[from]
	}
	c.xs, c.ys = xs, ys
	return c
}

// line draws a curve with its gaps; raised means that its values begin at the edge below it.
func (p *plot) line(c curve, raised bool) {
	class := c.class("line")
	p.printf(`<path class="%s" data-name="%s"`, class, escape(c.name))
	if raised {
		p.raw(` data-raised=""`)
	}
	p.raw(` d="`)
	for _, run := range c.runs() {
		p.trail(c.xs[run[0]:run[1]], c.ys[run[0]:run[1]])
	}
	p.raw(`"/>`)
}

func (c curve) class(kind string) string {
	class := kind + " c" + string(rune('0'+c.colour%colours))
	if c.second {
		class += " second"
	}
	return class
}

// runs are the stretches between gaps, as half-open ranges.
func (c curve) runs() [][2]int {
	var runs [][2]int
	start := -1
	for i, v := range c.ys {
		gap := math.IsNaN(v) || math.IsNaN(c.xs[i])
		if gap && start >= 0 {
			runs, start = append(runs, [2]int{start, i}), -1
		}
		if !gap && start < 0 {
			start = i
		}
	}
	if start >= 0 {
		runs = append(runs, [2]int{start, len(c.ys)})
	}
	return runs
}

// signs puts the series' shape on a few of its points: on each one when they are few. Series start at different places.
func (p *plot) signs(place int, c curve) {
	const apart = 96.0
	next := p.left + apart*(0.25+float64(place%4)*0.19)
	if len(c.xs) <= few {
		next = math.Inf(-1)
	}
	shown := false
	for i, x := range c.xs {
		if math.IsNaN(c.ys[i]) || x < next && (shown || i < len(c.xs)-1) {
			continue
		}
		p.sign(place, c, x, c.ys[i])
		shown = true
		if len(c.xs) > few {
			next = x + apart
		}
	}
}

// shapes are the signs of the series, around the place where the path begins.
var shapes = []string{
	"m-3.6 0a3.6 3.6 0 1 0 7.2 0a3.6 3.6 0 1 0-7.2 0z", // circle
	"m-3.3-3.3h6.6v6.6h-6.6z",                          // square
	"m0-4.4l4.3 7.6h-8.6z",                             // triangle
	"m0-4.8l4.8 4.8l-4.8 4.8l-4.8-4.8z",                // diamond
	"m0 4.4l4.3-7.6h-8.6z",                             // triangle on its head
	"m-1.5-4.5h3v3h3v3h-3v3h-3v-3h-3v-3h3z",            // cross
}

func (p *plot) sign(place int, c curve, x, y float64) {
	p.printf(`<path class="%s" d="M%s %s%s"/>`, c.class("sign"), px(x), px(y), shapes[place%len(shapes)])
}

// drawStack fills down to the ground, the topmost edge first, so that each lower layer covers its part; then it draws
// the edges and names each layer where it is thick enough.
func (p *plot) drawStack() {
	edges := p.thinStack(false)
	for _, c := range slices.Backward(edges) {
		p.area(c)
	}
	for i, c := range edges {
		p.line(c, i > 0)
	}
	for i, c := range edges {
		p.nameLayer(c, edges[:i])
	}
	for i, c := range p.thinStack(true) {
		p.line(c, i > 0)
	}
}

// thinStack thins all edges of one stack at the same places: those of the topmost.
func (p *plot) thinStack(second bool) []curve {
	var edges []curve
	for _, c := range p.curves {
		if c.second == second {
			edges = append(edges, p.pixels(c))
		}
	}
	if len(edges) == 0 {
		return nil
	}
	topmost := edges[len(edges)-1]
	kept := thin(topmost.xs, topmost.ys, int(p.right-p.left))
	for i := range edges {
		edges[i] = edges[i].only(kept)
	}
	return edges
}

func (p *plot) area(c curve) {
	p.printf(`<path class="%s" d="`, c.class("area"))
	for _, run := range c.runs() {
		p.trail(c.xs[run[0]:run[1]], c.ys[run[0]:run[1]])
		p.printf("V%sH%sz", px(p.ground()), px(c.xs[run[0]]))
	}
	p.raw(`"/>`)
}

// floorAt is the edge below a layer; the lowest layer stands on zero.
func (p *plot) floorAt(below []curve, i int) float64 {
	if len(below) == 0 {
		return p.ground()
	}
	return below[len(below)-1].ys[i]
}

// nameLayer writes a layer's name into it at the first of a few places that have room, the middle first.
func (p *plot) nameLayer(c curve, below []curve) {
	const lineHeight = 15
	half := letter*float64(utf8.RuneCountInString(c.name))/2 + 3
	for _, share := range []float64{0.5, 0.35, 0.65, 0.2, 0.8, 0.42, 0.58, 0.28, 0.72} {
		x := p.left + share*(p.right-p.left)
		if x-half < p.left || x+half > p.right {
			continue
		}
		if ceiling, ground, ok := p.clearance(c, below, x-half, x+half); ok && ground-ceiling >= lineHeight {
			p.text(x, (ceiling+ground)/2+4, "layer", c.name)
			return
		}
	}
}

// clearance is the room inside a layer between two places.
func (p *plot) clearance(c curve, below []curve, from, to float64) (ceiling, ground float64, ok bool) {
	ceiling, ground = 0, height
	first, last := math.Inf(1), math.Inf(-1)
	for i, x := range c.xs {
		if x < from-12 || x > to+12 {
			continue
		}
		if math.IsNaN(c.ys[i]) {
			return 0, 0, false
		}
		first, last = min(first, x), max(last, x)
		ceiling, ground = max(ceiling, c.ys[i]), min(ground, p.floorAt(below, i))
	}
	return ceiling, ground, first <= from && last >= to
}

// barSlot is the room that each place on the X axis has, so that neighbours do not touch.
func (p *plot) barSlot() float64 {
	if p.Kind != Bars {
		return 0
	}
	unit, nearest := scale{lo: p.x.lo, hi: p.x.hi, to: 1, log: p.x.log}, math.Inf(1)
	places := commonGrid(p.curves)
	for i := 1; i < len(places); i++ {
		nearest = min(nearest, unit.at(places[i])-unit.at(places[i-1]))
	}
	if math.IsInf(nearest, 1) {
		return p.right - p.left
	}
	return (p.right - p.left) * nearest / (1 + nearest)
}

// barAxis spans exactly the bars, and takes their names as ticks.
func (p *plot) barAxis(xs extent) {
	if xs.hi > xs.lo {
		p.x.lo, p.x.hi = xs.lo, xs.hi
	}
	if len(p.Names) == 0 {
		p.xTicks = within(p.xTicks, p.x)
		return
	}
	p.xTicks = nil
	for i, name := range p.Names {
		if at := float64(i); at >= p.x.lo && at <= p.x.hi {
			p.xTicks = append(p.xTicks, tick{at, name})
		}
	}
}

func within(ticks []tick, s scale) []tick {
	var inside []tick
	for _, t := range ticks {
		if t.at >= s.lo && t.at <= s.hi {
			inside = append(inside, t)
		}
	}
	return inside
}

func (p *plot) drawBars() {
	group := min(p.slot*0.8, 44*float64(len(p.curves)))
	thick := max(group/float64(len(p.curves)), 0.6)
	ground := p.ground()
	for k, c := range p.curves {
		offset := -group/2 + float64(k)*thick
		values := c
		c = p.pixels(c)
		for _, i := range thin(c.xs, c.ys, int(p.right-p.left)) {
			if math.IsNaN(c.ys[i]) {
				continue
			}
			p.bar(c, c.xs[i]+offset, thick, ground, c.ys[i])
			if thick >= 22 {
				p.text(c.xs[i]+offset+thick/2, min(ground, c.ys[i])-5, "", number(values.ys[i]))
			}
		}
	}
}

func (p *plot) bar(c curve, x, thick, ground, y float64) {
	gap := min(2, thick*0.15)
	p.printf(`<path class="%s" d="M%s %sh%sV%sh-%sz"/>`, c.class("bar"), px(x+gap/2), px(ground), px(thick-gap), px(y), px(thick-gap))
}

// swatch is a series' sign in the legend.
func swatch(kind Kind, place int, c curve, sign bool) template.HTML {
	var p plot
	p.raw(`<svg class="swatch" viewBox="0 0 28 12" aria-hidden="true">`)
	switch {
	case kind == Bars:
		p.printf(`<path class="%s" d="M8 1h12v10h-12z"/>`, c.class("bar"))
	case kind == Stack && !c.second:
		p.printf(`<path class="%s" d="M2 2h24v10h-24z"/><path class="%s" d="M2 2h24"/>`, c.class("area"), c.class("line"))
	default:
		p.printf(`<path class="%s" d="M1 6h26"/>`, c.class("line"))
		if sign && kind == Lines {
			p.sign(place, c, 14, 6)
		}
	}
	p.raw(`</svg>`)
	return template.HTML(p.String()) //nolint:gosec // no text in it
}
