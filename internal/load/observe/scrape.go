package observe

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

const metricsMax = 4 << 20

// A scraper reads a server's metrics. One goroutine uses it; a nil one reads nothing.
type scraper struct {
	url    string
	client *http.Client
	last   map[string]float64 // nil: none were read yet
	lastAt time.Time
}

// newScraper gives nil where there is no address.
func newScraper(address string) (*scraper, error) {
	if address == "" {
		return nil, nil
	}
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" || u.Host == "" {
		return nil, errors.New("address of the metrics: want a form such as http://127.0.0.1:9090/metrics")
	}
	return &scraper{url: address, client: &http.Client{
		Transport:     &http.Transport{DisableCompression: true, MaxConnsPerHost: 1}, // nor a proxy: it stays on this machine, and compressing costs the server
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

func (r *scraper) close() {
	if r != nil {
		r.client.CloseIdleConnections()
	}
}

// The series that are read, as the server writes them.
const (
	commits     = "chancery_commit_rows_count"
	rows        = "chancery_commit_rows_sum"
	syncs       = `chancery_phase_seconds_count{phase="sync"}`
	syncTime    = `chancery_phase_seconds_sum{phase="sync"}`
	writes      = `chancery_phase_seconds_count{phase="write"}`
	writeTime   = `chancery_phase_seconds_sum{phase="write"}`
	gateWait    = "chancery_gate_wait_seconds"
	gateInside  = "chancery_gate_inside"
	connections = "chancery_connections"
	heap        = "go_memstats_heap_inuse_bytes"
)

var wanted = map[string]bool{commits: true, rows: true, syncs: true, syncTime: true, writes: true, writeTime: true,
	gateWait: true, gateInside: true, connections: true, heap: true}

// scrape fills in what the metrics say. Means and rates are over the time since they were last read.
func (r *scraper) scrape(ctx context.Context, s *Sample) error {
	if r == nil {
		return nil
	}
	now, err := r.read(ctx)
	if err != nil {
		return err
	}
	at := time.Now()
	s.Heap, s.Waiting = int64(now[heap]), now[gateWait]
	s.Inside, s.Connections = int(now[gateInside]), int(now[connections])
	if took := at.Sub(r.lastAt).Seconds(); r.last != nil && took > 0 {
		more := func(series string) float64 { return max(0, now[series]-r.last[series]) } // a restart begins at zero
		s.Commits = more(commits) / took
		s.Batch = ratio(more(rows), more(commits))
		s.Sync = 1000 * ratio(more(syncTime), more(syncs))
		s.Write = 1000 * ratio(more(writeTime), more(writes))
	}
	r.last, r.lastAt = now, at
	return nil
}

func ratio(sum, count float64) float64 {
	if count == 0 {
		return 0
	}
	return sum / count
}

func (r *scraper) read(ctx context.Context) (map[string]float64, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, r.url, nil)
	if err != nil {
		return nil, err
	}
	res, err := r.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("metrics: %s", res.Status)
	}
	return parse(io.LimitReader(res.Body, metricsMax))
}

// parse reads the wanted series of Prometheus's text format: lines of a name, labels in braces, and a value.
// https://prometheus.io/docs/instrumenting/exposition_formats/
func parse(from io.Reader) (map[string]float64, error) {
	found := map[string]float64{}
	lines := bufio.NewScanner(from)
	lines.Buffer(make([]byte, 0, 4096), 64<<10)
	for lines.Scan() {
		series, value := cutSeries(lines.Text())
		if !wanted[series] {
			continue
		}
		n, err := strconv.ParseFloat(value, 64)
		if err != nil {
			return nil, fmt.Errorf("metrics: the value of %s: %w", series, err)
		}
		found[series] = n
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("metrics: %w", err)
	}
	return found, nil
}

// cutSeries parts a line into a series, with its labels as they are written, and its value. A comment is no series.
func cutSeries(line string) (series, value string) {
	end := strings.IndexAny(line, "{ \t")
	if end < 0 || line[0] == '#' {
		return "", ""
	}
	if line[end] == '{' {
		end = labelsEnd(line, end)
	}
	value, _, _ = strings.Cut(strings.TrimSpace(line[end:]), " ") // a time may follow
	return line[:end], value
}

// labelsEnd finds the end of the labels that begin at a brace. Their values are quoted and may hold anything.
func labelsEnd(line string, begin int) int {
	quoted := false
	for i := begin; i < len(line); i++ {
		switch {
		case line[i] == '\\' && quoted:
			i++
		case line[i] == '"':
			quoted = !quoted
		case line[i] == '}' && !quoted:
			return i + 1
		}
	}
	return len(line)
}
