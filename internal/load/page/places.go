package page

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"unicode/utf8"
)

// drawPlaces writes the ticks of the X axis as far as their labels do not touch.
func (p *plot) drawPlaces() {
	free := math.Inf(-1)
	for _, t := range p.xTicks {
		x := p.x.at(t.at)
		p.printf(`<path class="base" d="M%s %sv4"/>`, px(x), px(p.bottom))
		lines := p.placeLines(t.label)
		half := longest(lines) / 2
		if x-half < free {
			continue
		}
		free = x + half + 8
		for row, line := range lines {
			y := p.bottom + 18 + float64(row)*nameRow
			if x+half > width {
				p.text(width, y, "end", line)
				continue
			}
			p.text(x, y, "", line)
		}
	}
}

// placeLines is a tick's label, of a named bar in up to two lines.
func (p *plot) placeLines(label string) []string {
	if p.Kind == Bars && len(p.Names) > 0 {
		return wrap(label, p.slot-4)
	}
	return []string{label}
}

func longest(lines []string) float64 {
	size := 0.0
	for _, line := range lines {
		size = max(size, letter*float64(utf8.RuneCountInString(line)))
	}
	return size
}

// placeName names the X axis. Ticks of time and of percentiles carry their unit themselves.
func (p *plot) placeName() string {
	if unit := unitOf(p.X); holdsSeconds(p.X) && !p.LogX || p.LogX && unit == "%" {
		return strings.TrimRight(strings.TrimRight(p.X, " )]")[:strings.LastIndex(p.X, unit)], " ,([")
	}
	return p.X
}

// wrap breaks a label at a space into two lines where one does not fit, and cuts what still does not.
func wrap(label string, room float64) []string {
	if longest([]string{label}) <= room {
		return []string{label}
	}
	lines := []string{"", ""}
	for _, word := range strings.Fields(label) {
		row := 0
		if lines[1] != "" || lines[0] != "" && longest([]string{lines[0] + " " + word}) > room {
			row = 1
		}
		lines[row] = strings.TrimSpace(lines[row] + " " + word)
	}
	if lines[1] == "" {
		lines = lines[:1]
	}
	for i := range lines {
		lines[i] = shorten(lines[i], room)
	}
	return lines
}

// shorten cuts a line to the room it has.
func shorten(line string, room float64) string {
	fits := max(2, int(room/letter))
	if runes := []rune(line); len(runes) > fits {
		return string(runes[:fits-1]) + "…"
	}
	return line
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

// stretches are the shaded parts of the X axis, as far as they lie in the picture.
func (p *plot) stretches() []Span {
	if p.Kind == Bars {
		return nil
	}
	var all []Span
	for _, s := range p.Shaded {
		if !(scale{log: p.LogX}).shows(s.From) || !(scale{log: p.LogX}).shows(s.To) {
			continue
		}
		placed := Span{max(p.left, p.x.at(s.From)), min(p.right, p.x.at(s.To))}
		if placed.From < placed.To {
			all = append(all, placed)
		}
	}
	return all
}

// placeMarks finds a row for each label where it does not touch another, and says how many rows that took.
func (p *plot) placeMarks() int {
	const most = 3
	free := [most]float64{}
	rows := 0
	marks := slices.Clone(p.Marks)
	slices.SortStableFunc(marks, func(a, b Mark) int { return cmp.Compare(a.At, b.At) })
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
