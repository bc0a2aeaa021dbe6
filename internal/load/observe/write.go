package observe

import (
	"fmt"
	"io"
	"strings"
)

// Write writes the state on a few lines for people, each with its subject first.
func (m Machine) Write(w io.Writer) {
	fmt.Fprintf(w, "machine   %s, %d cores", m.CPU, m.Cores)
	if m.MHz > 0 {
		fmt.Fprintf(w, ", %.0f MHz", m.MHz)
	}
	if m.MHzAfter > 0 {
		fmt.Fprintf(w, " before and %.0f after", m.MHzAfter)
	}
	if m.Governor != "" {
		fmt.Fprintf(w, ", governor %s", m.Governor)
	}
	if m.Boost != "" {
		fmt.Fprintf(w, ", boost %s", m.Boost)
	}
	if m.Virtual == "yes" {
		fmt.Fprint(w, ", virtual")
	}
	if m.Memory > 0 {
		fmt.Fprintf(w, ", %.1f GiB", float64(m.Memory)/(1<<30))
	}
	fmt.Fprintf(w, ", %s; load before %s; steal %.1f %%; %.1f cores busy", m.System, m.LoadBefore, m.Steal*100, m.Busy)
	if m.SyncMillis > 0 {
		fmt.Fprintf(w, "; sync %.2f ms%s", m.SyncMillis, m.disk())
	}
	m.writeOthers(w)
	fmt.Fprintf(w, "\nprogram   %s, %s\n", m.Revision, m.Go)
}

// disk says more about a sync, as far as it is known.
func (m Machine) disk() string {
	var text string
	if m.SyncP99 > 0 {
		text = fmt.Sprintf(", p99 %.2f ms", m.SyncP99)
	}
	if m.FileSystem != "" {
		text += ", on " + strings.TrimSpace(m.FileSystem+" "+m.Device)
	}
	return text
}

func (m Machine) writeOthers(w io.Writer) {
	if m.OtherCores >= shareMin {
		fmt.Fprintf(w, "\nothers    %.2f cores%s", m.OtherCores, among(m.Others))
	}
	if len(m.Databases) > 0 {
		fmt.Fprintf(w, "\nengines   %s cores, of database servers", listed(m.Databases))
	}
}

func among(shares []Share) string {
	if len(shares) == 0 {
		return ""
	}
	return ", among them " + listed(shares)
}

func listed(shares []Share) string {
	all := make([]string, len(shares))
	for i, s := range shares {
		all[i] = fmt.Sprintf("%s %.2f", s.Name, s.Cores)
	}
	return strings.Join(all, ", ")
}
