//go:build amd64 || arm64

package hinder

import (
	"bytes"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	_ "modernc.org/sqlite"
)

// TestMain makes this executable the launcher and the programs that tests launch.
func TestMain(m *testing.M) {
	var err error
	switch {
	case len(os.Args) > 2 && os.Args[1] == "launch":
		err = Launch(os.Args[2:])
	case len(os.Args) > 2 && os.Args[1] == "child":
		err = children[os.Args[2]](os.Args[3:])
	default:
		os.Exit(m.Run())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

var children = map[string]func([]string) error{
	"sync": syncMany, "every": syncInEveryWay, "other": syncNothing, "sqlite": commit, "orphan": leaveOrphan,
	"eat": eat, "cores": printCores,
}

// child is a command that runs one of the children, and what leads to Launch.
func child(t testing.TB, args ...string) (cmd *exec.Cmd, launcher []string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd = exec.CommandContext(t.Context(), self, append([]string{"child"}, args...)...)
	cmd.Stderr = os.Stderr
	return cmd, []string{self, "launch"}
}

// syncMany syncs a file so often, in so many threads at once, and prints the time that it took in ns and then, line by
// line, the longest that one took.
func syncMany(args []string) error {
	times, threads := number(args[1]), number(args[2])
	file, err := os.Create(args[0])
	if err != nil {
		return err
	}
	defer file.Close()
	var group sync.WaitGroup
	longest, failed := make([]time.Duration, threads), make([]error, threads)
	began := time.Now()
	for i := range threads {
		group.Go(func() {
			for range times {
				before := time.Now()
				failed[i] = errors.Join(failed[i], unix.Fsync(int(file.Fd())))
				longest[i] = max(longest[i], time.Since(before))
			}
		})
	}
	group.Wait()
	fmt.Println(time.Since(began).Nanoseconds())
	for _, l := range longest {
		fmt.Println(l.Nanoseconds())
	}
	return errors.Join(failed...)
}

func syncInEveryWay(args []string) error {
	file, memory, err := mapped(args[0])
	if err != nil {
		return err
	}
	fd := int(file.Fd())
	return errors.Join(unix.Fsync(fd), unix.Fdatasync(fd), unix.SyncFileRange(fd, 0, 0, unix.SYNC_FILE_RANGE_WRITE), unix.Syncfs(fd),
		unix.Msync(memory, unix.MS_SYNC))
}

func syncNothing(args []string) error {
	file, memory, err := mapped(args[0])
	if err != nil {
		return err
	}
	_, wrote := file.Write([]byte("1"))
	_, read := io.ReadAll(file)
	return errors.Join(wrote, read, unix.Msync(memory, unix.MS_ASYNC), os.Rename(args[0], args[0]+"2"), file.Close())
}

func mapped(path string) (*os.File, []byte, error) {
	file, err := os.Create(path)
	if err != nil {
		return nil, nil, err
	}
	if err := file.Truncate(4096); err != nil {
		return nil, nil, err
	}
	memory, err := unix.Mmap(int(file.Fd()), 0, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	return file, memory, err
}

// commit writes so many rows into SQLite, each in a durable transaction, and prints the time that took in ns.
func commit(args []string) error {
	db, err := sql.Open("sqlite", "file:"+args[0]+"?_pragma=journal_mode(wal)&_pragma=synchronous(full)")
	if err != nil {
		return err
	}
	defer db.Close()
	if _, err := db.Exec("CREATE TABLE t (x)"); err != nil {
		return err
	}
	began := time.Now()
	for range number(args[1]) {
		if _, err := db.Exec("INSERT INTO t VALUES (1)"); err != nil {
			return err
		}
	}
	fmt.Println(time.Since(began).Nanoseconds())
	return nil
}

// leaveOrphan ends while a process of its own waits in a sync.
func leaveOrphan(args []string) error {
	d, err := NewDisk(time.Hour)
	if err != nil {
		return err
	}
	cmd := exec.Command(os.Args[0], "child", "sync", filepath.Join(args[0], "orphan"), "1", "1")
	if err := d.Wrap(cmd, []string{os.Args[0], "launch"}); err != nil {
		return err
	}
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stdout
	if err := cmd.Start(); err != nil {
		return err
	}
	for tick := time.NewTicker(time.Millisecond); d.Syncs() == 0; {
		<-tick.C
	}
	return nil
}

// eat uses so many MiB of memory at once.
func eat(args []string) error {
	var eaten [][]byte
	for range number(args[0]) {
		eaten = append(eaten, bytes.Repeat([]byte{1}, 1<<20))
	}
	runtime.KeepAlive(eaten)
	return nil
}

func printCores([]string) error {
	_, err := fmt.Println(runtime.NumCPU())
	return err
}

func number(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		panic(err)
	}
	return n
}

// durations reads what a child printed.
func durations(t testing.TB, out []byte) (all []time.Duration) {
	t.Helper()
	for line := range strings.Lines(string(out)) {
		all = append(all, time.Duration(number(strings.TrimSpace(line))))
	}
	if len(all) == 0 {
		t.Fatal("the child printed no time")
	}
	return all
}
