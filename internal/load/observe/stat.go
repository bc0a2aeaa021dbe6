package observe

import (
	"strconv"
	"strings"
)

// A stat is the first line of /proc/stat, in ticks.
type stat struct{ total, idle, steal float64 }

func (h host) stat() stat {
	var s stat
	for i, field := range strings.Fields(h.line("proc/stat")) {
		ticks, err := strconv.ParseFloat(field, 64)
		if err != nil || i > 8 { // guest time is contained in user time
			continue
		}
		s.total += ticks
		switch i {
		case 4, 5: // idle, iowait
			s.idle += ticks
		case 8:
			s.steal = ticks
		}
	}
	return s
}

// since gives the share of the time that the host took since then, and how many cores were busy.
func (s stat) since(began stat, cores int) (steal, busy float64) {
	total := s.total - began.total
	if total <= 0 {
		return 0, 0
	}
	steal = (s.steal - began.steal) / total
	return steal, max(0, float64(cores)*(1-steal-(s.idle-began.idle)/total))
}
