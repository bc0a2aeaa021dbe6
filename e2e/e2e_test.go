package e2e

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	_ "modernc.org/sqlite" // for tamper

	"chancery/internal/cli"
)

var update = flag.Bool("update", false, "rewrite the golden parts of the stories")

// TestMain lets this binary be the program under test, too, when a story runs `chancery`.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"chancery": func() { os.Exit(cli.Main(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) },
	})
}

func TestStories(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("the stories use the admin socket and signals, which this system does not have")
	}
	testscript.Run(t, testscript.Params{
		Dir:           "testdata",
		Setup:         (&ports{given: map[string]bool{}}).setUp,
		UpdateScripts: *update,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"ready":     ready,
			"terminate": terminate,
			"capture":   capture,
			"within":    within,
			"exits":     exits,
			"shape":     shape,
			"mode":      mode,
			"tamper":    tamper,
		},
	})
}

// ports hands out addresses on loopback, each once. They lie below those that systems take for outgoing connections, so
// that nothing else takes one between here and the story's server.
type ports struct {
	mu    sync.Mutex
	given map[string]bool
}

const (
	portFirst = 20000
	portRange = 12000
)

func (p *ports) free() (string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for range 100 {
		address := fmt.Sprintf("127.0.0.1:%d", portFirst+rand.IntN(portRange))
		listener, err := net.Listen("tcp", address)
		if err != nil {
			continue
		}
		if err := listener.Close(); err != nil {
			return "", err
		}
		if !p.given[address] {
			p.given[address] = true
			return address, nil
		}
	}
	return "", errors.New("no free port was found")
}

// setUp gives each story its own home and free ports. Settings come through the environment, so that the commands of a
// story read as they would with the standard ports.
func (p *ports) setUp(env *testscript.Env) error {
	var addresses [4]string
	for i := range addresses {
		var err error
		if addresses[i], err = p.free(); err != nil {
			return err
		}
	}
	https, mtls, loopback, public := addresses[0], addresses[1], addresses[2], addresses[3]
	for name, value := range map[string]string{
		"HOME": env.WorkDir, "TZ": "UTC", "USER": "owner", "GODEBUG": os.Getenv("GODEBUG"),
		"CHANCERY_LISTEN_HTTPS": https, "CHANCERY_LISTEN_MTLS": mtls, "CHANCERY_LISTEN_LOOPBACK": loopback, "CHANCERY_LISTEN_PUBLIC": public,
		"CHANCERY_NAME_PUBLIC_URL": "http://" + public, "CHANCERY_LOG_LEVEL": "warn",
		"CHANCERY_STORE_ACCEPT": "file_system", // the directory of tests may lie in memory
		"HTTPS":                 "https://" + https, "MTLS": "https://" + mtls, "PUBLIC": "http://" + public,
	} {
		env.Setenv(name, value)
	}
	return nil
}

const (
	patience = 20 * time.Second
	poll     = 20 * time.Millisecond
)

// ready waits until the server of the story answers: ready.
func ready(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) > 0 {
		ts.Fatalf("usage: ready")
	}
	url := "http://" + ts.Getenv("CHANCERY_LISTEN_LOOPBACK") + "/readyz"
	eventually(ts, patience, "the server did not get ready", func() error {
		res, err := http.Get(url)
		if err != nil {
			return err
		}
		defer res.Body.Close()
		if res.StatusCode != http.StatusOK {
			return fmt.Errorf("it answers %s", res.Status)
		}
		return nil
	})
}

// terminate asks what a story left running to end, as a service manager does, all of it or one subcommand of chancery:
// terminate [SUBCOMMAND].
func terminate(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) > 1 {
		ts.Fatalf("usage: terminate [SUBCOMMAND]")
	}
	for _, command := range ts.BackgroundCmds() {
		if len(args) == 0 || command.Args[1] == args[0] {
			ts.Check(command.Process.Signal(syscall.SIGTERM))
		}
	}
}

// capture keeps what a group in a pattern finds in the output of the last command: capture NAME PATTERN.
func capture(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: capture NAME PATTERN")
	}
	found := regexp.MustCompile(args[1]).FindStringSubmatch(ts.ReadFile("stdout"))
	if len(found) != 2 {
		ts.Fatalf("the output does not match %s with one group", args[1])
	}
	ts.Setenv(args[0], found[1])
}

// within repeats a command until its output matches: within 1s PATTERN COMMAND ARGUMENT...
func within(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 {
		ts.Fatalf("usage: within DURATION PATTERN COMMAND ARGUMENT...")
	}
	limit, err := time.ParseDuration(args[0])
	ts.Check(err)
	pattern := regexp.MustCompile(args[1])
	eventually(ts, limit, "no such output: "+args[1], func() error {
		_ = ts.Exec(args[2], args[3:]...) // openssl says "revoked" and fails; the output decides
		if out := ts.ReadFile("stdout"); !pattern.MatchString(out) {
			return fmt.Errorf("%s", strings.TrimSpace(out))
		}
		return nil
	})
}

// exits runs a command that has to end with the given exit code: exits CODE COMMAND ARGUMENT...
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND ARGUMENT...")
	}
	var exit *exec.ExitError
	if err := ts.Exec(args[1], args[2:]...); !errors.As(err, &exit) || strconv.Itoa(exit.ExitCode()) != args[0] {
		ts.Fatalf("%s: %v; want exit code %s", strings.Join(args[1:], " "), err, args[0])
	}
}

// mode checks the permissions of files: mode 600 FILE...
func mode(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: mode OCTAL FILE...")
	}
	for _, name := range args[1:] {
		info, err := os.Stat(ts.MkAbs(name))
		ts.Check(err)
		if got := strconv.FormatUint(uint64(info.Mode().Perm()), 8); got != args[0] {
			ts.Fatalf("%s has the mode %s, want %s", name, got, args[0])
		}
	}
}

// tamper changes a database file behind the program's back: tamper FILE STATEMENT.
func tamper(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: tamper FILE STATEMENT")
	}
	db, err := sql.Open("sqlite", ts.MkAbs(args[0]))
	ts.Check(err)
	defer db.Close()
	result, err := db.ExecContext(context.Background(), args[1])
	ts.Check(err)
	if changed, err := result.RowsAffected(); err != nil || changed == 0 {
		ts.Fatalf("nothing was changed (%v)", err)
	}
}

// shape keeps what the JSON output of the last command looks like in the file shape: every value by its kind, and of
// every list its first item: shape.
func shape(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) > 0 {
		ts.Fatalf("usage: shape")
	}
	var answer any
	ts.Check(json.Unmarshal([]byte(ts.ReadFile("stdout")), &answer))
	text, err := json.MarshalIndent(kinds(answer), "", "  ")
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs("shape"), append(text, '\n'), 0o600))
}

// kinds gives a JSON value with its texts and numbers replaced by what they are.
func kinds(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for name := range v {
			v[name] = kinds(v[name])
		}
		return v
	case []any:
		if len(v) > 0 {
			v = []any{kinds(v[0])}
		}
		return v
	case string:
		if _, err := time.Parse(time.RFC3339, v); err == nil {
			return "time"
		}
		return "text"
	case float64:
		return "number"
	}
	return v
}

// eventually tries again until try succeeds or the time is over.
func eventually(ts *testscript.TestScript, limit time.Duration, what string, try func() error) {
	ticker := time.NewTicker(poll)
	defer ticker.Stop()
	for deadline := time.Now().Add(limit); ; <-ticker.C {
		err := try()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			ts.Fatalf("%s within %v: %v", what, limit, err)
		}
	}
}
