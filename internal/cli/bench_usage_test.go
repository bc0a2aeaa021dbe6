package cli

import (
	"bytes"
	"strings"
	"testing"
)

// TestBenchRefusesWhatMeansNothing tells wrong command lines from runs that fail, before anything is started.
func TestBenchRefusesWhatMeansNothing(t *testing.T) {
	for _, line := range []string{
		"limits --connections -1",
		"limits --sample -1s",
		"limits more",
		"gate --duration -1s",
		"gate --connections 0x10000000",
		"crash --rounds -1",
		"crash --connections -1",
		"crash --people -1",
		"crash --store sqlite:/var/lib/chancery/chancery.db",
		"peer",
		"peer --peer-root a --provisioner b --provisioner-key c --pairs -1",
		"ab a b nonsense",
		"ab a b verify",
		"ab a b",
		"ab a b agent --warmup -1s",
		"suite --only nonsense",
		"suite --timeout -1s",
		"suite --connections -1",
		"suite --store nonsense",
		"compare a.json",
		"issue --scenario nonsense",
		"issue --mode nonsense",
		"issue --mode open",
		"issue --rate 100",
		"issue --interval 1s",
		"issue --mode steady --interval -1s",
		"issue --mode once --warmup 1s",
		"issue --obey",
		"issue --resume",
		"issue --duration 10s --stall 10s",
		"issue --memory much",
		"issue --store nonsense",
		"issue --slow-disk 5ms --store postgres://127.0.0.1:1/postgres",
		"issue --slow-disk 5ms --store mysql://root@127.0.0.1:1/",
		"issue --preset slow-disk --store postgres://127.0.0.1:1/postgres",
		"issue --preset nonsense",
		"issue --preset t3 --rate 100",
		"issue --preset t3 --memory 512MB",
		"issue --preset t3 --duration -1s",
		"issue --preset t3 --agents -1",
	} {
		var out, complaint bytes.Buffer
		code := Main(t.Context(), append([]string{"bench"}, strings.Fields(line)...), strings.NewReader(""), &out, &complaint)
		if code != exitUsage || out.Len() > 0 || complaint.Len() == 0 {
			t.Errorf("bench %s: exit code %d, %q and %q", line, code, out.String(), complaint.String())
		}
	}
}
