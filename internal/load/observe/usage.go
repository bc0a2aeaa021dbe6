package observe

import (
	"fmt"
	"os"
	"time"
)

// A Usage is what a process took of the machine in the counted time.
type Usage struct {
	CPUSeconds float64 `json:"cpu_seconds"`
	Cores      float64 `json:"cores"`              // CPU seconds per second
	PerRequest float64 `json:"cpu_us_per_request"` // microseconds
	RSS        int64   `json:"rss_bytes,omitempty"`
	PeakRSS    int64   `json:"peak_rss_bytes,omitempty"`
}

// String gives the usage on one line for people.
func (u Usage) String() string {
	text := fmt.Sprintf("%.2f cores, %.0f µs of CPU a certificate", u.Cores, u.PerRequest)
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
	server, client [2]float64
}

// NewMeter makes a meter of this process, the client, and of the server's process; 0 where that is unknown.
func NewMeter(pid int) *Meter { return &Meter{host: this(), pid: pid} }

// Begin is called when the counted time begins.
func (m *Meter) Begin() {
	m.From, m.server[0], m.client[0] = time.Now(), m.host.processTime(m.pid), m.host.processTime(os.Getpid())
}

// End is called when the counted time ends.
func (m *Meter) End() {
	m.To, m.server[1], m.client[1] = time.Now(), m.host.processTime(m.pid), m.host.processTime(os.Getpid())
}

// Usage gives what both took between Begin and End, for a number of requests; server is nil where it is unknown.
func (m *Meter) Usage(requests int) (server *Usage, client Usage) {
	client = m.of(os.Getpid(), m.client, requests)
	if m.pid != 0 {
		u := m.of(m.pid, m.server, requests)
		server = &u
	}
	return server, client
}

func (m *Meter) of(pid int, readings [2]float64, requests int) Usage {
	u := Usage{CPUSeconds: readings[1] - readings[0]}
	if m.From.IsZero() { // interrupted before the counted time
		u.CPUSeconds = 0
	}
	if took := m.To.Sub(m.From).Seconds(); took > 0 {
		u.Cores = u.CPUSeconds / took
	}
	if requests > 0 {
		u.PerRequest = u.CPUSeconds * 1e6 / float64(requests)
	}
	u.RSS, u.PeakRSS = m.host.processMemory(pid)
	return u
}
