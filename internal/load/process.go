package load

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"chancery/client"
	"chancery/internal/load/bare"
)

// A Program says how to call this program again: its path, and arguments before all others. Nil is this executable.
type Program []string

func (p Program) command(args ...string) (*exec.Cmd, error) {
	if len(p) == 0 {
		self, err := os.Executable()
		if err != nil {
			return nil, fmt.Errorf("find this program: %w", err)
		}
		p = Program{self}
	}
	all := append(append([]string{}, p...), args...)
	return exec.Command(all[0], all[1:]...), nil
}

// A child is a process that this one started and will end.
type child struct {
	cmd    *exec.Cmd
	stderr fmt.Stringer  // the last that it said there
	ended  chan struct{} // closed when the process is gone
	err    error         // how it ended; valid then
}

// start starts a process, which on Linux ends at the latest with this one. Its error stream goes into the file log;
// without one the last of it is kept here.
func start(cmd *exec.Cmd, log *os.File) (*child, error) {
	kept := &tail{}
	c := &child{cmd: cmd, ended: make(chan struct{}), stderr: kept}
	cmd.Stderr = kept
	if log != nil {
		cmd.Stderr, c.stderr = log, logFile(log.Name())
	}
	bind(cmd)
	started := make(chan error)
	go c.live(started)
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", cmd.Path, err)
	}
	return c, nil
}

// live starts the process and waits for its end. It keeps the thread, since the kernel ends the process with the thread
// that started it, see bind.
func (c *child) live(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := c.cmd.Start()
	started <- err
	if err != nil {
		return
	}
	c.err = c.cmd.Wait()
	close(c.ended)
}

// stop asks the process to end and kills it when it has not within ten seconds, or when nobody wants to wait.
func (c *child) stop(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if c.cmd.Process.Signal(os.Interrupt) == nil {
		select {
		case <-c.ended:
			return
		case <-ctx.Done():
		}
	}
	c.kill()
}

// kill ends the process at once, as kill -9 does, and waits until it is gone.
func (c *child) kill() {
	_ = c.cmd.Process.Kill() // it may be gone already
	<-c.ended
}

// A tail keeps the last few KB of what a process wrote.
type tail struct {
	mu   sync.Mutex
	last []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last = append(t.last, p...)
	t.last = t.last[max(0, len(t.last)-4096):]
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(bytes.TrimSpace(t.last))
}

// A logFile is the path of a file that a process writes its log to, as an installed server does: no reader slows it.
type logFile string

func (l logFile) String() string {
	text, err := os.ReadFile(string(l))
	if err != nil {
		return err.Error()
	}
	return string(bytes.TrimSpace(text[max(0, len(text)-4096):]))
}

// startBare starts the bare handler in a process of its own. It ends when its standard input closes, at the latest
// with this process.
func startBare(p Program, dir string) (*child, bare.Greeting, error) {
	cmd, err := p.command("bench", "bare", dir)
	if err != nil {
		return nil, bare.Greeting{}, err
	}
	if _, err := cmd.StdinPipe(); err != nil {
		return nil, bare.Greeting{}, err
	}
	out, write, err := os.Pipe()
	if err != nil {
		return nil, bare.Greeting{}, err
	}
	defer out.Close()
	cmd.Stdout = write
	c, err := start(cmd, nil)
	write.Close()
	if err != nil {
		return nil, bare.Greeting{}, err
	}
	var hello bare.Greeting
	err = out.SetReadDeadline(time.Now().Add(10 * time.Second))
	if err == nil {
		err = json.NewDecoder(out).Decode(&hello)
	}
	if err != nil {
		c.kill()
		return nil, bare.Greeting{}, fmt.Errorf("the bare handler did not start: %w: %s", err, c.stderr)
	}
	return c, hello, nil
}

// A server is a chancery of its own for one run: fresh data, free ports on the loopback interface.
type server struct {
	*child
	program  Program
	data     string
	address  string // host:port of the HTTPS listener; the others likewise
	mtls     string
	public   string
	private  string
	settings []string
	storeURL string // with its own database; empty: SQLite in data
	around   surroundings
	drop     func() // removes its database
}

const startTimeout = 60 * time.Second

// newServer makes a data directory in dir and, on the database server of storeURL, a database; without one it is SQLite
// in that directory. All settings but the addresses are those of a fresh installation. The caller ends it with remove.
func newServer(ctx context.Context, p Program, dir, storeURL string, settings []string) (*server, error) {
	s := &server{program: p, data: filepath.Join(dir, "data")}
	var err error
	for _, address := range []*string{&s.address, &s.mtls, &s.public, &s.private} {
		if *address, err = freeAddress(); err != nil {
			return nil, err
		}
	}
	if storeURL, s.drop, err = newDatabase(ctx, storeURL); err != nil {
		return nil, err
	}
	s.settings = append([]string{"listen.https=" + s.address, "listen.mtls=" + s.mtls, "listen.public=" + s.public, "listen.private=" + s.private, "listen.loopback="}, settings...)
	if storeURL != "" {
		s.settings = append(s.settings, "store.url="+storeURL)
		s.storeURL = storeURL
	}
	if err := s.init(ctx); err != nil {
		s.drop()
		return nil, err
	}
	return s, nil
}

// init makes the data directory with its authorities.
func (s *server) init(ctx context.Context) error {
	cmd, err := s.program.command(s.arguments("init")...)
	if err != nil {
		return err
	}
	c, err := start(cmd, nil)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	select {
	case <-c.ended:
	case <-ctx.Done():
		c.kill()
	}
	if c.err != nil {
		return fmt.Errorf("chancery init: %w: %s", c.err, c.stderr)
	}
	return ctx.Err()
}

// remove ends the server, if it runs, and drops its database.
func (s *server) remove(ctx context.Context) {
	if s.child != nil {
		s.stop(ctx)
	}
	s.around.close()
	s.drop()
}

func (s *server) arguments(command string) []string {
	args := []string{command, "--data", s.data}
	for _, setting := range s.settings {
		args = append(args, "--set", setting)
	}
	return args
}

// hinder makes the surroundings of the server bad, as its run wants. It comes before start.
func (s *server) hinder(ctx context.Context, c IssueConfig) (err error) {
	var url string
	if s.around, url, err = newSurroundings(ctx, c, s.storeURL); err == nil && url != s.storeURL {
		s.settings = append(s.settings, "store.url="+url) // the last one counts
	}
	return err
}

// freeAddress finds a port that nobody listens on right now.
func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// start starts serving and returns when the server takes connections, with the time that took.
func (s *server) start(ctx context.Context) (time.Duration, error) {
	cmd, err := s.program.command(s.arguments("serve")...)
	if err != nil {
		return 0, err
	}
	log, err := os.OpenFile(s.data+".log", os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return 0, err
	}
	defer log.Close()
	if err := s.around.wrap(cmd, s.program); err != nil {
		return 0, err
	}
	began := time.Now()
	if s.child, err = start(cmd, log); err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for {
		if reachable("tcp", s.address) && reachable("unix", s.socket()) {
			return time.Since(began), nil
		}
		select {
		case <-s.ended:
			return 0, fmt.Errorf("chancery serve ended: %w: %s", s.err, s.stderr)
		case <-ctx.Done():
			s.kill()
			return 0, errors.Join(ctx.Err(), fmt.Errorf("chancery serve did not answer within %s: %s", time.Since(began).Round(time.Second), s.stderr))
		case <-time.After(2 * time.Millisecond):
		}
	}
}

// gone gives how the server ended although nobody told it to; nil: it runs, as far as is known.
func (s *server) gone() error {
	if s == nil {
		return nil
	}
	select {
	case <-s.ended:
		return fmt.Errorf("the server ended during the run: %w; the end of its log:\n%s", cmp.Or(s.err, errors.New("exit code 0")), s.stderr)
	default:
		return nil
	}
}

// while gives a context that ends at the latest with the server; nil is one that runs elsewhere. The caller calls stop.
func (s *server) while(ctx context.Context) (going context.Context, stop func()) {
	going, stop = context.WithCancel(ctx)
	if s != nil {
		go func() {
			select {
			case <-s.ended:
				stop()
			case <-going.Done():
			}
		}()
	}
	return going, stop
}

func reachable(network, address string) bool {
	conn, err := net.DialTimeout(network, address, time.Second)
	if err != nil {
		return false
	}
	return conn.Close() == nil
}

func (s *server) socket() string { return filepath.Join(s.data, "admin.sock") }

// admin gives a client that acts as the operator, through the admin socket.
func (s *server) admin() (*client.Client, error) {
	return client.New(client.Config{Socket: s.socket()})
}
