package cli

import (
	"os"
	"path/filepath"
	"testing"

	"chancery/internal/base/conf"
)

func TestGroupMemory(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]conf.Size{"536870912\n": 512 << 20, "max\n": 0, "9223372036854771712\n": 0, "": 0, "-1": 0, "lots": 0} {
		file := filepath.Join(t.TempDir(), "memory.max")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := groupMemory(file); got != want {
			t.Errorf("groupMemory(%q) = %v, want %v", text, got, want)
		}
	}
	if got := groupMemory(filepath.Join(t.TempDir(), "missing")); got != 0 {
		t.Errorf("without a control group: %v, want no bound", got)
	}
}

func TestGarbageBesideALargeHeapIsLess(t *testing.T) {
	t.Parallel()
	const mb = 1 << 20
	for _, c := range []struct {
		live   uint64
		wanted int
		want   int
	}{
		{0, 400, 400}, {40 * mb, 400, 400}, {64 * mb, 400, 400}, {128 * mb, 400, 200}, {300 * mb, 400, 100}, {1 << 40, 400, 100}, {128 * mb, 150, 150}, {1 << 40, 50, 50},
	} {
		if got := garbageBeside(c.live, c.wanted); got != c.want {
			t.Errorf("beside %d MB, where %d %% are wanted: %d %%, want %d", c.live/mb, c.wanted, got, c.want)
		}
	}
}
