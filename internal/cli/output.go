package cli

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"chancery/internal/base/conf"
)

// show answers with v in JSON, or with what text writes.
func (t *terminal) show(v any, text func()) error {
	if !t.json {
		text()
		return nil
	}
	encoder := json.NewEncoder(t.out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(v)
}

// say writes one line for people. In JSON mode it stays silent, so that the answer is all there is.
func (t *terminal) say(format string, args ...any) {
	if !t.json {
		fmt.Fprintf(t.out, format+"\n", args...)
	}
}

// table writes rows under a head, aligned.
func (t *terminal) table(head []string, rows [][]string) {
	w := tabwriter.NewWriter(t.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, strings.ToUpper(strings.Join(head, "\t")))
	for _, row := range rows {
		fmt.Fprintln(w, strings.Join(row, "\t"))
	}
	_ = w.Flush() // the terminal is gone, then; there is nobody to tell
}

// card writes what is known of one thing: names and values in turn, a line for each value that there is.
func (t *terminal) card(facts ...string) {
	w := tabwriter.NewWriter(t.out, 0, 0, 2, ' ', 0)
	for pair := range slices.Chunk(facts, 2) {
		if pair[1] != "" {
			fmt.Fprintf(w, "%s:\t%s\n", pair[0], pair[1])
		}
	}
	_ = w.Flush()
}

// stamp writes a time for people; the zero time as nothing.
func stamp(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return at.UTC().Format("2006-01-02 15:04:05 UTC")
}

// day writes the day of a time; the zero time as nothing.
func day(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return at.UTC().Format(time.DateOnly)
}

// here completes the address of a listener to one that this machine can call.
func here(address string) string {
	if strings.HasPrefix(address, ":") {
		return "localhost" + address
	}
	return address
}

// durationFlag adds a flag for a duration, which is written with days, too. Zero is no default worth showing.
func durationFlag(c *cobra.Command, d *conf.Duration, name, usage string) {
	c.Flags().TextVar(d, name, *d, usage+" (a `DURATION` such as 30d, 12h or 10m)")
	if *d == 0 {
		c.Flags().Lookup(name).DefValue = ""
	}
}
