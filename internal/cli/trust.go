package cli

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"chancery/internal/base/fault"
)

func (t *terminal) trust() *cobra.Command {
	c := group("trust", "Trust of this machine in the root")
	c.AddCommand(t.trustInstall())
	return c
}

func (t *terminal) trustInstall() *cobra.Command {
	var printOnly bool
	c := &cobra.Command{
		Use: "install", Short: "Make this machine trust the root, so that browsers and tools accept our certificates", Args: cobra.NoArgs,
		Long: "Puts the root certificate (--root, or root.pem in the data directory) among those that the system trusts. On Linux this\nneeds root; elsewhere, and with --print, it says what to do.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if _, err := readCertificates(t.trusted()); err != nil {
				return fmt.Errorf("read the root certificate: %w", err)
			}
			way, found := trustWay()
			steps := way.steps(t.trusted())
			if printOnly || !found {
				return t.show(steps, func() {
					for _, step := range steps {
						t.say("%s", commandLine(step))
					}
				})
			}
			for _, step := range steps {
				if out, err := exec.CommandContext(cmd.Context(), step[0], step[1:]...).CombinedOutput(); err != nil {
					return errTrust(step, out, err)
				}
			}
			return t.show(map[string]string{"trusted": t.trusted()}, func() { t.say("This machine trusts %s.", t.trusted()) })
		},
	}
	c.Flags().BoolVar(&printOnly, "print", false, "only say what to do")
	return c
}

func errTrust(step []string, out []byte, err error) error {
	refused := fault.New(fault.Denied, "trust_not_installed", "`%s` did not work: %s", commandLine(step), firstLine(out, err))
	if os.Getuid() != 0 {
		return refused.WithHint("it needs root: try again with sudo")
	}
	return refused.WithHint("`chancery trust install --print` says the steps, to do them by hand")
}

func firstLine(out []byte, err error) string {
	line, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	return cmp.Or(line, err.Error())
}

func commandLine(step []string) string { return strings.Join(step, " ") }

// A way is how one kind of system takes a trusted root: a command, or a file in a place and a command.
type way struct {
	place   string   // where the certificate goes; empty where the command takes the file
	command []string // the file is put at its end where there is no place
}

func (w way) steps(root string) [][]string {
	if w.place == "" {
		return [][]string{append(w.command, root)}
	}
	return [][]string{{"cp", root, w.place}, w.command}
}

// trustWay gives the way of this system, and whether it can be gone from here.
func trustWay() (way, bool) {
	switch runtime.GOOS {
	case "darwin":
		return way{command: []string{"sudo", "security", "add-trusted-cert", "-d", "-r", "trustRoot", "-k", "/Library/Keychains/System.keychain"}}, false
	case "windows":
		return way{command: []string{"certutil", "-addstore", "-f", "ROOT"}}, false
	}
	if _, err := exec.LookPath("update-ca-certificates"); err == nil {
		return way{place: "/usr/local/share/ca-certificates/chancery-root.crt", command: []string{"update-ca-certificates"}}, true
	}
	_, err := exec.LookPath("trust")
	return way{command: []string{"trust", "anchor", "--store"}}, err == nil
}
