// Package cli is the command line: a file for each group of commands, all of them thin.
//
// Commands that work on the data directory itself (quickstart, init, serve, restore, rescue, audit verify) open it
// through package server and take its lock; every other command is a client of a running server, through the admin
// socket of the data directory or over HTTPS with a token. Every command can answer in JSON. An error is shown once:
// what happened, a hint where there is one, and an exit code from one table.
package cli

import (
	"context"
	"io"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"github.com/spf13/cobra"

	"chancery/internal/server"
)

// defaultData is the data directory where --data names none.
const defaultData = "chancery-data"

// A terminal is where a command speaks, and what it was told before it began.
type terminal struct {
	in       io.Reader
	out, err io.Writer

	data   string // data directory
	server string // address of a server; empty for the admin socket
	token  string // file with the API token
	root   string // file with trusted roots
	cert   string // files with a client certificate and its key
	key    string
	json   bool
	set    []string // settings, name=value

	started bool           // a command has begun its work
	called  *cobra.Command // that was called, or the group in which it was looked for
}

// Main runs one command and gives its exit code. SIGINT and SIGTERM end it in order.
func Main(ctx context.Context, args []string, in io.Reader, out, err io.Writer) int {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	t := &terminal{in: in, out: out, err: err}
	root := t.command()
	root.SetArgs(args)
	root.SetIn(in)
	root.SetOut(out)
	root.SetErr(err)
	t.watchStart(root)
	called, runErr := root.ExecuteContextC(ctx)
	t.called = called
	if runErr != nil && !t.started {
		runErr = usageError{runErr}
		t.json = t.json || slices.Contains(args, "--json") // flags may not have been read
	}
	return t.report(runErr)
}

// watchStart notes when a command begins. What fails before is the command line's fault: an unknown command or flag, a
// missing argument.
func (t *terminal) watchStart(c *cobra.Command) {
	for _, sub := range c.Commands() {
		t.watchStart(sub)
	}
	if run := c.RunE; run != nil {
		c.RunE = func(c *cobra.Command, args []string) error {
			t.started = true
			return run(c, args)
		}
	}
}

func (t *terminal) command() *cobra.Command {
	root := &cobra.Command{
		Use:           "chancery",
		Short:         "Who is who, and who may act for whom",
		Long:          "Chancery is a certificate authority for people, machines and AI agents: short-lived agent certificates carry\na person's own signed delegation, and anybody can check them offline.",
		Version:       server.Version(),
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	flags := root.PersistentFlags()
	flags.StringVar(&t.data, "data", defaultData, "data directory")
	flags.StringVar(&t.server, "server", os.Getenv("CHANCERY_SERVER"), "address of the server, https://…; default: the admin socket in the data directory")
	flags.StringVar(&t.token, "token-file", "", "file with an API token; default: the environment's CHANCERY_TOKEN")
	flags.StringVar(&t.root, "root", "", "file with the root certificate to trust; default: root.pem in the data directory, if it is there")
	flags.StringVar(&t.cert, "cert", "", "file with a client certificate in PEM")
	flags.StringVar(&t.key, "key", "", "file with the client certificate's private key in PEM")
	flags.BoolVar(&t.json, "json", false, "answer in JSON")
	for _, g := range []struct {
		title    string
		commands []*cobra.Command
	}{
		{"Begin:", []*cobra.Command{t.quickstart(), t.initialize(), t.serve(), t.setup()}},
		{"Certificates:", []*cobra.Command{t.issue(), t.renew(), t.revoke(), t.list(), t.showCertificate(), t.crl(), t.authority(), t.profile()}},
		{"People and agents:", []*cobra.Command{t.user(), t.tokens(), t.agent(), t.delegation(), t.verify()}},
		{"Care:", []*cobra.Command{t.config(), t.doctor(), t.explainCode(), t.audit(), t.backup(), t.restore(), t.rescue(), t.trust(), t.bench(), t.size()}},
	} {
		root.AddGroup(&cobra.Group{ID: g.title, Title: g.title})
		for _, c := range g.commands {
			c.GroupID = g.title
			root.AddCommand(c)
		}
	}
	return root
}

// settings adds the flag with which any setting can be given on the command line.
func (t *terminal) settings(c *cobra.Command) *cobra.Command {
	c.Flags().StringArrayVar(&t.set, "set", nil, "a setting, such as listen.https=:9443; may be repeated")
	return c
}
