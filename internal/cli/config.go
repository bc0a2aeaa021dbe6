package cli

import (
	"os"

	"github.com/spf13/cobra"

	"chancery/internal/base/conf"
	"chancery/internal/server"
)

func (t *terminal) config() *cobra.Command {
	c := group("config", "The configuration of the data directory")
	c.AddCommand(t.settings(t.configCheck()), t.settings(t.configPrint()))
	return c
}

func (t *terminal) configCheck() *cobra.Command {
	return &cobra.Command{
		Use: "check", Short: "Check the configuration, as the server reads it", Args: cobra.NoArgs,
		Long: "Reads " + server.FileName + " in the data directory, the environment and --set, and says all that is wrong with them.",
		RunE: func(*cobra.Command, []string) error {
			_, settings, err := t.effective()
			if err != nil {
				return err
			}
			return t.show(map[string]any{"ok": true, "settings": len(settings)}, func() { t.say("The configuration is good.") })
		},
	}
}

func (t *terminal) configPrint() *cobra.Command {
	var explain bool
	c := &cobra.Command{
		Use: "print", Short: "Print every setting with its value and where that comes from", Args: cobra.NoArgs,
		Long: "Later origins win: default, the device's preset, " + server.FileName + " in the data directory, environment (" + conf.EnvironmentName("listen.https") + "), --set.",
		RunE: func(*cobra.Command, []string) error {
			_, settings, err := t.effective()
			if err != nil {
				return err
			}
			return t.show(settings, func() {
				var doc []string
				if explain {
					doc = []string{"what it is for"}
				}
				var rows [][]string
				for _, s := range settings {
					row := []string{s.Name, s.Value, s.Origin}
					if explain {
						row = append(row, s.Doc)
					}
					rows = append(rows, row)
				}
				t.table(append([]string{"setting", "value", "origin"}, doc...), rows)
			})
		},
	}
	c.Flags().BoolVar(&explain, "explain", false, "say what each setting is for")
	return c
}

// effective gives the configuration of the data directory with what the command line sets, and every setting's origin.
func (t *terminal) effective() (server.Config, []conf.Setting, error) {
	flags, err := t.flags()
	if err != nil {
		return server.Config{}, nil, err
	}
	return server.Configure(t.data, os.Environ(), flags)
}
