package page

import (
	"fmt"
	"html/template"
	"math"
	"strconv"
	"strings"
)

// pen writes SVG. Text goes through escape; everything else is numbers and the names of classes.
type pen struct{ strings.Builder }

func (p *pen) raw(s string) { p.WriteString(s) }

func (p *pen) printf(format string, args ...any) { fmt.Fprintf(p, format, args...) }

// text writes one line of text; without a class it is centred.
func (p *pen) text(x, y float64, class, s string) {
	if s == "" {
		return
	}
	if class != "" {
		class = ` class="` + class + `"`
	}
	p.printf(`<text%s x="%s" y="%s">%s</text>`, class, px(x), px(y), escape(s))
}

func escape(s string) string { return template.HTMLEscapeString(s) }

// tenth is a place in tenths of a pixel, the precision of every drawing.
func tenth(v float64) int {
	if math.IsNaN(v) || math.Abs(v) > 1e6 {
		return 0
	}
	return int(math.Round(v * 10))
}

func px(v float64) string { return string(appendTenths(nil, tenth(v))) }

// appendTenths writes tenths as briefly as SVG allows: "12", "-3.4", ".5".
func appendTenths(b []byte, t int) []byte {
	if t < 0 {
		b, t = append(b, '-'), -t
	}
	if t >= 10 || t == 0 {
		b = strconv.AppendInt(b, int64(t/10), 10)
	}
	if t%10 != 0 {
		b = append(b, '.', byte('0'+t%10))
	}
	return b
}

// trail writes connected points as one path: the first in full, the others as steps, which are shorter. A single point
// becomes a step to itself, which a round pen draws as a dot.
func (p *pen) trail(xs, ys []float64) {
	b := make([]byte, 0, 8*len(xs)+16)
	var lastX, lastY int
	for i := range xs {
		x, y := tenth(xs[i]), tenth(ys[i])
		switch i {
		case 0:
			b = appendPair(append(b, 'M'), x, y)
		case 1:
			b = appendPair(append(b, 'l'), x-lastX, y-lastY)
		default:
			b = appendPair(append(b, ' '), x-lastX, y-lastY)
		}
		lastX, lastY = x, y
	}
	if len(xs) == 1 {
		b = append(b, "l0 0"...)
	}
	p.Write(b)
}

func appendPair(b []byte, x, y int) []byte {
	b = appendTenths(b, x)
	if y >= 0 {
		b = append(b, ' ')
	}
	return appendTenths(b, y)
}
