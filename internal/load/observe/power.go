package observe

import (
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

// A power is how fast the system lets the processor be.
type power struct {
	governor, boost string
	limit           float64 // MHz; 0: no lower than the processor can
}

const (
	eachCore = "sys/devices/system/cpu/cpu[0-9]*/cpufreq"
	pstate   = "sys/devices/system/cpu/intel_pstate/"
)

func (h host) power() power {
	p := power{governor: h.governor(), boost: h.boost()}
	for _, dir := range h.coreDirs() {
		can, may := h.number(dir+"/cpuinfo_max_freq"), h.number(dir+"/scaling_max_freq")
		if may > 0 && may < can {
			p.limit = lower(p.limit, may/1000)
		}
		if percent := h.number(pstate + "max_perf_pct"); percent > 0 && percent < 100 {
			p.limit = lower(p.limit, can/1000*percent/100)
		}
	}
	return p
}

func lower(known, found float64) float64 {
	if known == 0 {
		return found
	}
	return min(known, found)
}

// Governor gives the governor of the processor's frequency; where cores differ, all there are. It is empty where the
// system does not tell, as in most virtual machines.
func Governor() string { return this().governor() }

// PowerSaving tells whether one of the governors keeps the processor slow.
func PowerSaving(governor string) bool { return strings.Contains(governor, "powersave") }

func (h host) governor() string {
	var found []string
	for _, dir := range h.coreDirs() {
		if g := h.line(dir + "/scaling_governor"); g != "" {
			found = append(found, g)
		}
	}
	slices.Sort(found)
	return strings.Join(slices.Compact(found), ", ")
}

// boost tells whether the processor may go beyond its nominal frequency, with the drivers of Intel and of all others.
func (h host) boost() string {
	for file, on := range map[string]string{pstate + "no_turbo": "0", "sys/devices/system/cpu/cpufreq/boost": "1"} {
		switch h.line(file) {
		case "":
		case on:
			return "on"
		default:
			return "off"
		}
	}
	return ""
}

// frequency gives the mean of all cores at this moment, in MHz.
func (h host) frequency() float64 {
	var sum, n float64
	for _, dir := range h.coreDirs() {
		if khz := h.number(dir + "/scaling_cur_freq"); khz > 0 {
			sum, n = sum+khz/1000, n+1
		}
	}
	if n > 0 {
		return sum / n
	}
	for _, text := range h.fields("proc/cpuinfo", "cpu MHz") {
		if mhz, err := strconv.ParseFloat(text, 64); err == nil {
			sum, n = sum+mhz, n+1
		}
	}
	return sum / max(n, 1)
}

func (h host) coreDirs() []string {
	if h.FS == nil {
		return nil
	}
	dirs, err := fs.Glob(h, path.Clean(eachCore))
	if err != nil {
		return nil
	}
	return dirs
}
