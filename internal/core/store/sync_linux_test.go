package store_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"chancery/internal/core/store"
	"chancery/internal/core/store/storetest"
)

// TestSyncBeforeAnswer watches the system calls of a child: before each acknowledgement, the write-ahead log was
// written and then synced. The control, at the level that does not sync, must fail the same look.
func TestSyncBeforeAnswer(t *testing.T) {
	strace, err := exec.LookPath("strace")
	if err != nil {
		t.Skip("left out: install strace to watch the syncs of a commit")
	}
	at := storetest.SQLite(t)
	s := storetest.OpenAt(t, store.Config{URL: at.URL})
	at.Create(t, s)
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, level := range []struct {
		name, written string
		synced        bool
	}{{"synced", "", true}, {"written", "yes", false}} {
		trace := filepath.Join(t.TempDir(), "trace")
		child := exec.CommandContext(t.Context(), strace, "-f", "-y", "-e", "trace=write,pwrite64,fsync,fdatasync", "-o", trace, os.Args[0])
		child.Env = append(os.Environ(), tracedVariable+"="+at.URL, writtenVariable+"="+level.written)
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
		answers, synced := syncedAnswers(string(text))
		if answers != tracedWrites || (synced == answers) != level.synced {
			t.Errorf("%s: %d of %d answers came after a sync", level.name, synced, answers)
		}
		emptyCounters(t, at)
	}
}

func emptyCounters(t *testing.T, at storetest.Target) {
	t.Helper()
	s := storetest.OpenAt(t, store.Config{URL: at.URL})
	if err := s.Write(t.Context(), func(tx *store.Tx) error {
		_, err := tx.Exec("DELETE FROM sample_counter")
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
}

var (
	logWrite  = regexp.MustCompile(`pwrite64\(\d+<[^>]*-wal>`)
	syncCall  = regexp.MustCompile(`^(\d+) +f(data)?sync\(\d+<[^>]*-wal>(.*)`)
	syncAfter = regexp.MustCompile(`^(\d+) +<\.\.\. f(data)?sync resumed>\) += 0`)
	answer    = regexp.MustCompile(`write\(1<[^>]*>, "acknowledged`)
)

// syncedAnswers counts the answers in a trace, and those since whose predecessor the log was written and then synced.
func syncedAnswers(trace string) (answers, synced int) {
	var written, durable bool
	syncing := map[string]bool{} // threads whose sync was under way when another spoke
	for line := range strings.Lines(trace) {
		switch {
		case logWrite.MatchString(line):
			written = true
		case answer.MatchString(line):
			answers++
			if durable {
				synced++
			}
			written, durable = false, false
		default:
			if m := syncCall.FindStringSubmatch(line); m != nil {
				syncing[m[1]] = strings.Contains(m[3], "unfinished")
				durable = durable || written && strings.HasSuffix(strings.TrimSpace(m[3]), "= 0")
			} else if m := syncAfter.FindStringSubmatch(line); m != nil && syncing[m[1]] {
				durable = durable || written
			}
		}
	}
	return answers, synced
}
