package observe

import (
	"cmp"
	"os"
	"slices"
	"time"
)

// A Share is what all processes of one name used of the processor, those counted in that they started and that have
// ended meanwhile.
type Share struct {
	Name  string  `json:"name"`
	Cores float64 `json:"cores"` // CPU seconds per second
}

const (
	shareMin  = 0.02 // of a core; less is not named
	sharesMax = 10
)

// A moment is what all processes have used until then.
type moment struct {
	at        time.Time
	stat      stat
	processes map[int]process
}

func (h host) now() moment {
	return moment{at: time.Now(), stat: h.stat(), processes: h.processes()}
}

func (m moment) since(began stat, cores int) (steal, busy float64) { return m.stat.since(began, cores) }

// rest fills in what ran besides: whoever is not this process, the server, or a descendant of one of them.
func (m *Machine) rest(now moment) {
	took := now.at.Sub(m.began.at).Seconds()
	if took <= 0 {
		return
	}
	others, databases := map[string]float64{}, map[string]float64{}
	m.OtherCores = 0
	for pid, seconds := range spent(m.began.processes, now.processes) {
		name := now.processes[pid].name
		switch {
		case descends(pid, now.processes, os.Getpid(), m.Server):
		case databaseServers[name]:
			databases[name] += seconds / took
		default:
			others[name] += seconds / took
			m.OtherCores += seconds / took
		}
	}
	m.Others, m.Databases = largest(others), largest(databases)
}

// databaseServers are those that an authority may use, by the names of their processes.
var databaseServers = map[string]bool{"postgres": true, "postmaster": true, "mariadbd": true, "mysqld": true}

// spent gives the CPU seconds of each process that is still there. What a process used that has ended is with the one
// that waited for it, so what it had used before is taken off there.
func spent(before, after map[int]process) map[int]float64 {
	all := make(map[int]float64, len(after))
	lives := func(pid int) bool {
		p, ok := after[pid]
		return ok && p.started == before[pid].started
	}
	for pid, p := range after {
		all[pid] += p.own + p.reaped
		if lives(pid) {
			all[pid] -= before[pid].own + before[pid].reaped
		}
	}
	for pid, gone := range before {
		if lives(pid) {
			continue
		}
		heir := gone.parent
		for hops := 0; !lives(heir) && before[heir].parent != 0 && hops < len(before); hops++ {
			heir = before[heir].parent
		}
		if lives(heir) {
			all[heir] -= gone.own + gone.reaped
		}
	}
	for pid := range all {
		all[pid] = max(all[pid], 0)
	}
	return all
}

// descends tells whether a process is one of some, or was started by one of them.
func descends(pid int, all map[int]process, from ...int) bool {
	for hops := 0; pid != 0 && hops < len(all); hops++ {
		if slices.Contains(from, pid) {
			return true
		}
		pid = all[pid].parent
	}
	return false
}

func largest(cores map[string]float64) (shares []Share) {
	for name, c := range cores {
		if c > shareMin {
			shares = append(shares, Share{name, c})
		}
	}
	slices.SortFunc(shares, func(a, b Share) int { return cmp.Or(cmp.Compare(b.Cores, a.Cores), cmp.Compare(a.Name, b.Name)) })
	return shares[:min(sharesMax, len(shares))]
}

func total(shares []Share) (sum float64) {
	for _, s := range shares {
		sum += s.Cores
	}
	return sum
}
