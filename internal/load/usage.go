package load

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

// A meter reads the processor time of server and client when the counted time begins and ends.
type meter struct {
	pid            int // of the server; 0: unknown
	from, to       time.Time
	server, client [2]float64
}

func (m *meter) begin() {
	m.from, m.server[0], m.client[0] = time.Now(), processTime(m.pid), processTime(os.Getpid())
}
func (m *meter) end() {
	m.to, m.server[1], m.client[1] = time.Now(), processTime(m.pid), processTime(os.Getpid())
}

func (m *meter) usage(requests int) (server *Usage, client Usage) {
	client = m.of(os.Getpid(), m.client, requests)
	if m.pid != 0 {
		u := m.of(m.pid, m.server, requests)
		server = &u
	}
	return server, client
}

func (m *meter) of(pid int, readings [2]float64, requests int) Usage {
	u := Usage{CPUSeconds: readings[1] - readings[0]}
	if m.from.IsZero() { // interrupted before the counted time
		u.CPUSeconds = 0
	}
	if took := m.to.Sub(m.from).Seconds(); took > 0 {
		u.Cores = u.CPUSeconds / took
	}
	if requests > 0 {
		u.PerRequest = u.CPUSeconds * 1e6 / float64(requests)
	}
	u.RSS, u.PeakRSS = processMemory(pid)
	return u
}
