package observe

import (
	"fmt"
	"os"
	"time"
)

// A Usage is what a process took of the machine in the counted time.
type Usage struct {
	CPUSeconds float64 `json:"cpu_seconds"`
	Cores      float64 `json:"cores"`                    // CPU seconds per second
	PerRequest float64 `json:"cpu_us_per_request"`       // microseconds
	RSS        int64   `json:"rss_bytes,omitempty"`      // when the counted time ended
	PeakRSS    int64   `json:"peak_rss_bytes,omitempty"` // since the process began
}

// String gives the usage on one line for people.
func (u Usage) String() string {
	text := fmt.Sprintf("%.2f cores, %.0f µs of CPU an answer", u.Cores, u.PerRequest)
	if u.RSS > 0 {
		text += fmt.Sprintf(", %d MB resident, %d MB at most", u.RSS>>20, u.PeakRSS>>20)
	}
	return text
}

// A Meter reads the processor time of server and client when the counted time begins and ends. It is for one goroutine
// at a time.
type Meter struct {
	From, To time.Time // the counted time; From is zero until Begin, To until End

	host           host
	pid            int
	server, client taken
}

// taken is what a process took between two moments.
type taken struct {
	cpu       [2]float64 // seconds so far, at the beginning and at the end
	rss, peak int64      // bytes, at the end
}

// NewMeter makes a meter of this process, the client, and of the server's process; 0 where that is unknown.
func NewMeter(pid int) *Meter { return &Meter{host: this(), pid: pid} }

// Begin is called when the counted time begins.
func (m *Meter) Begin() {
	m.From, m.server.cpu[0], m.client.cpu[0] = time.Now(), m.host.processTime(m.pid), m.host.processTime(os.Getpid())
}

// End is called when the counted time ends.
func (m *Meter) End() {
	m.To, m.server.cpu[1], m.client.cpu[1] = time.Now(), m.host.processTime(m.pid), m.host.processTime(os.Getpid())
	m.server.rss, m.server.peak = m.host.processMemory(m.pid)
	m.client.rss, m.client.peak = m.host.processMemory(os.Getpid())
}

// Usage gives what both took between Begin and End, for a number of requests; server is nil where it is unknown,
// as of one that has ended meanwhile.
func (m *Meter) Usage(requests int) (server *Usage, client Usage) {
	client = m.of(m.client, requests)
	if m.pid != 0 && m.server.cpu[1] >= m.server.cpu[0] { // the time of a process that is gone reads as none
		u := m.of(m.server, requests)
		server = &u
	}
	return server, client
}

func (m *Meter) of(t taken, requests int) Usage {
	u := Usage{CPUSeconds: t.cpu[1] - t.cpu[0], RSS: t.rss, PeakRSS: t.peak}
	if m.From.IsZero() { // interrupted before the counted time
		u.CPUSeconds = 0
	}
	if took := m.To.Sub(m.From).Seconds(); took > 0 {
		u.Cores = u.CPUSeconds / took
	}
	if requests > 0 {
		u.PerRequest = u.CPUSeconds * 1e6 / float64(requests)
	}
	return u
}
