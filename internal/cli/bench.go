package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"time"

	"github.com/spf13/cobra"

	"chancery/internal/load"
	"chancery/internal/load/bare"
	"chancery/internal/load/hinder"
)

// bench measures and tries. Without --server and --data it starts servers of its own, on fresh data that it removes.
func (t *terminal) bench() *cobra.Command {
	c := &cobra.Command{
		Use: "bench", Short: "Measure what this machine and the authority can do, and that nothing is lost",
		Long: "Measures from a process of its own, over HTTPS on the loopback interface, and checks every answer. A figure is worth\nsomething only beside another one of the same run; `bench gate` puts them side by side.",
	}
	c.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error {
		debug.SetGCPercent(collectAt) // clients that work less leave more to the servers
		return positive(cmd)
	}
	c.AddCommand(t.benchLimits(), t.benchIssue(), t.benchCrash(), t.benchSuite(), t.benchAB(), t.benchCompare(), t.benchGate(), t.benchPeer(), t.benchBare(), benchLaunch())
	return c
}

// positive refuses a zero that somebody has written where it would be taken for the default.
func positive(cmd *cobra.Command) error {
	for _, name := range []string{"agents", "people", "tokens", "connections", "rounds", "pairs", "interval", "duration", "longest", "sample", "timeout"} {
		if f := cmd.Flags().Lookup(name); f != nil && f.Changed && (f.Value.String() == "0" || f.Value.String() == "0s") {
			return usageError{fmt.Errorf("--%s %s: want more than nothing, or leave it out for the default", name, f.Value)}
		}
	}
	return nil
}

// A finding is what a bench hands over: for people, for programs, and whether something is wrong.
type finding interface {
	Write(io.Writer)
	Failed() error
}

// found shows a report, whatever became of the run, and gives what is wrong with it as the error.
func (t *terminal) found(ctx context.Context, f finding, err error) error {
	if err != nil {
		return err
	}
	if err := t.show(f, func() { f.Write(t.out) }); err != nil {
		return err
	}
	if err := f.Failed(); err != nil {
		return err
	}
	return ctx.Err()
}

// measured runs a bench and shows what it found. What its configuration refuses is wrong on the command line.
func measured[C interface{ Check() error }, F finding](t *terminal, cmd *cobra.Command, c C, run func(context.Context, C) (F, error)) error {
	if err := c.Check(); err != nil {
		return usageError{err}
	}
	r, err := run(cmd.Context(), c)
	return t.found(cmd.Context(), r, err)
}

// loop adds the flags of a closed loop.
func loop(cmd *cobra.Command, l *load.Loop, duration, warmup time.Duration) {
	flags := cmd.Flags()
	flags.DurationVar(&l.Duration, "duration", duration, "counted time of each phase with clients")
	flags.DurationVar(&l.Warmup, "warmup", warmup, "time before it that is not counted")
	flags.IntVar(&l.Clients, "connections", 64, "clients, one kept-alive connection each")
}

// progress says on the error stream what a bench is doing.
func (t *terminal) progress(format string, args ...any) {
	fmt.Fprintf(t.err, "· "+format+"\n", args...)
}

func (t *terminal) benchLimits() *cobra.Command {
	c := load.LimitConfig{Log: t.progress}
	cmd := &cobra.Command{
		Use: "limits", Short: "Measure what the machine allows, from one signature to the bare handler", Args: cobra.NoArgs,
		Long: "The last rows are the bare handler: a server that does only the work of an ordinary certificate, with a synced log in\nplace of a database. No server on this machine can be faster.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return measured(t, cmd, c, load.Limits)
		},
	}
	flags := cmd.Flags()
	flags.DurationVar(&c.Sample, "sample", 100*time.Millisecond, "length of each of the five samples of a row")
	loop(cmd, &c.Loop, 5*time.Second, 2*time.Second)
	flags.StringVar(&c.Dir, "dir", "", "where the disk is measured; default: the directory for temporary files")
	return cmd
}

func (t *terminal) benchCrash() *cobra.Command {
	c := load.CrashConfig{Log: t.progress}
	cmd := &cobra.Command{
		Use: "crash", Short: "Kill a server under load again and again, and look for what it lost", Args: cobra.NoArgs,
		Long: "Starts a server on fresh data, loads it with agents, kills it with -9 at a random moment, starts it again, and verifies:\nevery answered certificate is in the store and in OCSP, every revocation stands, every used nonce stays used, every\ndeleted token stays deleted.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			c.Settings = t.set
			return measured(t, cmd, c, load.Crash)
		},
	}
	flags := t.settings(cmd).Flags()
	flags.IntVar(&c.Rounds, "rounds", 10, "how often the server is killed")
	flags.DurationVar(&c.Longest, "longest", 2*time.Second, "longest time under load before each kill, which comes at a random moment of it")
	flags.BoolVar(&c.Gently, "gently", false, "end it in order instead: it has ten seconds, and nothing may be lost either")
	flags.StringVar(&c.StoreURL, "store", "", "database server, in the form of store.url: a database is made there and dropped; default: SQLite")
	flags.IntVar(&c.Clients, "connections", 64, "clients, one kept-alive connection each")
	population(cmd, &c.Population)
	flags.StringVar(&c.Dir, "dir", "", "where its data lie; default: the directory for temporary files")
	return cmd
}

func (t *terminal) benchGate() *cobra.Command {
	c := load.GateConfig{Log: t.progress}
	cmd := &cobra.Command{
		Use: "gate", Short: "Hold issuing against the bare handler, in one run", Args: cobra.NoArgs,
		Long: "Measures in the order bare handler, server, server, bare handler, so that a drifting machine shows. Ordinary certificates\nare held against the bare handler with bearer tokens, agent certificates against the one with one-time tokens.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return measured(t, cmd, c, load.Gate)
		},
	}
	flags := cmd.Flags()
	loop(cmd, &c.Loop, 10*time.Second, 3*time.Second)
	flags.StringVar(&c.Dir, "dir", "", "where data lie; default: the directory for temporary files")
	return cmd
}

func (t *terminal) benchPeer() *cobra.Command {
	c := load.PeerConfig{Log: t.progress}
	cmd := &cobra.Command{
		Use: "peer", Short: "Hold issuing ordinary certificates against a step-ca that runs on this machine", Args: cobra.NoArgs,
		Long: "Measures both in turn. docs/performance.md says how the step-ca is set up.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return measured(t, cmd, c, load.Peer)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&c.Address, "address", "localhost:9443", "where the step-ca listens")
	flags.StringVar(&c.Root, "peer-root", "", "file with its root certificate")
	flags.StringVar(&c.Provisioner, "provisioner", "", "name of its JWK provisioner")
	flags.StringVar(&c.Key, "provisioner-key", "", "file with the provisioner's private key as a decrypted JWK")
	flags.BoolVar(&c.Renew, "renew", false, "measure renewals over mTLS instead of first certificates")
	flags.IntVar(&c.Pairs, "pairs", 5, "how often both are measured")
	loop(cmd, &c.Loop, 10*time.Second, 3*time.Second)
	flags.StringVar(&c.Dir, "dir", "", "where our own data lie; default: the directory for temporary files")
	return cmd
}

// benchBare is the other end of `bench limits`; nobody types it.
func (t *terminal) benchBare() *cobra.Command {
	return &cobra.Command{
		Use: "bare DIR", Hidden: true, Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return bare.Serve(cmd.Context(), args[0], os.Stdin, os.Stdout)
		},
	}
}

// benchLaunch starts a program in bad surroundings and becomes it; nobody types it.
func benchLaunch() *cobra.Command {
	return &cobra.Command{
		Use: "launch", Hidden: true, DisableFlagParsing: true, // the options are between hinder and itself
		RunE: func(_ *cobra.Command, args []string) error { return hinder.Launch(args) },
	}
}
