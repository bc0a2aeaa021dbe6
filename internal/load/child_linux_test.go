package load

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"runtime"
	"testing"
	"time"
)

const parentMark = "CHANCERY_TEST_PARENT"

// TestChildEndsWithParent kills a process as kill -9 does and waits until the one that it had started is gone, too: that
// holds the last end of the pipe.
func TestChildEndsWithParent(t *testing.T) {
	if os.Getenv(parentMark) != "" {
		beParent(t)
	}
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	parent := exec.Command(os.Args[0], "-test.run=^TestChildEndsWithParent$")
	parent.Env, parent.Stdout = append(os.Environ(), parentMark+"=1"), write
	err = parent.Start()
	write.Close()
	if err != nil {
		t.Fatal(err)
	}
	if err := read.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(read)
	line, err := lines.ReadString('\n')
	if err != nil || line != "child\n" {
		t.Errorf("the child says %q, %v", line, err)
	}
	_ = parent.Process.Kill()
	_ = parent.Wait()
	if rest, err := io.ReadAll(lines); err != nil || len(rest) > 0 {
		t.Errorf("the child outlives its parent: %q, %v", rest, err)
	}
}

// beParent starts a child from a thread that ends at once, and waits to be killed.
func beParent(t *testing.T) {
	begun := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocked, so the thread ends with the goroutine
		cmd := exec.Command("sh", "-c", "sleep 1; echo child; exec sleep 60")
		cmd.Stdout = os.Stdout
		_, err := start(cmd, nil)
		begun <- err
	}()
	if err := <-begun; err != nil {
		t.Fatal(err)
	}
	select {}
}
