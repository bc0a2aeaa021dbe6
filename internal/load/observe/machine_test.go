package observe

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

// files makes a host of some files.
func files(of map[string]string) host {
	all := fstest.MapFS{}
	for path, text := range of {
		all[path] = &fstest.MapFile{Data: []byte(text)}
	}
	return host{all}
}

func TestMachineIsRead(t *testing.T) {
	cpu := "sys/devices/system/cpu/"
	m := lookAt(files(map[string]string{
		"proc/cpuinfo": "processor\t: 0\nmodel name\t: Some CPU\nflags\t\t: fpu hypervisor\n", "proc/meminfo": "MemTotal:       2048 kB\nMemFree: 3 kB\n",
		"proc/sys/kernel/version": "#1 SMP\n", "proc/loadavg": "0.10 0.20 0.30 1/143 15480\n", "proc/stat": "cpu  10 0 0 90 0 0 0 0 0 0\n",
		cpu + "cpu0/cpufreq/scaling_governor": "performance\n", cpu + "cpu10/cpufreq/scaling_governor": "powersave\n", cpu + "cpu1/cpufreq/scaling_governor": "performance\n",
		cpu + "cpu0/cpufreq/scaling_cur_freq": "2000000\n", cpu + "cpu1/cpufreq/scaling_cur_freq": "3000000\n",
		cpu + "cpu0/cpufreq/cpuinfo_max_freq": "4000000\n", cpu + "cpu0/cpufreq/scaling_max_freq": "2400000\n",
		cpu + "intel_pstate/no_turbo": "1\n",
	}))
	got := []any{m.CPU, m.Virtual, m.Memory, m.Kernel, m.LoadBefore, m.Governor, m.MHz, m.MHzCap, m.Boost}
	want := []any{"Some CPU", "yes", int64(2048 << 10), "#1 SMP", "0.10 0.20 0.30", "performance, powersave", 2500.0, 2400.0, "off"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	m.host = files(map[string]string{"proc/stat": "cpu  60 0 0 130 0 0 0 10 0 0\n"})
	m.Cores = 2
	m.Done()
	if fmt.Sprintf("%.2f %.2f", m.Steal, m.Busy) != "0.10 1.00" {
		t.Errorf("10 of 100 ticks were stolen and 40 idle on two cores: steal %v, %v cores busy", m.Steal, m.Busy)
	}
}

// TestNothingIsTold is a system without those files.
func TestNothingIsTold(t *testing.T) {
	m := lookAt(files(nil))
	m.Done()
	if m.Cores == 0 || m.Go == "" || m.MHz != 0 || m.Governor != "" || m.Virtual != "" || m.Busy != 0 {
		t.Errorf("%+v", m)
	}
	new(Machine).Done()
}

func TestSpeed(t *testing.T) {
	cpu := "sys/devices/system/cpu/"
	for name, c := range map[string]struct {
		files map[string]string
		want  power
	}{
		"nothing":     {nil, power{}},
		"boost":       {map[string]string{cpu + "cpufreq/boost": "1\n"}, power{boost: "on"}},
		"no boost":    {map[string]string{cpu + "cpufreq/boost": "0\n"}, power{boost: "off"}},
		"turbo":       {map[string]string{cpu + "intel_pstate/no_turbo": "0\n"}, power{boost: "on"}},
		"percent":     {map[string]string{cpu + "intel_pstate/max_perf_pct": "50\n", cpu + "cpu0/cpufreq/cpuinfo_max_freq": "4000000\n"}, power{limit: 2000}},
		"not capped":  {map[string]string{cpu + "cpu0/cpufreq/cpuinfo_max_freq": "4000000\n", cpu + "cpu0/cpufreq/scaling_max_freq": "4000000\n"}, power{}},
		"lowest core": {map[string]string{cpu + "cpu0/cpufreq/cpuinfo_max_freq": "4000000", cpu + "cpu0/cpufreq/scaling_max_freq": "3000000", cpu + "cpu1/cpufreq/cpuinfo_max_freq": "4000000", cpu + "cpu1/cpufreq/scaling_max_freq": "1000000"}, power{limit: 1000}},
	} {
		if got := files(c.files).power(); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

func TestMount(t *testing.T) {
	dir := t.TempDir()
	h := files(map[string]string{"proc/self/mountinfo": strings.Join([]string{
		"27 1 254:0 / / rw,relatime shared:1 - ext4 /dev/root rw", "broken", "28 27 0:21 / " + dir + " rw - xfs /dev/hidden rw",
		"29 27 0:21 / " + dir + " rw - tmpfs what\\040ever rw", "30 27 0:21 / " + dir + "-not rw - zfs tank rw"}, "\n")})
	if kind, device := h.mount(dir + "/below"); kind != "tmpfs" || device != "what ever" {
		t.Errorf("%s on %s, want the later of both mounts on %s", kind, device, dir)
	}
	if kind, device := h.mount("/"); kind != "ext4" || device != "/dev/root" {
		t.Errorf("%s on %s, want the root", kind, device)
	}
}

func TestMarks(t *testing.T) {
	for name, c := range map[string]struct {
		m    Machine
		want string
	}{
		"quiet":        {Machine{Revision: "abc", Cores: 2, LoadBefore: "0.90 1 1", Steal: 0.02, OtherCores: 0.1, Governor: "performance"}, ""},
		"steal":        {Machine{Revision: "abc", Cores: 2, Steal: 0.03}, "disturbed: the host took 3 % of the time"},
		"load":         {Machine{Revision: "abc", Cores: 2, LoadBefore: "1.01 1 1"}, "disturbed: the load before was 1.01 1 1"},
		"others":       {Machine{Revision: "abc", OtherCores: 0.42, Others: []Share{{"compile", 0.4}}}, "disturbed: other programs used 0.42 cores, among them compile 0.40"},
		"database":     {Machine{Revision: "abc", Databases: []Share{{"postgres", 0.4}}}, "disturbed: database servers used 0.40 cores, and the run uses none"},
		"own database": {Machine{Revision: "abc", Databases: []Share{{"postgres", 0.4}}, OnDatabase: true}, ""},
		"governor":     {Machine{Revision: "abc", Governor: "performance, powersave"}, "slowed: the processor's governor is performance, powersave"},
		"capped":       {Machine{Revision: "abc", MHzCap: 2400}, "slowed: the processor's frequency is capped at 2400 MHz"},
		"no revision":  {Machine{Revision: ""}, "the program's revision is not recorded"},
		"unknown":      {Machine{Revision: "unknown"}, "the program's revision is not recorded"},
		"devel":        {Machine{Revision: "(devel)"}, "the program's revision is not recorded"},
		"tree":         {Machine{Revision: "abc (modified)"}, "the program was built from a modified tree"},
	} {
		if got := strings.Join(c.m.Marks(), "; "); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestMachineForPeople(t *testing.T) {
	var out bytes.Buffer
	Machine{
		CPU: "Some CPU", Cores: 2, MHz: 2500, MHzAfter: 2400, Governor: "schedutil", Boost: "on", Virtual: "yes", Memory: 24 << 30, System: "linux 6 amd64",
		LoadBefore: "0.1 0.2 0.3", Steal: 0.01, Busy: 1.5, SyncMillis: 0.25, SyncP99: 1.5, FileSystem: "ext4", Device: "/dev/vda", Revision: "abc", Go: "go1.26",
		OtherCores: 0.5, Others: []Share{{"compile", 0.3}, {"link", 0.1}}, Databases: []Share{{"postgres", 0.7}},
	}.Write(&out)
	want := `machine   Some CPU, 2 cores, 2500 MHz before and 2400 after, governor schedutil, boost on, virtual, 24.0 GiB, linux 6 amd64; load before 0.1 0.2 0.3; steal 1.0 %; 1.5 cores busy; sync 0.25 ms, p99 1.50 ms, on ext4 /dev/vda
others    0.50 cores, among them compile 0.30, link 0.10
engines   postgres 0.70 cores, of database servers
program   abc, go1.26
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestSyncLatency(t *testing.T) {
	median, p99, err := SyncLatency(t.Context(), t.TempDir(), 20, 1)
	if err != nil || median <= 0 || p99 < median {
		t.Errorf("median %v, p99 %v, error %v", median, p99, err)
	}
	if _, _, err := SyncLatency(t.Context(), t.TempDir()+"/not there", 20, 1); err == nil {
		t.Error("no error without the directory")
	}
}
