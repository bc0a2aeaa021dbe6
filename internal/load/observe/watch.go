package observe

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"
	"time"
)

// A Config says what to watch. What is empty is left out.
type Config struct {
	Server   int    // the server's process; 0: unknown
	Data     string // directory whose files are the disk use
	Metrics  string // http address of the server's metrics, on its private listener
	Database string // store URL of a database server whose sessions are watched; one of SQLite has none
}

// A Sample is what was seen in one second. A metric is zero, too, where the server's metrics could not be read in time.
type Sample struct {
	At          time.Time      `json:"-"`
	Server      float64        `json:"server_cores,omitempty"`    // CPU time over the time since the last sample: of the server's process
	Client      float64        `json:"client_cores,omitempty"`    // of this process
	Busy        float64        `json:"busy_cores,omitempty"`      // of everything on the machine
	Steal       float64        `json:"steal,omitempty"`           // share of all cores' time that the host took
	Resident    int64          `json:"resident_bytes,omitempty"`  // of the server
	Heap        int64          `json:"heap_bytes,omitempty"`      // of the server, in use
	Disk        int64          `json:"disk_bytes,omitempty"`      // all files in Data
	Log         int64          `json:"log_bytes,omitempty"`       // of them the write-ahead log
	Batch       float64        `json:"rows_per_commit,omitempty"` // mean
	Commits     float64        `json:"commits,omitempty"`         // a second
	Write       float64        `json:"write_ms,omitempty"`        // mean time of running one closure or batch
	Sync        float64        `json:"sync_ms,omitempty"`         // mean time of a commit, where the server times it alone
	Waiting     float64        `json:"waiting_sec,omitempty"`     // what the server expects the next request to wait
	Inside      int            `json:"inside,omitempty"`          // requests that it has admitted
	Connections int            `json:"connections,omitempty"`     // that it has open
	Waits       map[string]int `json:"database_waits,omitempty"`  // sessions of the database by what they waited for at that moment
}

// A Record is what a watch saw.
type Record struct {
	Samples  []Sample
	Server   *Usage // over all of them; nil: unknown process
	Client   Usage
	Unread   int // times that the metrics did not come
	Unlisted int // times that the database did not tell its sessions
}

const (
	every      = time.Second
	readWithin = 900 * time.Millisecond // so that a sample is done before the next one
	secondsMax = 24 * 60 * 60           // a day; what comes after is not kept
)

// A Watch samples once a second until it ends. Its methods are safe for concurrent use.
type Watch struct {
	config   Config
	host     host
	every    time.Duration
	scraper  *scraper
	sessions *sessions
	meter    *Meter
	last     reading
	record   Record
	cancel   context.CancelFunc
	ended    chan struct{}
	finish   sync.Once
}

// A reading is what differences are taken of.
type reading struct {
	at             time.Time
	stat           stat
	server, client float64
}

// Begin starts a watch, which lasts until End, at the latest until ctx ends. Its error says what in c cannot be used;
// that a server does not answer shows in the record only.
func Begin(ctx context.Context, c Config) (*Watch, error) { return begin(ctx, c, every) }

func begin(ctx context.Context, c Config, every time.Duration) (*Watch, error) {
	if c.Server < 0 {
		return nil, fmt.Errorf("watch process %d: there is none with this number", c.Server)
	}
	if c.Data != "" {
		if info, err := os.Stat(c.Data); err != nil {
			return nil, fmt.Errorf("watch the disk: %w", err)
		} else if !info.IsDir() {
			return nil, fmt.Errorf("watch the disk: %s is no directory", c.Data)
		}
	}
	scraper, err := newScraper(c.Metrics)
	if err != nil {
		return nil, err
	}
	sessions, err := newSessions(c.Database)
	if err != nil {
		return nil, err
	}
	w := &Watch{config: c, host: this(), every: every, scraper: scraper, sessions: sessions, meter: NewMeter(c.Server), ended: make(chan struct{})}
	ctx, w.cancel = context.WithCancel(ctx)
	w.meter.Begin()
	w.last = w.read()
	go w.run(ctx)
	return w, nil
}

// End stops the watch, waits for it, and gives what was seen. Called again, it gives the same.
func (w *Watch) End() Record {
	w.cancel()
	<-w.ended
	w.finish.Do(func() {
		w.meter.End()
		w.record.Server, w.record.Client = w.meter.Usage(0)
	})
	return w.record
}

func (w *Watch) run(ctx context.Context) {
	defer close(w.ended)
	defer w.close()
	w.ask(ctx, &Sample{}) // counters are told as differences, so the first reading gives none
	w.record.Unread, w.record.Unlisted = 0, 0
	clock := time.NewTicker(w.every)
	defer clock.Stop()
	for len(w.record.Samples) < secondsMax {
		select {
		case <-ctx.Done():
			return
		case <-clock.C:
		}
		s := w.sample()
		w.ask(ctx, &s)
		if ctx.Err() != nil {
			return // the second is not whole
		}
		w.record.Samples = append(w.record.Samples, s)
	}
}

func (w *Watch) close() {
	w.scraper.close()
	w.sessions.close()
}

func (w *Watch) read() reading {
	return reading{at: time.Now(), stat: w.host.stat(), server: w.host.processTime(w.config.Server), client: w.host.processTime(os.Getpid())}
}

// sample reads what the system tells at once.
func (w *Watch) sample() Sample {
	now, last := w.read(), w.last
	w.last = now
	s := Sample{At: now.at}
	if took := now.at.Sub(last.at).Seconds(); took > 0 {
		s.Server, s.Client = max(0, now.server-last.server)/took, max(0, now.client-last.client)/took
	}
	s.Steal, s.Busy = now.stat.since(last.stat, runtime.NumCPU())
	s.Resident, _ = w.host.processMemory(w.config.Server)
	if w.config.Data != "" {
		s.Disk, s.Log = diskUse(w.config.Data)
	}
	return s
}

// ask asks the server and its database, side by side, for what they have to say of this second.
func (w *Watch) ask(ctx context.Context, s *Sample) {
	ctx, cancel := context.WithTimeout(ctx, readWithin)
	defer cancel()
	var both sync.WaitGroup
	both.Go(func() {
		if err := w.scraper.scrape(ctx, s); err != nil && !errors.Is(err, context.Canceled) {
			w.record.Unread++
		}
	})
	both.Go(func() {
		var err error
		if s.Waits, err = w.sessions.waits(ctx); err != nil && !errors.Is(err, context.Canceled) {
			w.record.Unlisted++
		}
	})
	both.Wait()
}
