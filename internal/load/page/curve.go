package page

import (
	"cmp"
	"math"
	"slices"
)

// mostSeries bounds the drawing: with more, nobody can tell the curves apart.
const mostSeries = 16

// curve is a series made ready for drawing: sorted by X, as long as its shorter half, NaN for every gap.
type curve struct {
	name   string
	colour int
	second bool
	xs, ys []float64
}

// curves cleans the series of a chart and gives each its colour.
func (c Chart) curves() []curve {
	var ready []curve
	x, y := scale{log: c.LogX}, scale{log: c.LogY && c.Kind != Stack}
	colours := allotColours(c.Series)
	for i, s := range c.Series[:min(len(c.Series), mostSeries)] {
		k := curve{name: s.Name, colour: colours[i], second: s.Second}
		k.xs, k.ys = clean(s, x, y)
		ready = append(ready, k)
	}
	return ready
}

func allotColours(series []Series) []int {
	colours := make([]int, len(series))
	named := map[string]int{}
	firsts, seconds := 0, 0
	for i, s := range series {
		if s.Second {
			continue
		}
		colours[i] = firsts
		if _, taken := named[s.Name]; !taken {
			named[s.Name] = firsts
		}
		firsts++
	}
	for i, s := range series {
		if !s.Second {
			continue
		}
		colours[i] = seconds
		if colour, found := named[s.Name]; found {
			colours[i] = colour
		}
		seconds++
	}
	return colours
}

// clean drops points without a place, turns values that cannot be shown into gaps, and sorts by place.
func clean(s Series, x, y scale) (xs, ys []float64) {
	n := min(len(s.X), len(s.Y))
	order := make([]int, 0, n)
	for i := range n {
		if x.shows(s.X[i]) {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(s.X[a], s.X[b]) })
	xs, ys = make([]float64, len(order)), make([]float64, len(order))
	for to, from := range order {
		xs[to], ys[to] = s.X[from], s.Y[from]
		if !y.shows(ys[to]) {
			ys[to] = math.NaN()
		}
	}
	return xs, ys
}

// extents are the ranges of everything that is shown; a gap widens neither.
func extents(curves []curve) (x, y extent) {
	for _, c := range curves {
		for i, v := range c.ys {
			if !math.IsNaN(v) {
				x.include(c.xs[i])
				y.include(v)
			}
		}
	}
	return x, y
}

// thin chooses the points of a curve, given in pixels, that a picture of so many columns can show: of each column the
// lowest and the highest, in their order. A gap remains where a whole column is empty. Short curves stay whole.
func thin(xs, ys []float64, columns int) []int {
	kept := make([]int, 0, min(len(xs), 3*columns))
	if len(xs) <= 2*columns {
		for i := range xs {
			kept = append(kept, i)
		}
		return kept
	}
	for start := 0; start < len(xs); {
		end := start + 1
		for end < len(xs) && math.Floor(xs[end]) == math.Floor(xs[start]) {
			end++
		}
		kept = append(kept, peaks(ys, start, end)...)
		start = end
	}
	return kept
}

// peaks are the places of the lowest and the highest value in ys[start:end]; of a gap, its first place.
func peaks(ys []float64, start, end int) []int {
	low, high := -1, -1
	for i := start; i < end; i++ {
		if math.IsNaN(ys[i]) {
			continue
		}
		if low < 0 || ys[i] < ys[low] {
			low = i
		}
		if high < 0 || ys[i] > ys[high] {
			high = i
		}
	}
	switch {
	case low < 0:
		return []int{start}
	case low == high:
		return []int{low}
	}
	return []int{min(low, high), max(low, high)}
}

// stackUp turns layers into the edges above them, all on one grid of places. A layer without a value adds nothing; a
// place where no layer has one is a gap. The second report of a comparison has its own stack.
func stackUp(layers []curve) []curve {
	grid := commonGrid(layers)
	edges := make([]curve, len(layers))
	for _, second := range []bool{false, true} {
		sum := filled(len(grid), math.NaN())
		for i, layer := range layers {
			if layer.second != second {
				continue
			}
			addLayer(sum, grid, layer)
			edges[i] = layer
			edges[i].xs, edges[i].ys = grid, slices.Clone(sum)
		}
		for i := range edges {
			if edges[i].second == second {
				raiseToFirst(edges[i].ys, sum)
			}
		}
	}
	return edges
}

func filled(n int, v float64) []float64 {
	s := make([]float64, n)
	for i := range s {
		s[i] = v
	}
	return s
}

// raiseToFirst puts an edge on the ground where only layers above it have values.
func raiseToFirst(edge, total []float64) {
	for i := range edge {
		if math.IsNaN(edge[i]) && !math.IsNaN(total[i]) {
			edge[i] = 0
		}
	}
}

func commonGrid(layers []curve) []float64 {
	var grid []float64
	for _, layer := range layers {
		if !slices.Equal(grid, layer.xs) {
			grid = append(grid, layer.xs...)
		}
	}
	slices.Sort(grid)
	return slices.Compact(grid)
}

// addLayer adds a layer's values to sum, between its own places by straight lines.
func addLayer(sum, grid []float64, layer curve) {
	xs, ys := layer.xs, layer.ys
	j := 0
	for i, x := range grid {
		for j+1 < len(xs) && xs[j+1] <= x {
			j++
		}
		if len(xs) == 0 || x < xs[0] || x > xs[len(xs)-1] {
			continue
		}
		v := ys[j]
		if xs[j] < x {
			v += (ys[j+1] - ys[j]) * (x - xs[j]) / (xs[j+1] - xs[j])
		}
		switch {
		case math.IsNaN(v):
		case math.IsNaN(sum[i]):
			sum[i] = v
		default:
			sum[i] += v
		}
	}
}
