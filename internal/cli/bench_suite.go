package cli

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"chancery/internal/load"
)

func (t *terminal) benchSuite() *cobra.Command {
	c := load.SuiteConfig{Log: t.progress}
	cmd := &cobra.Command{
		Use: "suite", Short: "Run all presets in turn, on databases that are made and dropped, and write a page about each", Args: cobra.NoArgs,
		Long: "Each preset runs on fresh data, on every database that is named with --store, and says what it is for, what is expected\nand what it has to reach. One that fails or takes too long is marked, and the rest run. The pages, and everything as\nJSON, go into a folder with the date.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("only") && len(c.Only) == 0 {
				return usageError{errors.New("--only names no preset; without it all of them run")}
			}
			c.Settings = t.set
			c.Progress = t.shownLive(load.IssueConfig{Log: t.progress}).Progress
			return measured(t, cmd, c, load.Suite)
		},
	}
	flags := t.settings(cmd).Flags()
	flags.StringSliceVar(&c.Only, "only", nil, "presets, such as t3,steady; default: all")
	flags.StringSliceVar(&c.Stores, "store", nil, "database servers in the form of store.url, or sqlite:; more than one are compared; default: SQLite")
	flags.IntVar(&c.With.Agents, "agents", 0, "agents in place of those of each preset; its people and tokens keep their proportion, one at least")
	flags.DurationVar(&c.With.Interval, "interval", 0, "interval in place of that of each preset")
	flags.DurationVar(&c.With.Duration, "duration", 0, "counted time of the longest phase of each preset; the others keep their proportion, but no phase gets shorter than 5s unless it was")
	flags.IntVar(&c.With.Connections, "connections", 0, "connections of the phase of each preset that has the most; the others keep their proportion, but none gets fewer than 64 unless it had")
	flags.DurationVar(&c.Timeout, "timeout", 30*time.Minute, "for one preset on one database")
	flags.StringVar(&c.Out, "out", ".", "directory in which the folder is made")
	flags.StringVar(&c.Dir, "dir", "", "where the servers keep their data; default: the directory for temporary files")
	return cmd
}

func (t *terminal) benchAB() *cobra.Command {
	c := load.ABConfig{Log: t.progress}
	cmd := &cobra.Command{
		Use: "ab OLD NEW SCENARIO", Short: "Hold two programs against each other, in the order A, B, B, A", Args: cobra.ExactArgs(3),
		Long: "OLD and NEW are chancery programs; what they were built from is read from them. Each phase runs on fresh data. Where the\nold program's own phases lie 10 % or more apart the comparison is excluded; an effect of less than 5 % counts as none.",
		RunE: func(cmd *cobra.Command, args []string) error {
			c.Old, c.New, c.Scenario, c.Settings = args[0], args[1], args[2], t.set
			return measured(t, cmd, c, load.AB)
		},
	}
	flags := t.settings(cmd).Flags()
	loop(cmd, &c.Loop, 10*time.Second, 3*time.Second)
	flags.StringVar(&c.StoreURL, "store", "", "database server, in the form of store.url: databases are made there and dropped; default: SQLite")
	flags.StringVar(&c.Dir, "dir", "", "where data lie; default: the directory for temporary files")
	return cmd
}

func (t *terminal) benchCompare() *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use: "compare A.json B.json", Short: "Lay two reports side by side, as a page", Args: cobra.ExactArgs(2),
		RunE: func(_ *cobra.Command, args []string) error {
			if err := apart(file, args); err != nil {
				return usageError{err}
			}
			a, err := load.ReadReport(args[0])
			if err != nil {
				return err
			}
			b, err := load.ReadReport(args[1])
			if err != nil {
				return err
			}
			if err := load.SaveComparison(file, a, b); err != nil {
				return err
			}
			return t.show(map[string]string{"page": file}, func() { fmt.Fprintln(t.out, file) })
		},
	}
	cmd.Flags().StringVar(&file, "report", "compare.html", "file for the page")
	return cmd
}

// apart refuses to write a page over one of the reports that it is made of.
func apart(page string, reports []string) error {
	there, err := os.Stat(page)
	if err != nil {
		return nil // it is new, or nothing can be written there, which writing tells
	}
	for _, name := range reports {
		if info, err := os.Stat(name); err == nil && os.SameFile(there, info) {
			return fmt.Errorf("--report %s: the page would be written over a report that it is made of", page)
		}
	}
	return nil
}
