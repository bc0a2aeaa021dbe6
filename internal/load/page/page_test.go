package page

import (
	"bytes"
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the golden file")

var nan = math.NaN()

func smallPage() Page {
	seconds := []float64{1, 2, 3, 4, 5, 6}
	return Page{
		Title:    "t1: 100 agents",
		Lead:     []string{"A fleet at rest.", "Expected: 17 certificates per second."},
		Verdicts: []Verdict{{"17 per second", "16.9", Missed}, {"nothing lost", "0", Met}, {"restart", "", Unjudged}},
		Figures:  []Fact{{"per second", "16.9"}},
		Facts:    []Group{{"Machine", []Fact{{"cores", "2"}}}},
		Charts: []Chart{
			{Title: "Rate", Note: "Each second.", X: "time, s", Y: "per second", Marks: []Mark{{3, "measured"}}, Shaded: []Span{{0, 3}, {9, 12}, {nan, 4}}, Shade: "warm-up",
				Series: []Series{{Name: "now", X: seconds, Y: []float64{10, 17, nan, 16, 18, 17}}, {Name: "before", X: seconds, Y: []float64{9, 9, 9, 8, 9, 9}, Second: true}}},
			{Title: "Percentiles", X: "percentile", Y: "ms", LogX: true, LogY: true, Series: []Series{{Name: "all", X: []float64{1, 10, 100}, Y: []float64{3, 9, 70}}}},
			{Title: "Processor", X: "time, s", Y: "cores", Kind: Stack, Series: []Series{{Name: "sign", X: seconds, Y: []float64{1, 1, 1, 1, 1, 1}}, {Name: "TLS", X: seconds[1:4], Y: []float64{.5, .5, .4}}}},
			{Title: "Errors", X: "kind", Y: "requests", Kind: Bars, Names: []string{"busy", "no answer"}, Series: []Series{{Name: "now", X: []float64{0, 1}, Y: []float64{5, 1200}}}},
			{Title: "Queue", X: "time, s", Y: "requests"},
		},
		Tables: []Table{{Title: "Routes", Head: []string{"route", "requests"}, Rows: [][]string{{"/ocsp", "1,234"}, {"/crl", "–"}}, Note: "From the server.",
			Links: []string{"", "crl.html"}, Below: [][]string{{"Cached.", "Signed."}}}},
		Notes: []string{"The machine was busy."},
		Links: []Link{{"all runs", "index.html"}},
	}
}

func render(t testing.TB, p Page) string {
	t.Helper()
	var out bytes.Buffer
	if err := p.Write(&out); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// TestGolden fixes a whole small page, and that the same page gives the same octets.
func TestGolden(t *testing.T) {
	got := render(t, smallPage())
	if again := render(t, smallPage()); again != got {
		t.Error("the same page was written differently")
	}
	path := filepath.Join("testdata", "small.html")
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("the page changed; look at it, then run the test with -update:\n%s", diff)
	}
}

// TestEscaping puts markup into every text that a page has.
func TestEscaping(t *testing.T) {
	const evil = "\"'><script>alert(1)</script></style></svg>{{.}}\x00\xff"
	for _, kind := range []Kind{Lines, Stack, Bars} {
		p := smallPage()
		p.Charts = append(p.Charts[:1:1], Chart{Kind: kind, X: "x", Y: "y", Names: []string{"n", "m"}, Marks: []Mark{{0, "m"}}, Series: []Series{{Name: "s", X: []float64{0, 1}, Y: []float64{1, 1}}}})
		fill(reflect.ValueOf(&p).Elem(), evil)
		p.Links = append(p.Links, Link{"x", "javascript:alert(1)"})
		got := render(t, p)
		for part, want := range map[string]int{"<script": 1, "</script": 1, "</style": 1, "javascript:": 0, "'><": 0, "\x00": 0, "\xff": 0} {
			if n := strings.Count(got, part); n != want {
				t.Errorf("kind %d: %q stands %d times in the page, want %d", kind, part, n, want)
			}
		}
		if n := strings.Count(got, "&lt;script&gt;alert(1)"); n < 30 {
			t.Errorf("kind %d: the text stands only %d times in the page", kind, n)
		}
	}
}

func fill(v reflect.Value, text string) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(text)
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), text)
		}
	case reflect.Slice:
		for i := range v.Len() {
			fill(v.Index(i), text)
		}
	}
}

// TestOddCharts draws what nobody should send: the page stays well formed and free of values that no picture has.
func TestOddCharts(t *testing.T) {
	inf := math.Inf(1)
	for name, series := range map[string][]Series{
		"no series":      nil,
		"no points":      {{Name: "a"}},
		"one point":      {{Name: "a", X: []float64{5}, Y: []float64{7}}},
		"one zero":       {{Name: "a", X: []float64{0}, Y: []float64{0}}},
		"only gaps":      {{Name: "a", X: []float64{1, 2}, Y: []float64{nan, nan}}},
		"infinite":       {{Name: "a", X: []float64{1, 2, inf, nan}, Y: []float64{inf, -inf, 1, 1}}},
		"partly":         {{Name: "a", X: []float64{1, 2, 3}, Y: []float64{inf, 2, nan}}},
		"huge":           {{Name: "a", X: []float64{-1e99, 1e99}, Y: []float64{-1e99, 1e99}}, {Name: "b", X: []float64{1}, Y: []float64{math.MaxFloat64}}},
		"tiny":           {{Name: "a", X: []float64{1e-99, 2e-99}, Y: []float64{1e-99, 3e-99}}},
		"smallest":       {{Name: "a", X: []float64{5e-324, 1e-323}, Y: []float64{5e-324, 1e-323}}},
		"close together": {{Name: "a", X: []float64{1e15, 1e15 + 1}, Y: []float64{1e15, 1e15 + 1}}},
		"negative":       {{Name: "a", X: []float64{-3, -1}, Y: []float64{-5, -2}}},
		"unsorted":       {{Name: "a", X: []float64{3, 1, 2, 2}, Y: []float64{1, 2, 3, 4}}},
		"uneven":         {{Name: "a", X: []float64{1, 2, 3}, Y: []float64{1}}, {Name: "b", X: []float64{1}, Y: []float64{1, 2}}},
		"second alone":   {{Name: "a", X: []float64{1, 2}, Y: []float64{1, 2}, Second: true}},
		"many":           make([]Series, 40),
	} {
		t.Run(name, func(t *testing.T) {
			for setting := range 24 {
				c := Chart{Title: name, X: []string{"time, s", "percentile"}[setting/12], Kind: Kind(setting % 3), LogX: setting/3%2 == 1, LogY: setting/6%2 == 1, Series: series}
				c.Shaded, c.Shade = []Span{{nan, 1}, {-inf, inf}, {2, 1}, {-1, 2}, {1e9, 2e9}}, "shade"
				c.Marks = []Mark{{nan, "nan"}, {inf, "inf"}, {-1, "minus"}, {2, strings.Repeat("long ", 30)}, {2, "two"}, {2, "2"}, {2, "2"}, {2, "2"}}
				checkPictures(t, render(t, Page{Charts: []Chart{c}}))
			}
		})
	}
}

var pictures = regexp.MustCompile(`(?s)<svg.*?</svg>`)

func checkPictures(t *testing.T, page string) {
	t.Helper()
	found := pictures.FindAllString(page, -1)
	if len(found) == 0 && !strings.Contains(page, "nothing was recorded") {
		t.Error("neither a picture nor word that there is none")
	}
	for _, picture := range found {
		decoder := xml.NewDecoder(strings.NewReader(picture))
		for {
			token, err := decoder.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%v in %s", err, picture)
			}
			checkPlaces(t, token)
		}
	}
}

// checkPlaces refuses places outside of the picture and numbers that are none.
func checkPlaces(t *testing.T, token xml.Token) {
	t.Helper()
	element, is := token.(xml.StartElement)
	if !is || element.Name.Local != "text" {
		return
	}
	for _, a := range element.Attr {
		if a.Name.Local != "x" && a.Name.Local != "y" {
			continue
		}
		if v, err := strconv.ParseFloat(a.Value, 64); err != nil || v < 0 || v > width {
			t.Errorf("text at %s=%q", a.Name.Local, a.Value)
		}
	}
}

// TestSize holds a page of ten charts over ten noisy minutes to its bound.
func TestSize(t *testing.T) {
	const bound = 400_000
	if size := len(render(t, longPage(600))); size > bound {
		t.Errorf("a page of 600 seconds has %d octets, want at most %d", size, bound)
	}
	if size := len(render(t, longPage(50_000))); size > 2*bound {
		t.Errorf("a page of 50,000 points a series has %d octets, want at most %d", size, 2*bound)
	}
}

// longPage has ten charts with four noisy series each.
func longPage(points int) Page {
	var p Page
	for c := range 10 {
		chart := Chart{Title: fmt.Sprint("chart ", c), X: "time, s", Y: "ms", Kind: Kind(c % 2)}
		for s := range 4 {
			chart.Series = append(chart.Series, noise(points, uint32(10*c+s)))
		}
		p.Charts = append(p.Charts, chart)
	}
	return p
}

// noise is a series that jumps at every point, the same each time.
func noise(points int, seed uint32) Series {
	s := Series{Name: fmt.Sprint("series ", seed)}
	state := seed + 1
	for i := range points {
		state = state*1664525 + 1013904223
		s.X, s.Y = append(s.X, float64(i)), append(s.Y, float64(state>>8)/1e4)
	}
	return s
}

type brokenWriter struct{}

var errBroken = errors.New("broken")

func (brokenWriter) Write([]byte) (int, error) { return 0, errBroken }

func TestWriteFails(t *testing.T) {
	if err := smallPage().Write(brokenWriter{}); !errors.Is(err, errBroken) {
		t.Errorf("Write to a broken writer: %v", err)
	}
}

// TestContrast computes the contrast of the style sheet's colours: 4.5 for text, 3 for curves (WCAG 2.2, 1.4.3 and
// 1.4.11).
func TestContrast(t *testing.T) {
	light, dark, _ := strings.Cut(layoutText, "prefers-color-scheme: dark")
	for mode, sheet := range map[string]string{"light": light, "dark": dark} {
		colour := sheetColours(sheet)
		check := func(front, back string, least float64) {
			if got := contrast(colour[front], colour[back]); !(got >= least) {
				t.Errorf("%s: --%s on --%s has contrast %.2f, want %.1f", mode, front, back, got, least)
			}
		}
		for _, text := range []string{"ink", "soft", "link", "good", "bad"} {
			check(text, "card", 4.5)
			check(text, "ground", 4.5)
		}
		check("warn", "warn-ground", 4.5)
		check("ink", "warn-ground", 4.5)
		check("axis", "card", 3)
		for i := range colours {
			check(fmt.Sprint("c", i), "card", 3)
		}
	}
}

func sheetColours(sheet string) map[string][3]float64 {
	found := map[string][3]float64{}
	for _, m := range regexp.MustCompile(`--([a-z0-9-]+): #([0-9a-f]{6});`).FindAllStringSubmatch(sheet, -1) {
		if _, defined := found[m[1]]; defined {
			continue
		}
		rgb, _ := strconv.ParseUint(m[2], 16, 32)
		found[m[1]] = [3]float64{float64(rgb >> 16), float64(rgb >> 8 & 255), float64(rgb & 255)}
	}
	return found
}

func contrast(a, b [3]float64) float64 {
	x, y := luminance(a), luminance(b)
	return (max(x, y) + 0.05) / (min(x, y) + 0.05)
}

func luminance(rgb [3]float64) float64 {
	for i, v := range rgb {
		v /= 255
		if v <= 0.04045 {
			rgb[i] = v / 12.92
			continue
		}
		rgb[i] = math.Pow((v+0.055)/1.055, 2.4)
	}
	return 0.2126*rgb[0] + 0.7152*rgb[1] + 0.0722*rgb[2]
}

// BenchmarkWrite draws one chart of 100,000 points.
func BenchmarkWrite(b *testing.B) {
	for _, kind := range []Kind{Lines, Stack, Bars} {
		b.Run(fmt.Sprint("kind=", kind), func(b *testing.B) {
			p := Page{Charts: []Chart{{Title: "long", X: "time, s", Y: "ms", Kind: kind, LogY: true, Series: []Series{noise(100_000, 1)}}}}
			for b.Loop() {
				if err := p.Write(io.Discard); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
