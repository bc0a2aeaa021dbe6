package observe

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"chancery/internal/base/who"
	"chancery/internal/domain/account"
	"chancery/internal/server"
)

func TestWatchRefuses(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]Config{
		"process":  {Server: -1},
		"no such":  {Data: file + "-not"},
		"file":     {Data: file},
		"metrics":  {Metrics: "https://localhost/metrics"},
		"no host":  {Metrics: "http:///metrics"},
		"database": {Database: "oracle://localhost"},
		"postgres": {Database: "postgres://secret@local host/x"},
		"mysql":    {Database: "mysql://root:secret@%zz/"},
	} {
		w, err := Begin(t.Context(), c)
		if err == nil {
			w.End()
			t.Errorf("%s: %+v is taken", name, c)
		} else if contains(err.Error(), "secret") {
			t.Errorf("%s: the error repeats the address: %v", name, err)
		}
	}
}

// TestWatchAProcess watches a child that burns a core, and a directory that grows.
func TestWatchAProcess(t *testing.T) {
	onLinux(t)
	dir := t.TempDir()
	for name, size := range map[string]int{"a.db": 1000, "a.db-wal": 300} {
		if err := os.WriteFile(filepath.Join(dir, name), make([]byte, size), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(burner(t, "watched"))
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer cmd.Process.Kill()
	w, err := begin(t.Context(), Config{Server: cmd.Process.Pid, Data: dir, Database: "sqlite:x.db"}, 100*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "it burns", func() bool { return this().processTime(cmd.Process.Pid) > 0.6 })
	r := w.End()
	if again := w.End(); len(again.Samples) != len(r.Samples) || *again.Server != *r.Server {
		t.Error("a second End gives another record")
	}
	if len(r.Samples) < 3 || r.Server == nil || r.Server.CPUSeconds < 0.3 || r.Client.CPUSeconds > r.Server.CPUSeconds {
		t.Fatalf("%+v", r)
	}
	var most Sample
	for _, s := range r.Samples {
		if s.Server > most.Server {
			most = s
		}
	}
	if most.Server < 0.1 || most.Server > 1.5 || most.Busy <= 0 || most.Resident < 1<<20 || most.Disk != 1300 || most.Log != 300 || most.Waits != nil {
		t.Errorf("%+v", most)
	}
	if r.Unread+r.Unlisted > 0 {
		t.Errorf("what was not asked for is missing: %+v", r)
	}
}

func TestWatchEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	w, err := begin(ctx, Config{}, time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	<-w.ended
	w.End()
}

// TestWatchOurServer reads the metrics of a server of ours, so that a series that is renamed there shows here.
func TestWatchOurServer(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close()
	c := server.Defaults(t.TempDir())
	c.Store.Accept = []string{"file_system"}
	c.Listen = server.Listen{Private: address}
	s, err := server.New(t.Context(), c, []byte("correct horse"), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close(context.Background())
	ctx, stop := context.WithCancel(t.Context())
	ended, ready := make(chan error, 1), make(chan struct{})
	if err := s.Prepare(ctx); err != nil {
		t.Fatal(err)
	}
	go func() { ended <- s.Run(ctx, func() { close(ready) }) }()
	<-ready
	w, err := begin(ctx, Config{Data: c.Data, Metrics: "http://" + address + "/metrics"}, 50*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "a watched commit", func() bool {
		if _, err := s.Accounts.Create(server.AsOperator(ctx), account.Spec{Kind: who.Person, Name: "p" + time.Now().Format("150405.000000000")}); err != nil {
			t.Fatal(err)
		}
		found, err := series(ctx, address)
		return err == nil && found[commits] >= 20
	})
	r := w.End()
	stop()
	if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	for _, s := range r.Samples {
		if s.Commits > 0 && s.Batch >= 1 && s.Sync > 0 && s.Write > 0 && s.Heap > 1<<20 && s.Connections >= 0 && s.Disk > 0 && s.Log > 0 {
			return
		}
	}
	t.Errorf("no second has commits, batch, sync, write, heap, disk and log: %+v", r)
}

// series reads the metrics; one of those that a watch needs missing is an error.
func series(ctx context.Context, address string) (map[string]float64, error) {
	r, err := newScraper("http://" + address + "/metrics")
	if err != nil {
		return nil, err
	}
	defer r.close()
	found, err := r.read(ctx)
	for name := range wanted {
		if _, ok := found[name]; !ok && err == nil {
			err = errors.New("the server has no " + name)
		}
	}
	return found, err
}
