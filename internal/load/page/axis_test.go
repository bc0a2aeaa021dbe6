package page

import (
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func labels(ticks []tick) []string {
	var out []string
	for _, t := range ticks {
		out = append(out, t.label)
	}
	return out
}

func TestTicks(t *testing.T) {
	value := func(lo, hi float64, log bool) []string {
		_, ticks := valueAxis(extent{lo, hi, true}, log)
		return labels(ticks)
	}
	place := func(lo, hi float64, log bool, label string) []string {
		_, ticks := placeAxis(extent{lo, hi, true}, Chart{X: label, LogX: log})
		return labels(ticks)
	}
	for _, test := range []struct {
		name      string
		got, want []string
	}{
		{"from zero", value(4400, 4600, false), []string{"0", "1,000", "2,000", "3,000", "4,000", "5,000"}},
		{"fractions", value(0, 0.9, false), []string{"0", "0.2", "0.4", "0.6", "0.8", "1.0"}},
		{"below zero", value(-3, 8, false), []string{"−5", "0", "5", "10"}},
		{"nothing but zero", value(0, 0, false), []string{"0", "0.2", "0.4", "0.6", "0.8", "1.0"}},
		{"millions", value(0, 12e6, false), []string{"0", "5 M", "10 M", "15 M"}},
		{"log, narrow", value(3, 70, true), []string{"2", "5", "10", "20", "50", "100"}},
		{"log, wide", value(0.3, 70_000, true), []string{"1", "10", "100", "1,000", "10,000", "100,000"}},
		{"log, very wide", value(1, 1e15, true), []string{"1", "100", "10,000", "1,000,000", "100,000,000", "10,000,000,000", "1,000,000,000,000", "100,000,000,000,000"}},
		{"log, one value", value(5, 5, true), []string{"2", "5", "10"}},
		{"seconds", place(1, 20, false, "time, s"), []string{"0", "5 s", "10 s", "15 s", "20 s"}},
		{"half minutes", place(1, 150, false, "time (s)"), []string{"0", "30 s", "1 min", "1:30", "2 min", "2:30"}},
		{"minutes", place(1, 600, false, "time, s"), []string{"0", "2 min", "4 min", "6 min", "8 min", "10 min"}},
		{"hours", place(0, 4*3600, false, "seconds"), []string{"0", "1 h", "2 h", "3 h", "4 h"}},
		{"moments", place(0, 0.9, false, "time, s"), []string{"0", "0.2 s", "0.4 s", "0.6 s", "0.8 s"}},
		{"days", place(0, 7e6, false, "time, s"), nil},
		{"plain", place(1, 64, false, "clients"), []string{"0", "20", "40", "60"}},
		{"percentiles", place(1, 9000, true, "percentile"), []string{"50%", "90%", "99%", "99.9%", "99.99%"}},
		{"near percentiles", place(1, 100, true, "share of answers, %"), []string{"0%", "50%", "75%", "90%", "95%", "99%"}},
		{"clients", place(1, 64, true, "clients"), []string{"1", "2", "5", "10", "20", "50", "100"}},
	} {
		if test.name == "days" {
			if len(test.got) < 2 || len(test.got) > 12 {
				t.Errorf("%s: %q", test.name, test.got)
			}
			continue
		}
		if diff := cmp.Diff(test.want, test.got); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", test.name, diff)
		}
	}
}

func TestNumber(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0", 1: "1", 1.5: "1.5", 12.34: "12.3", 0.01234: "0.0123", 99.96: "100", 1234567: "1,234,567", -1234: "−1,234", -0.001: "−0.001",
		math.Inf(1): "–", 1e300: "1e+300", 999.6: "1,000",
	} {
		if got := number(v); got != want {
			t.Errorf("number(%v) = %q, want %q", v, got, want)
		}
	}
	if got := number(math.NaN()); got != "–" {
		t.Errorf("number(NaN) = %q", got)
	}
}

func TestLooksNumeric(t *testing.T) {
	for cell, want := range map[string]bool{
		"1": true, "1,234": true, "−0.5 ms": true, "≥ 99.9%": true, "4.2 MB/s": true, "12 µs": true,
		"": false, "–": false, "abc": false, "p99": false, "2026-10-12": false, "1.2.3": false, "12 certificates": false, "10.0.0.1:80": false,
	} {
		if got := looksNumeric(cell); got != want {
			t.Errorf("looksNumeric(%q) = %t", cell, got)
		}
	}
}

func TestWrap(t *testing.T) {
	for _, test := range []struct {
		label string
		room  float64
		want  []string
	}{
		{"busy", 100, []string{"busy"}},
		{"429 too many requests", 100, []string{"429 too many", "requests"}},
		{"unbroken_name_of_a_code", 60, []string{"unbroke…"}},
		{"one two three four five", 45, []string{"one", "two t…"}},
		{"x", 0, []string{"x"}},
		{"", 0, []string{""}},
	} {
		if diff := cmp.Diff(test.want, wrap(test.label, test.room)); diff != "" {
			t.Errorf("wrap(%q): (-want +got)\n%s", test.label, diff)
		}
	}
}

// TestThin holds the thinned curve against its rule: each column keeps its lowest and highest value, in order.
func TestThin(t *testing.T) {
	const columns = 50
	s := noise(10_000, 7)
	for i := range s.X {
		s.X[i] /= 200
		if s.X[i] >= 20 && s.X[i] < 23 || i%7 == 0 {
			s.Y[i] = math.NaN()
		}
	}
	kept := thin(s.X, s.Y, columns)
	if !slices.IsSorted(kept) || len(kept) > 2*columns {
		t.Errorf("%d points kept for %d columns", len(kept), columns)
	}
	all := slices.Collect(func(yield func(int) bool) {
		for i := range s.X {
			if !yield(i) {
				return
			}
		}
	})
	if diff := cmp.Diff(columnRanges(s, all), columnRanges(s, kept)); diff != "" {
		t.Errorf("the columns' ranges changed: (-all +kept)\n%s", diff)
	}
}

// columnRanges are the ranges of the chosen values in each column; a gap has none.
func columnRanges(s Series, chosen []int) map[int]string {
	ranges := map[int]extent{}
	for _, i := range chosen {
		e := ranges[int(s.X[i])]
		if !math.IsNaN(s.Y[i]) {
			e.include(s.Y[i])
		}
		ranges[int(s.X[i])] = e
	}
	out := map[int]string{}
	for column, e := range ranges {
		out[column] = "gap"
		if e.ok {
			out[column] = number(e.lo) + " to " + number(e.hi)
		}
	}
	return out
}

// TestClean drops what has no place, and makes a gap of what has no height.
func TestClean(t *testing.T) {
	inf := math.Inf(1)
	s := Series{X: []float64{3, math.NaN(), 1, inf, 0, 2, 4, 9}, Y: []float64{30, 1, inf, 1, 0, 1e101, -4}}
	for _, test := range []struct {
		log    bool
		xs, ys []float64
	}{
		{false, []float64{0, 1, 2, 3, 4}, []float64{0, nan, nan, 30, -4}},
		{true, []float64{1, 2, 3, 4}, []float64{nan, nan, 30, nan}},
	} {
		xs, ys := clean(s, scale{log: test.log}, scale{log: test.log})
		if diff := cmp.Diff([][]float64{test.xs, test.ys}, [][]float64{xs, ys}, cmpopts.EquateNaNs()); diff != "" {
			t.Errorf("log %t: (-want +got)\n%s", test.log, diff)
		}
	}
}

func TestThinKeepsShortCurves(t *testing.T) {
	if got := thin([]float64{1, 1, 1, 2}, []float64{1, nan, 2, 3}, 10); !slices.Equal(got, []int{0, 1, 2, 3}) {
		t.Errorf("kept %v", got)
	}
}

// TestStackUp adds layers with different places, gaps and reports.
func TestStackUp(t *testing.T) {
	layers := []curve{
		{name: "a", xs: []float64{0, 1, 2, 3}, ys: []float64{1, 1, nan, nan}},
		{name: "b", xs: []float64{0, 2, 3}, ys: []float64{2, 4, nan}},
		{name: "a", second: true, xs: []float64{1}, ys: []float64{9}},
	}
	want := [][]float64{{1, 1, 0, nan}, {3, 4, 4, nan}, {nan, 9, nan, nan}}
	for i, edge := range stackUp(layers) {
		if diff := cmp.Diff(want[i], edge.ys, cmpopts.EquateNaNs()); diff != "" {
			t.Errorf("edge %d: (-want +got)\n%s", i, diff)
		}
	}
}

// TestAlignment also takes rows that are longer or shorter than the head.
func TestAlignment(t *testing.T) {
	columns := Table{Head: []string{"route", "n"}, Rows: [][]string{{"/a", "–", "3"}, {"/b", "2"}, {"", "", "x"}}}.alignment()
	if !slices.Equal(columns, []bool{false, true, false}) {
		t.Errorf("numeric columns %v", columns)
	}
	for cell, want := range map[string]bool{"–": true, "": true, "7": true, "x": false} {
		if got := aligned(columns, 1, cell); got != want {
			t.Errorf("%q in a column of numbers at the right: %t", cell, got)
		}
	}
	if aligned(columns, 5, "") || aligned(columns, 0, "–") {
		t.Error("a dash in a column of text stands at the right")
	}
}

func TestColours(t *testing.T) {
	got := allotColours([]Series{{Name: "a"}, {Name: "b"}, {Name: "b", Second: true}, {Name: "a", Second: true}, {Name: "other", Second: true}, {Name: "c"}})
	if !slices.Equal(got, []int{0, 1, 1, 0, 2, 2}) {
		t.Errorf("colours %v", got)
	}
}

// TestTrail fixes the short written form of a path.
func TestTrail(t *testing.T) {
	var p pen
	p.trail([]float64{0, 1, 1.5, 100}, []float64{10, 9.75, 9.75, 0})
	p.trail([]float64{5}, []float64{-0.3})
	if want := "M0 10l1-.2 .5 0 98.5-9.8M5-.3l0 0"; p.String() != want {
		t.Errorf("path %q, want %q", p.String(), want)
	}
}
