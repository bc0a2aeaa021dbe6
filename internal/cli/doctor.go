package cli

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"chancery/api"
	"chancery/client"
	"chancery/internal/base/conf"
	"chancery/internal/edge/adminapi"
	"chancery/internal/load/observe"
	"chancery/internal/server"
)

func (t *terminal) doctor() *cobra.Command {
	return t.settings(&cobra.Command{
		Use: "doctor", Short: "Look for what is wrong, and say what to do", Args: cobra.NoArgs,
		Long: "Looks at the data directory, the configuration, the database's durability, the disk, the clock, the listeners and the\ncertificates, with the server running or stopped. It changes nothing; to time the disk it writes a small file into the\ndata directory and removes it. With a problem it ends with a failure.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			d := t.examine(cmd.Context())
			if err := t.show(d.diagnoses, func() { t.showDiagnoses(d.diagnoses) }); err != nil {
				return err
			}
			if n := d.count(problem); n > 0 {
				return fmt.Errorf("problems found: %d", n)
			}
			return nil
		},
	})
}

// A diagnosis is one line of the doctor's report.
type diagnosis struct {
	What  string `json:"what"`
	State string `json:"state"` // ok, warning or problem
	Text  string `json:"text"`
	Do    string `json:"do,omitempty"`
}

const (
	ok      = "ok"
	warning = "warning"
	problem = "problem"
)

func (t *terminal) showDiagnoses(diagnoses []diagnosis) {
	for _, f := range diagnoses {
		fmt.Fprintf(t.out, "%-8s %-14s %s\n", f.State, f.What, f.Text)
		if f.Do != "" {
			fmt.Fprintf(t.out, "%-8s %-14s -> %s\n", "", "", f.Do)
		}
	}
}

// An examination looks at one installation.
type examination struct {
	*terminal
	config    server.Config
	running   *client.Client // nil if no server runs here
	diagnoses []diagnosis
}

func (t *terminal) examine(ctx context.Context) *examination {
	d := &examination{terminal: t}
	if !d.configuration() || !d.directory() {
		return d
	}
	d.passphrase()
	d.clock()
	d.space()
	d.sync(ctx)
	d.power(observe.Governor())
	d.process(ctx)
	d.durability(ctx)
	d.root()
	d.listeners(ctx)
	return d
}

func (d *examination) count(state string) (n int) {
	for _, f := range d.diagnoses {
		if f.State == state {
			n++
		}
	}
	return n
}

func (d *examination) say(state, what, do, format string, args ...any) {
	if state == ok {
		do = ""
	}
	d.diagnoses = append(d.diagnoses, diagnosis{What: what, State: state, Text: fmt.Sprintf(format, args...), Do: do})
}

func (d *examination) configuration() bool {
	c, settings, err := d.effective()
	if err != nil {
		d.say(problem, "configuration", "mend "+filepath.Join(d.data, server.FileName)+", or the environment", "%v", err)
		return false
	}
	d.config = c
	d.say(ok, "configuration", "", "%d settings, all understood", len(settings))
	return true
}

func (d *examination) directory() bool {
	info, err := os.Stat(d.data)
	switch {
	case err != nil:
		d.say(problem, "data", "`chancery init` makes one; --data names another", "there is no data directory %s", d.data)
		return false
	case info.Mode().Perm()&0o077 != 0:
		d.say(problem, "data", "chmod 700 "+d.data, "%s can be read by others (mode %04o)", d.data, info.Mode().Perm())
	default:
		d.say(ok, "data", "", "%s is for its owner alone", d.data)
	}
	return true
}

func (d *examination) passphrase() {
	path := d.config.PassphrasePath()
	_, err := os.Stat(path)
	switch {
	case !d.config.Keys.Passphrase.IsZero():
		d.say(ok, "passphrase", "", "it comes from the environment")
	case errors.Is(err, fs.ErrNotExist):
		d.say(warning, "passphrase", "set keys.passphrase_file or "+conf.EnvironmentName("keys.passphrase"), "none is configured: the server asks for it on a terminal, and starts nowhere else")
	case filepath.Dir(path) == filepath.Clean(d.data):
		d.say(warning, "passphrase", "move it away and name it in keys.passphrase_file", "%s lies beside the database: who copies the directory has the keys", path)
	default:
		d.say(ok, "passphrase", "", "it is in %s", path)
	}
}

// clock compares the clock with what was written here before: it can only have gone forward since.
func (d *examination) clock() {
	entries, err := os.ReadDir(d.data)
	if err != nil {
		d.say(problem, "clock", "look at its permissions", "%s cannot be read: %v", d.data, err)
		return
	}
	for _, e := range entries {
		if info, err := e.Info(); err == nil && time.Until(info.ModTime()) > time.Minute {
			d.say(problem, "clock", "set the clock, and keep it set (NTP)", "%s was written at %s, and it is only %s now", e.Name(), stamp(info.ModTime()), stamp(time.Now()))
			return
		}
	}
	d.say(ok, "clock", "", "it is %s, after all that was written here", stamp(time.Now()))
}

const (
	spaceLow  = 1 << 30
	spaceLeft = 100 << 20
)

func (d *examination) space() {
	free, known := freeBytes(d.data)
	switch size := fmt.Sprintf("%.1f GiB", float64(free)/(1<<30)); {
	case !known:
		d.say(warning, "disk", "look at it yourself", "this system does not say how much space is left")
	case free < spaceLeft:
		d.say(problem, "disk", "make room, or nothing can be issued soon", "%s are left", size)
	case free < spaceLow:
		d.say(warning, "disk", "make room", "%s are left", size)
	default:
		d.say(ok, "disk", "", "%s are left", size)
	}
}

// process finds out whether a server runs on the data directory.
func (d *examination) process(ctx context.Context) {
	c, err := d.connectSocket()
	if err == nil {
		_, err = c.Fetch(ctx, "/readyz")
	}
	var answered *client.Error
	switch {
	case err == nil:
		d.running = c
		d.say(ok, "server", "", "it runs and is ready")
	case errors.As(err, &answered):
		d.running = c
		d.say(problem, "server", "look at its log", "it runs, but: %v", err)
	default:
		d.say(ok, "server", "", "none runs here now")
	}
}

func (d *examination) durability(ctx context.Context) {
	health, err := d.health(ctx)
	if err != nil {
		c := explain(err)
		d.say(problem, "database", c.Hint, "%s", c.Text)
		return
	}
	d.say(ok, "database", "", "it answers; %d durability settings were checked", len(health.Settings))
	for _, note := range health.Notes {
		d.say(warning, "database", "look at the settings of the database, and at the log", "%s", note)
	}
}

// health asks the server, or opens the data directory where none runs.
func (d *examination) health(ctx context.Context) (health api.Health, err error) {
	if d.running != nil {
		return health, d.running.Call(ctx, "GET", "/api/v1/health", nil, &health)
	}
	err = d.offline(ctx, func(ctx context.Context, s *server.Server) error {
		health = adminapi.Health(ctx, s.Store, server.Version())
		return nil
	})
	return health, err
}

func (d *examination) listeners(ctx context.Context) {
	l := d.config.Listen
	for _, one := range []struct {
		name, address string
		tls           bool
	}{{"https", l.HTTPS, true}, {"mtls", l.MTLS, true}, {"loopback", l.Loopback, false}, {"public", l.Public, false}, {"private", l.Private, false}} {
		switch {
		case one.address == "":
		case d.running == nil:
			d.free(ctx, one.name, one.address)
		case one.tls:
			d.certificate(ctx, one.name, one.address)
		}
	}
}

// free looks whether a listener would find its address free.
func (d *examination) free(ctx context.Context, name, address string) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		d.say(problem, name, "end what uses it, or set listen."+name, "%s cannot be listened on: %v", address, err)
		return
	}
	_ = l.Close()
	d.say(ok, name, "", "%s is free", address)
}

// certificate looks at the certificate that a running listener shows, as a client would.
func (d *examination) certificate(ctx context.Context, name, address string) {
	roots, err := d.roots()
	if err != nil {
		d.say(problem, name, "look at the file", "%v", err)
		return
	}
	address = here(address)
	dialer := tls.Dialer{NetDialer: &net.Dialer{Timeout: 5 * time.Second}, Config: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}
	conn, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		d.say(problem, name, "look at the server's log, and at name.hosts", "%s: %v", address, err)
		return
	}
	defer func() { _ = conn.Close() }()
	leaf := conn.(*tls.Conn).ConnectionState().PeerCertificates[0]
	if left := time.Until(leaf.NotAfter); left < 24*time.Hour {
		d.say(warning, name, "look at the server's log: it should have renewed it", "%s has a certificate that ends at %s", address, stamp(leaf.NotAfter))
		return
	}
	d.say(ok, name, "", "%s answers with a good certificate, until %s", address, day(leaf.NotAfter))
}

const (
	rootSoon = 365 * 24 * time.Hour
	rootNow  = 60 * 24 * time.Hour
)

func (d *examination) root() {
	certificates, err := readCertificates(d.trusted())
	if err != nil {
		d.say(warning, "root", "`chancery authority show root --out "+d.trusted()+"` writes it again", "%s", explain(err).Text)
		return
	}
	const do = "make a new root and move to it while the old one is still good"
	switch end := certificates[0].NotAfter; {
	case time.Until(end) < rootNow:
		d.say(problem, "root", do, "the root ends at %s, and everything with it", day(end))
	case time.Until(end) < rootSoon:
		d.say(warning, "root", do, "the root ends at %s, and everything with it", day(end))
	default:
		d.say(ok, "root", "", "it is valid until %s", day(end))
	}
}
