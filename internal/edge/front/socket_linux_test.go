package front

import (
	"context"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// onSocket opens a house with an admin socket.
func onSocket(t *testing.T) (h *house, path string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "front") // t.TempDir is too long for a socket's path
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	path = filepath.Join(dir, "admin.sock")
	return open(t, func(c *Config) { c.Listen = map[Listener]string{Socket: path} }), path
}

func overSocket(path string) *http.Client {
	return &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", path)
	}}}
}

func TestSocketKnowsTheOperator(t *testing.T) {
	t.Parallel()
	_, path := onSocket(t)
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the socket has mode %v (%v)", info.Mode(), err)
	}
	r := send(t, overSocket(path), "GET", "http://admin/me", "")
	r.want(t, 200, "")
	if !strings.Contains(r.body, "operator") {
		t.Errorf("the caller is %s", r.body)
	}
	send(t, overSocket(path), "GET", "http://admin/me", "", "Authorization", "Bearer wrong7").want(t, 401, "token_unknown")
}

func TestSocketLeftOverIsReplaced(t *testing.T) {
	t.Parallel()
	_, path := onSocket(t)
	again, err := listenSocket(t.Context(), path)
	if err != nil {
		t.Fatalf("a socket that was there already: %v", err)
	}
	again.Close()
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := listenSocket(t.Context(), path); err == nil {
		t.Error("a file that is no socket was replaced")
	}
}

// TestSocketRefusesOthers runs this test binary again as another user, who finds a socket with an open mode.
func TestSocketRefusesOthers(t *testing.T) {
	t.Parallel()
	if path := os.Getenv("FRONT_TEST_SOCKET"); path != "" {
		response, err := overSocket(path).Get("http://admin/me")
		if err == nil {
			response.Body.Close()
			t.Fatalf("another user was answered with %d", response.StatusCode)
		}
		t.Logf("refused: %v", err)
		return
	}
	if os.Getuid() != 0 {
		t.Skip("only root can become another user")
	}
	_, path := onSocket(t)
	for _, p := range []string{path, filepath.Dir(path)} {
		if err := os.Chmod(p, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	binary := filepath.Join(filepath.Dir(path), "test")
	content, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(binary, content, 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(binary, "-test.run", "^TestSocketRefusesOthers$", "-test.v")
	cmd.Dir = filepath.Dir(path)
	cmd.Env = append(os.Environ(), "FRONT_TEST_SOCKET="+path)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "refused: ") {
		t.Errorf("another user: %v\n%s", err, out)
	}
}
