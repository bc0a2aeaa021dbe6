package observe

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestParseMetrics(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want map[string]float64
	}{
		"nothing":  {"", map[string]float64{}},
		"comments": {"# HELP chancery_connections Open.\n# TYPE chancery_connections gauge\n\nchancery_connections 4\n", map[string]float64{connections: 4}},
		"labels":   {`chancery_phase_seconds_sum{phase="sync"} 1.5e-3` + "\n" + `chancery_phase_seconds_sum{phase="parse"} 7`, map[string]float64{syncTime: 0.0015}},
		"quoted":   {`other{x="a} b\"} 1",y="2"} 3` + "\nchancery_gate_inside 2 1700000000000\n", map[string]float64{gateInside: 2}},
		"odd":      {"chancery_connections\n{\nchancery_connections{ 3\nx{\"\n", map[string]float64{}},
	} {
		got, err := parse(strings.NewReader(c.text))
		if diff := cmp.Diff(c.want, got); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
	}
	for _, bad := range []string{"chancery_connections x", "chancery_connections ", strings.Repeat("x", 70<<10)} {
		if got, err := parse(strings.NewReader(bad)); err == nil {
			t.Errorf("%.30q gives %v", bad, got)
		}
	}
}

func TestCutSeries(t *testing.T) {
	for line, want := range map[string][2]string{
		`a 1`:            {"a", "1"},
		"a\t1 17":        {"a", "1"},
		`a{b="c"} 2 17`:  {`a{b="c"}`, "2"},
		`a{b="} 9"} 3`:   {`a{b="} 9"}`, "3"},
		`a{b="\"} 4"} 5`: {`a{b="\"} 4"}`, "5"},
		`a{b="\\"} 6`:    {`a{b="\\"}`, "6"},
		`a{b="`:          {`a{b="`, ""},
		"# a 1":          {},
		"a":              {},
		"":               {},
	} {
		series, value := cutSeries(line)
		if got := [2]string{series, value}; got != want {
			t.Errorf("%s: %q, want %q", line, got, want)
		}
	}
}

func FuzzParseMetrics(f *testing.F) {
	f.Add(`chancery_phase_seconds_sum{phase="sync"} 1.5e-3 17`)
	f.Add(`x{y="\"}"} `)
	f.Fuzz(func(_ *testing.T, line string) {
		cutSeries(line)
		_, _ = parse(strings.NewReader(line))
	})
}

// fake is a server whose metrics say what a test wants.
func fake(t *testing.T, text func() string) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, text()) }))
	t.Cleanup(s.Close)
	return s.URL
}

func counters(commitCount, rowSum, syncCount, syncSum int) string {
	return fmt.Sprintf("chancery_commit_rows_count %d\nchancery_commit_rows_sum %d\nchancery_phase_seconds_count{phase=\"sync\"} %d\nchancery_phase_seconds_sum{phase=\"sync\"} %d\n"+
		"chancery_gate_wait_seconds 0.25\nchancery_gate_inside 7\nchancery_connections 9\ngo_memstats_heap_inuse_bytes 1e6\n", commitCount, rowSum, syncCount, syncSum)
}

func TestScrapeTellsDifferences(t *testing.T) {
	var text atomic.Value
	text.Store(counters(10, 100, 10, 1))
	r, err := newScraper(fake(t, func() string { return text.Load().(string) }))
	if err != nil {
		t.Fatal(err)
	}
	defer r.close()
	look := func() (s Sample) {
		t.Helper()
		if err := r.scrape(t.Context(), &s); err != nil {
			t.Fatal(err)
		}
		return s
	}
	first := look()
	if diff := cmp.Diff(Sample{Heap: 1e6, Waiting: 0.25, Inside: 7, Connections: 9}, first); diff != "" {
		t.Errorf("the first reading (-want +got):\n%s", diff)
	}
	text.Store(counters(14, 180, 14, 3))
	r.lastAt = r.lastAt.Add(-time.Hour)
	if s := look(); s.Batch != 20 || s.Sync != 500 || fmt.Sprintf("%.4f", s.Commits*3600) < "3.9" || s.Commits*3600 > 4 {
		t.Errorf("4 commits of 80 rows with 2 s of sync in an hour: %+v", s)
	}
	text.Store(counters(1, 2, 0, 0))
	if s := look(); s.Batch != 0 || s.Sync != 0 || s.Commits != 0 {
		t.Errorf("the server began anew: %+v", s)
	}
}

// TestWatchLeavesAGap lets the metrics answer, then hang, refuse and say too much: each is a gap and no more.
func TestWatchLeavesAGap(t *testing.T) {
	var asked, hung atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		switch asked.Add(1) {
		case 1, 2, 6:
			io.WriteString(w, counters(1, 1, 1, 1))
		case 3:
			<-req.Context().Done() // until the reader gives up
			hung.Add(1)
		case 4:
			http.Redirect(w, req, "/elsewhere", http.StatusFound)
		case 5:
			io.WriteString(w, "x "+strings.Repeat("1", 5<<20))
		default:
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	defer s.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	w, err := begin(ctx, Config{Metrics: s.URL}, 5*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "seven readings", func() bool { return asked.Load() >= 8 })
	r := w.End()
	var got []bool
	for _, s := range r.Samples[:min(5, len(r.Samples))] {
		got = append(got, s.Connections == 9)
	}
	if diff := cmp.Diff([]bool{true, false, false, false, true}, got); diff != "" || r.Unread < 3 || hung.Load() != 1 {
		t.Errorf("%d were not read, %d hung, read or not (-want +got):\n%s", r.Unread, hung.Load(), diff)
	}
}
