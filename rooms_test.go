package chancery_test

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite docs/rooms.txt")

// floors lists the parts of the house from the ground up. A room imports lower floors only; the public packages lie
// beside the ground floor and import no floor at all, client excepted.
var floors = []string{"capability", "agentcert", "api", "client", "internal/base", "internal/core", "internal/domain", "internal/edge", "internal/server", "internal/load", "internal/cli", "cmd"}

// sideways lists the arrows that are allowed inside one floor, each with its reason.
var sideways = map[string]string{
	"internal/core/keyring internal/core/store": "sealed keys are rows of the store",
	"internal/base/id internal/base/fault":      "every refusal is a fault",
	"internal/base/key internal/base/fault":     "every refusal is a fault",
	"internal/base/name internal/base/fault":    "every refusal is a fault",
	"internal/base/who internal/base/fault":     "every refusal is a fault",
	"internal/base/conf internal/base/fault":    "every refusal is a fault",
	"internal/edge/adminapi internal/edge/rest": "routes are declared through rest",
	"internal/edge/agentapi internal/edge/rest": "routes are declared through rest",
	"internal/edge/pkiapi internal/edge/rest":   "routes are declared through rest",
	"internal/edge/front internal/edge/rest":    "the listener asks rest which permission a route names",
	"internal/load internal/load/drive":         "scenarios are driven by one engine",
	"internal/load internal/load/page":          "reports are drawn as pages",
	"internal/load internal/load/hinder":        "some runs make the surroundings bad",
	"internal/load internal/load/bare":          "the bare handler is what the others are held against",
	"internal/load internal/load/observe":       "a report says what the machine did meanwhile",
}

// TestRooms draws the import graph into docs/rooms.txt and fails on an arrow that runs upward or sideways. The
// compiler refuses circles of packages; arrows that only run down make circles of floors impossible too.
func TestRooms(t *testing.T) {
	arrows := importArrows(t)
	for _, a := range arrows {
		from, to, _ := strings.Cut(a, " ")
		if problem := judge(from, to); problem != "" {
			t.Errorf("%s -> %s: %s", from, to, problem)
		}
	}
	compare(t, "docs/rooms.txt", strings.Join(arrows, "\n")+"\n")
}

func importArrows(t *testing.T) []string {
	t.Helper()
	cmd := exec.Command("go", "list", "-f", `{{$p := .ImportPath}}{{range .Imports}}{{$p}} {{.}}{{"\n"}}{{end}}`, "./...")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var arrows []string
	for line := range strings.Lines(string(out)) {
		from, to, _ := strings.Cut(strings.TrimSpace(line), " ")
		from, ours := strings.CutPrefix(from, "chancery/")
		to, theirs := strings.CutPrefix(to, "chancery/")
		if ours && theirs {
			arrows = append(arrows, from+" "+to)
		}
	}
	slices.Sort(arrows)
	return slices.Compact(arrows)
}

// judge says what is wrong with an arrow, or nothing. Rooms inside rooms (core/store/storetest) belong to their room.
func judge(from, to string) string {
	a, b := floor(from), floor(to)
	switch {
	case a < 0 || b < 0: // examples and end-to-end tests may look at everything
		return ""
	case a < b:
		return "runs upward"
	case a > b || room(from) == room(to):
		return ""
	case sideways[room(from)+" "+room(to)] != "":
		return ""
	}
	return "runs sideways without a listed reason"
}

func floor(pkg string) int {
	return slices.IndexFunc(floors, func(f string) bool { return pkg == f || strings.HasPrefix(pkg, f+"/") })
}

// room cuts a package's path to its room: floor and one name.
func room(pkg string) string {
	parts := strings.SplitN(pkg, "/", 4)
	return strings.Join(parts[:min(3, len(parts))], "/")
}

func compare(t *testing.T, golden, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("the drawing changed; look at the new arrows, then run `make drawing`:\n%s", fmt.Sprint(diff))
	}
}
