package store_test

import (
	"encoding/hex"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"chancery/internal/core/store"
	"chancery/internal/core/store/storetest"
)

var powerCuts = flag.Int("cuts", 40, "how often TestPowerCut cuts the power, at each durability")

// TestPowerCut records what a child writes, syncs and acknowledges, and builds what a disk may hold after the power
// failed at some moment: all that was synced, and of the rest any part, down to single sectors. The store opened on it
// has everything that was acknowledged by then, also from when SQLite begins to fold the log in between two changes, which
// takes long ones. The control, which does not sync, must lose something.
func TestPowerCut(t *testing.T) {
	for name, level := range map[string]struct {
		written, long string
		loses         bool
	}{"synced": {}, "folded": {long: "yes"}, "written": {written: "yes", loses: true}} {
		t.Run(name, func(t *testing.T) {
			at := storetest.SQLite(t)
			s := storetest.OpenAt(t, store.Config{URL: at.URL})
			at.Create(t, s)
			if err := s.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			path := strings.TrimPrefix(at.URL, "sqlite:")
			before, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			events := record(t, at.URL, path, writtenVariable+"="+level.written, longVariable+"="+level.long)
			from, lost, cuts := 0, 0, *powerCuts
			if fold, last := folds(events); fold < last != (level.long != "") {
				t.Fatalf("the log is first folded in at event %d, and the last change is acknowledged at %d", fold, last)
			} else if level.long != "" {
				from, cuts = fold, max(1, cuts/foldedPart)
			}
			for seed := range cuts {
				lost += cutPower(t, events, before, uint64(seed), from)
			}
			t.Logf("%d events, %d cuts from the %dth on: %d acknowledged changes lost", len(events), cuts, from, lost)
			if (lost > 0) != level.loses {
				t.Errorf("%d acknowledged changes were lost in %d power cuts; any should be: %v", lost, cuts, level.loses)
			}
		})
	}
}

// foldedPart is how many cuts go by for one with long changes: each takes so much longer.
const foldedPart = 5

// folds gives the events at which the first page of the file is written and the last change is acknowledged.
func folds(events []event) (fold, last int) {
	fold = slices.IndexFunc(events, func(e event) bool { return e.file == "" && len(e.data) > 0 })
	last = slices.IndexFunc(events, func(e event) bool { return e.answers == tracedWrites })
	return fold, last
}

// An event is a system call of the child, in the order in which they began; a sync stands where it ended.
type event struct {
	file    string // suffix of the database's name: "" or "-wal"
	data    []byte // written at offset
	offset  int
	synced  int // of a sync: how many events had begun when it did; 0 for other calls
	answers int // of an acknowledgement: how many there were with it
}

var (
	tracedCall  = regexp.MustCompile(`^(\d+) +(pwrite64|fsync|fdatasync|write|unlink|unlinkat)\(`)
	tracedFile  = regexp.MustCompile(`^\d+<([^>]*)>`)
	tracedPlace = regexp.MustCompile(`^\d+(?:, (\d+))?`)
	tracedEnd   = regexp.MustCompile(`^(\d+) +<\.\.\. f(?:data)?sync resumed>\) += 0`)
)

// record runs the child under strace, until it closes the store and removes the log.
func record(t *testing.T, address, path string, environment ...string) (events []event) {
	t.Helper()
	strace, err := exec.LookPath("strace")
	if err != nil {
		t.Skip("left out: install strace to record what a commit writes and syncs")
	}
	trace := filepath.Join(t.TempDir(), "trace")
	child := exec.CommandContext(t.Context(), strace, "-f", "-y", "-xx", "-s", "70000",
		"-e", "trace=pwrite64,write,fsync,fdatasync,unlink,unlinkat", "-o", trace, os.Args[0])
	child.Env = append(append(os.Environ(), tracedVariable+"="+address), environment...)
	if out, err := child.CombinedOutput(); err != nil {
		if strings.Contains(string(out), "ptrace") {
			t.Skipf("left out: this machine does not let strace watch: %s", out)
		}
		t.Fatalf("the child: %v\n%s", err, out)
	}
	text, err := os.ReadFile(trace)
	if err != nil {
		t.Fatal(err)
	}
	answers, syncs := 0, map[string]event{} // syncs under way, by thread
	for line := range strings.Lines(string(text)) {
		if end := tracedEnd.FindStringSubmatch(line); end != nil {
			if e, ok := syncs[end[1]]; ok {
				events = append(events, e)
				delete(syncs, end[1])
			}
			continue
		}
		call := tracedCall.FindStringSubmatch(line)
		if call == nil {
			continue
		}
		arguments := line[len(call[0]):]
		if strings.HasPrefix(call[2], "unlink") && strings.Contains(unhex(t, arguments), path+"-wal") {
			return events
		}
		name := tracedFile.FindStringSubmatch(arguments)
		if name == nil {
			continue
		}
		file, ours := strings.CutPrefix(unhex(t, name[1]), path)
		content, offset, writes := writing(t, arguments)
		switch {
		case call[2] == "write" && writes && strings.HasPrefix(content, "acknowledged"):
			answers++
			events = append(events, event{answers: answers})
		case call[2] == "pwrite64" && ours && writes && (file == "" || file == "-wal"):
			events = append(events, event{file: file, data: []byte(content), offset: offset})
		case strings.HasSuffix(call[2], "sync") && ours:
			e := event{file: file, synced: len(events)}
			if strings.Contains(arguments, "unfinished") {
				syncs[call[1]] = e
			} else {
				events = append(events, e)
			}
		}
	}
	t.Fatalf("the child closed nothing; it made %d calls", len(events))
	return nil
}

// writing gives what a call writes and where, by its arguments.
func writing(t *testing.T, arguments string) (content string, offset int, ok bool) {
	t.Helper()
	_, rest, _ := strings.Cut(arguments, `, "`)
	content, rest, _ = strings.Cut(rest, `", `)
	place := tracedPlace.FindStringSubmatch(rest)
	if place == nil {
		return "", 0, false
	}
	offset, _ = strconv.Atoi(place[1]) // of write: none
	return unhex(t, content), offset, true
}

// unhex reads the texts of strace -xx; what is not escaped stays.
func unhex(t *testing.T, text string) string {
	t.Helper()
	plain, rest, found := strings.Cut(text, `\x`)
	out := []byte(plain)
	for found {
		var b [1]byte
		if _, err := hex.Decode(b[:], []byte(rest[:min(2, len(rest))])); err != nil {
			t.Fatal(err)
		}
		out = append(out, b[0])
		plain, rest, found = strings.Cut(rest[2:], `\x`)
		out = append(out, plain...)
	}
	return string(out)
}

const sector = 512

// cutPower opens what the disk may hold after a random number of the events, some at least, and counts what is missing of
// what was acknowledged by then.
func cutPower(t *testing.T, events []event, before []byte, seed uint64, some int) (lost int) {
	t.Helper()
	random := rand.New(rand.NewPCG(seed, 6))
	moment := some + random.IntN(len(events)+1-some)
	durable, answers := map[string]int{}, 0
	for _, e := range events[:moment] {
		durable[e.file] = max(durable[e.file], e.synced)
		answers = max(answers, e.answers)
	}
	disk := map[string][]byte{"": append([]byte{}, before...)}
	kept := []float64{0, 0.5, 1}[random.IntN(3)] // of what was not synced
	for i, e := range events[:moment] {
		for from := 0; from < len(e.data); from += sector {
			if i < durable[e.file] || random.Float64() < kept {
				disk[e.file] = put512(disk[e.file], e.data[from:min(from+sector, len(e.data))], e.offset+from)
			}
		}
	}
	path := filepath.Join(t.TempDir(), fmt.Sprint("cut", seed, ".db"))
	for file, content := range disk {
		if err := os.WriteFile(path+file, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	there := stored(t, path)
	for i := range answers {
		if !there[traced(i, false)] {
			lost++
		}
	}
	return lost
}

func put512(disk, data []byte, offset int) []byte {
	if missing := offset + len(data) - len(disk); missing > 0 {
		disk = append(disk, make([]byte, missing)...)
	}
	copy(disk[offset:], data)
	return disk
}

// stored opens a database file and gives the counters in it.
func stored(t *testing.T, path string) map[string]bool {
	t.Helper()
	s := storetest.OpenAt(t, store.Config{URL: "sqlite:" + path})
	there := map[string]bool{}
	if err := s.Read(t.Context(), func(tx *store.Tx) error {
		return tx.Each("SELECT name FROM sample_counter", nil, func(row store.Row) error {
			var name string
			err := row.Scan(&name)
			there[strings.TrimRight(name, ".")] = true
			return err
		})
	}); err != nil {
		t.Fatalf("reading after a power cut: %v", err)
	}
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	return there
}
