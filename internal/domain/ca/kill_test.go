package ca

import (
	"bufio"
	"context"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"chancery/internal/base/id"
	"chancery/internal/core/store"
)

// killVariable names the database of the process that TestKilled kills.
const killVariable = "CHANCERY_TEST_CA_KILLED"

// TestKilled ends a process that issues at full load with SIGKILL, again and again: every answered certificate is
// stored, good in OCSP, found by its evidence and revocable, and its evidence stays used.
func TestKilled(t *testing.T) {
	t.Parallel()
	url := "sqlite:" + filepath.Join(t.TempDir(), "chancery.db")
	setUp(t, url)
	var answered []string
	for range 3 {
		answered = append(answered, killAfter(t, url, 150)...)
	}
	w := open(t, store.Config{URL: url}, newClock())
	for n, line := range answered {
		var o AgentOrder
		var serial, nonce string
		if _, err := fmt.Sscan(line, &serial, &o.SignedAt, &nonce); err != nil {
			t.Fatal(err)
		}
		raw, err := hex.DecodeString(nonce)
		if err != nil {
			t.Fatal(err)
		}
		o.Nonce = [32]byte(raw)
		found, _, ok, err := w.FindByEvidence(t.Context(), o.SignedAt, o.Nonce)
		if err != nil || !ok || found.Serial.String() != serial {
			t.Fatalf("answered %s is found as %s, %v, %v", serial, found.Serial, ok, err)
		}
		if n%50 != 0 {
			continue
		}
		w.wantStatus(t, "agents", found.Serial, Good, 0)
		w.revoke(t, "crt:"+serial, KeyCompromise)
		w.wantStatus(t, "agents", found.Serial, Revoked, KeyCompromise)
	}
}

// setUp creates the authorities and closes the store properly.
func setUp(t *testing.T, url string) {
	t.Helper()
	at := newClock()
	db, err := store.Open(t.Context(), store.Config{URL: url, Now: at.now, Accept: []string{"file_system"}})
	if err != nil {
		t.Fatal(err)
	}
	over(t, db, at).found(t)
	if err := db.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// killAfter runs this test binary as the issuing process and kills it after so many answers, which it gives.
func killAfter(t *testing.T, url string, answers int) (lines []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	child := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestIssueUntilKilled$", "-test.v")
	child.Env = append(os.Environ(), killVariable+"="+url)
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	scan := bufio.NewScanner(out)
	for len(lines) < answers && scan.Scan() {
		if line, ok := strings.CutPrefix(scan.Text(), "answered "); ok {
			lines = append(lines, line)
		}
	}
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	for scan.Scan() { // what was answered before the end
		if line, ok := strings.CutPrefix(scan.Text(), "answered "); ok && strings.HasSuffix(line, ".") {
			lines = append(lines, line)
		}
	}
	_ = child.Wait() // it was killed, and says so
	if len(lines) < answers {
		t.Fatalf("the process ended after %d answers", len(lines))
	}
	return lines
}

// TestIssueUntilKilled is the process that TestKilled kills.
func TestIssueUntilKilled(t *testing.T) {
	url := os.Getenv(killVariable)
	if url == "" {
		t.Skip("this is a part of TestKilled")
	}
	w := open(t, store.Config{URL: url}, newClock())
	person := id.New(id.Person, w.now())
	principal := w.principal(t, person)
	for range 8 {
		go func() {
			agent := id.New(id.Agent, w.now())
			for {
				o := w.order(t, principal, person, agent, "")
				i, err := w.IssueAgent(operator(t), o)
				if err != nil {
					fmt.Println("failed", err)
					return
				}
				fmt.Printf("answered %s %d %x .\n", i.Serial, o.SignedAt, o.Nonce)
			}
		}()
	}
	<-t.Context().Done() // the parent kills us long before
}
