package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"chancery/internal/base/conf"
	"chancery/internal/server"
)

// patient gives an examination of a directory, with a store address.
func patient(t *testing.T, dir, store string) *examination {
	t.Helper()
	c := server.Defaults(dir)
	c.Store.URL = conf.URL(store)
	return &examination{terminal: &terminal{data: dir}, config: c}
}

func states(d *examination) (all []string) {
	for _, f := range d.diagnoses {
		all = append(all, f.State+" "+f.What)
	}
	return all
}

func TestDoctorOfTheProcessor(t *testing.T) {
	t.Parallel()
	for governor, want := range map[string][]string{
		"": nil, "performance": {"ok processor"}, "schedutil": {"ok processor"}, "powersave": {"warning processor"}, "performance, powersave": {"warning processor"},
	} {
		d := patient(t, t.TempDir(), "")
		d.power(governor)
		if diff := cmp.Diff(want, states(d)); diff != "" {
			t.Errorf("governor %q (-want +got):\n%s", governor, diff)
		}
		if len(want) > 0 && strings.HasPrefix(want[0], warning) && d.diagnoses[0].Do == "" {
			t.Errorf("governor %q: nothing to do", governor)
		}
	}
}

func TestDoctorOfSlowSync(t *testing.T) {
	t.Parallel()
	for median, want := range map[time.Duration]string{200 * time.Microsecond: ok, 5 * time.Millisecond: ok, 6 * time.Millisecond: warning} {
		d := patient(t, t.TempDir(), "")
		d.synced(median)
		if got := d.diagnoses[0]; got.State != want || !strings.Contains(got.Text, median.String()) || (want == warning) == (got.Do == "") {
			t.Errorf("%v: %+v, want %s", median, got, want)
		}
	}
}

func TestDoctorMeasuresWhereTheDatabaseLies(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, c := range map[string]struct{ store, want string }{
		"default":   {"", "the disk takes"},
		"elsewhere": {"sqlite:" + filepath.Join(dir, "some.db"), "the disk takes"},
		"missing":   {"sqlite://" + filepath.Join(dir, "missing", "some.db"), "could not be measured"},
		"server":    {"postgres://localhost/x", ""},
	} {
		d := patient(t, dir, c.store)
		d.sync(t.Context())
		switch {
		case c.want == "" && len(d.diagnoses) == 0:
		case c.want == "" || len(d.diagnoses) != 1 || !strings.Contains(d.diagnoses[0].Text, c.want):
			t.Errorf("%s: %+v, want %q", name, d.diagnoses, c.want)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("it left %v behind, %v", left, err)
	}
}
