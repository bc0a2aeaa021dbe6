package cli

import (
	"time"

	"github.com/spf13/cobra"

	"chancery/internal/load"
)

// size computes; it asks no server.
func (t *terminal) size() *cobra.Command {
	var d load.Demand
	cmd := &cobra.Command{
		Use: "size", Short: "Compute what an installation needs: processor, memory, disk, connections", Args: cobra.NoArgs,
		Long: "Arithmetic on what was measured on one machine (docs/sizing.md). No server is asked.",
		RunE: func(*cobra.Command, []string) error {
			s, err := load.SizeOf(d)
			if err != nil {
				return usageError{err}
			}
			return t.show(s, func() { s.Write(t.out) })
		},
	}
	flags := cmd.Flags()
	flags.IntVar(&d.People, "people", 50_000, "people who answer for agents")
	flags.IntVar(&d.Agents, "agents", 500_000, "agents")
	flags.DurationVar(&d.Interval, "interval", 10*time.Minute, "from one certificate of an agent to the next")
	flags.DurationVar(&d.Lifetime, "lifetime", 20*time.Minute, "of each certificate, a day at most")
	return cmd
}
