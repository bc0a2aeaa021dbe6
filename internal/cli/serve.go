package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"chancery/internal/base/fault"
	"chancery/internal/server"
)

func (t *terminal) serve() *cobra.Command {
	return t.settings(&cobra.Command{
		Use: "serve", Short: "Run the server until it is interrupted", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := t.open(cmd.Context(), false)
			if err != nil {
				return err
			}
			if err := t.restoreRoot(cmd.Context(), s); err != nil {
				t.close(s)
				return err
			}
			return t.run(cmd.Context(), s)
		},
	})
}

func (t *terminal) initialize() *cobra.Command {
	return t.settings(&cobra.Command{
		Use: "init", Short: "Make a data directory with a root and issuing authorities", Args: cobra.NoArgs,
		Long:    "Makes the data directory with its database, a root and three issuing authorities: people, agents and machines. What stands\nin certificates (name.trust_domain, name.public_url) is taken now, from " + server.FileName + " in the directory if you put it there\nbefore, the environment, or --set, which is not kept. Run again, it makes what is missing, and a new setup code while\nthere is no administrator; the earlier code is void then.",
		Example: "  chancery init --data ca --set name.trust_domain=example.org --set name.public_url=http://ca.example.org",
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := t.open(cmd.Context(), true)
			if err != nil {
				return err
			}
			defer t.close(s)
			made, err := t.establish(cmd.Context(), s)
			if err != nil {
				return err
			}
			return t.show(made, func() {
				t.say("Root certificate: %s\nStart the server: chancery serve%s", made.Root, t.here())
				t.greet(made)
			})
		},
	})
}

// flags gives what --set says, by name.
func (t *terminal) flags() (map[string]string, error) {
	flags := map[string]string{}
	for _, s := range t.set {
		name, value, ok := strings.Cut(s, "=")
		if !ok {
			return nil, usageError{fmt.Errorf("--set %s: want name=value", s)}
		}
		flags[name] = value
	}
	return flags, nil
}

// open opens the data directory and takes its lock. With fresh it makes one where there is none.
func (t *terminal) open(ctx context.Context, fresh bool) (*server.Server, error) {
	c, _, err := t.effective()
	if err != nil {
		return nil, err
	}
	if fresh {
		if err := os.MkdirAll(t.data, 0o700); err != nil {
			return nil, fmt.Errorf("make the data directory: %w", err)
		}
	}
	if _, err := os.Stat(t.data); err != nil {
		return nil, fault.New(fault.NotFound, "data_missing", "there is no data directory %s", t.data).WithHint("`chancery init` makes one; `chancery quickstart` makes one and shows everything at work")
	}
	passphrase, err := t.passphrase(c, fresh)
	if err != nil {
		return nil, err
	}
	log, err := t.logger(c)
	if err != nil {
		return nil, err
	}
	useProcessors()
	return server.New(ctx, c, passphrase, log)
}

func (t *terminal) passphrase(c server.Config, fresh bool) ([]byte, error) {
	passphrase, err := c.FindPassphrase(fresh)
	if fault.CodeOf(err) != "passphrase_missing" {
		return passphrase, err
	}
	asked, unasked := t.secret("passphrase of the keyring", "", "")
	if unasked != nil {
		return nil, err
	}
	return []byte(asked), nil
}

func (t *terminal) logger(c server.Config) (*slog.Logger, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(c.Log.Level)); err != nil {
		return nil, fault.New(fault.Invalid, "config_invalid", "log.level is %q; it is debug, info, warn or error", c.Log.Level)
	}
	options := &slog.HandlerOptions{Level: level}
	if c.Log.Format == "json" {
		return slog.New(slog.NewJSONHandler(t.err, options)), nil
	}
	return slog.New(slog.NewTextHandler(t.err, options)), nil
}

// An installation is what `chancery init` made.
type installation struct {
	Root string `json:"root"`                 // file with the root certificate
	Code string `json:"setup_code,omitempty"` // of the first administrator; absent if there is one
}

// establish makes what every installation has, and what the first administrator needs.
func (t *terminal) establish(ctx context.Context, s *server.Server) (installation, error) {
	made := installation{Root: t.rootPath()}
	if err := s.Prepare(ctx); err != nil {
		return made, err
	}
	if err := t.publishRoot(ctx, s); err != nil {
		return made, err
	}
	var err error
	made.Code, err = s.Accounts.NewSetupCode(server.AsOperator(ctx), 24*time.Hour)
	if fault.CodeOf(err) == "setup_done" {
		err = nil
	}
	return made, err
}

// publishRoot writes the root certificate into the data directory, where clients on this machine look for it.
func (t *terminal) publishRoot(ctx context.Context, s *server.Server) error {
	root, err := s.Authority.Authority(ctx, server.Root)
	if err != nil {
		return err
	}
	if err := os.WriteFile(t.rootPath(), encodeCertificate(root.Certificate), 0o644); err != nil {
		return fmt.Errorf("write the root certificate: %w", err)
	}
	return nil
}

// restoreRoot publishes the root where it is missing, as after a restore. An installation without a root gets none; what
// it needs is said later.
func (t *terminal) restoreRoot(ctx context.Context, s *server.Server) error {
	if _, err := os.Stat(t.rootPath()); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := t.publishRoot(ctx, s); fault.CodeOf(err) != "authority_unknown" {
		return err
	}
	return nil
}

// greet says how the first administrator comes in, where there is none.
func (t *terminal) greet(made installation) {
	if made.Code == "" {
		return
	}
	t.say("One-time setup code for the first administrator: %s", made.Code)
	t.say("  chancery setup%s --name NAME   (while the server runs; asks for the code, which ends in a day)", t.here())
}

// here gives the flag that names the data directory, where a command to copy needs it.
func (t *terminal) here() string {
	if t.data == defaultData {
		return ""
	}
	return " --data " + t.data
}

func (t *terminal) rootPath() string { return filepath.Join(t.data, "root.pem") }

// run serves until the context ends.
func (t *terminal) run(ctx context.Context, s *server.Server) error {
	defer t.close(s)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	useMemory(ctx, s.Config.Limit.Process, s.Config.Limit.Garbage)
	return s.Run(ctx, func() { t.say("Serving %s. Ctrl-C stops.", whereabouts(s.Config.Listen)) })
}

// whereabouts lists the listeners that people and programs call.
func whereabouts(l server.Listen) string {
	var all []string
	for _, one := range []struct{ scheme, address, what string }{
		{"https", l.HTTPS, "API"}, {"https", l.MTLS, "API with client certificates"}, {"http", l.Loopback, "this machine only"}, {"http", l.Public, "OCSP and CRLs"},
	} {
		if one.address != "" {
			all = append(all, fmt.Sprintf("%s://%s (%s)", one.scheme, here(one.address), one.what))
		}
	}
	return strings.Join(append(all, "the admin socket"), ", ")
}

// close frees the data directory, whatever became of the command's own context. Two seconds are enough: nobody asks
// for anything any more.
func (t *terminal) close(s *server.Server) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	if err := s.Close(ctx); err != nil {
		fmt.Fprintf(t.err, "chancery: closing: %v\n", err)
	}
}
