package cli

import (
	"bytes"
	"crypto"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"chancery/internal/base/fault"
	"chancery/internal/base/key"
)

func TestAFileIsReplacedWholeOrNotAtAll(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "agent.pem")
	if err := replace(path, []byte("old"), 0o644); err != nil {
		t.Fatal(err)
	}
	err := replaceWith(path, 0o600, func(w io.Writer) error {
		if _, err := io.WriteString(w, "ne"); err != nil {
			t.Fatal(err)
		}
		return errors.New("the connection broke")
	})
	if err == nil {
		t.Error("a broken write was taken for a good one")
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != "old" {
		t.Errorf("after a broken write the file holds %q (%v)", text, err)
	}
	if err := replace(path, []byte("new"), 0o600); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if text, _ := os.ReadFile(path); err != nil || string(text) != "new" || info.Mode().Perm() != 0o600 {
		t.Errorf("the file holds %q with mode %v (%v)", text, info.Mode(), err)
	}
	if left, _ := os.ReadDir(dir); len(left) != 1 {
		t.Errorf("%d files are left, want the one", len(left))
	}
}

func TestAKeyIsMadeOnceAndKept(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "new", "agent.key")
	first, err := keyAt(path, key.P256)
	if err != nil {
		t.Fatal(err)
	}
	again, err := keyAt(path, key.P384)
	if err != nil {
		t.Fatal(err)
	}
	if kind, _ := key.KindOf(again.Public()); kind != key.P256 || !samePublic(first, again) {
		t.Error("the key that was there was replaced")
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the key has the mode %v (%v), want 0600", info.Mode(), err)
	}
}

func samePublic(a, b crypto.Signer) bool {
	x, errX := key.SPKI(a.Public())
	y, errY := key.SPKI(b.Public())
	return errX == nil && errY == nil && bytes.Equal(x, y)
}

func TestASecretIsNeverGuessed(t *testing.T) {
	terminal := &terminal{}
	if _, err := terminal.secret("password", "", "CHANCERY_TEST_SECRET"); fault.CodeOf(err) != "secret_missing" {
		t.Errorf("without file, variable and terminal: %v, want secret_missing", err)
	}
	t.Setenv("CHANCERY_TEST_SECRET", "from the environment")
	if got, err := terminal.secret("password", "", "CHANCERY_TEST_SECRET"); err != nil || got != "from the environment" {
		t.Errorf("secret = %q, %v", got, err)
	}
	path := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(path, []byte("from a file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := terminal.secret("password", path, "CHANCERY_TEST_SECRET"); err != nil || got != "from a file" {
		t.Errorf("secret = %q, %v; a file wins over the environment", got, err)
	}
}

func TestArgumentsThatMeanACertificate(t *testing.T) {
	t.Parallel()
	for arg, want := range map[string]string{"01A22DD0": "01a22dd0", "7f": "7f"} {
		if got, _, err := serialOf(arg); err != nil || got != want {
			t.Errorf("serialOf(%q) = %q, %v; want %q", arg, got, err, want)
		}
	}
	for _, arg := range []string{"", "no-such-file", "zz"} {
		if got, _, err := serialOf(arg); fault.KindOf(err) != fault.Invalid {
			t.Errorf("serialOf(%q) = %q, %v; want a refusal", arg, got, err)
		}
	}
}
