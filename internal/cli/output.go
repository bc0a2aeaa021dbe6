package cli

import (
	"encoding/json"
	"fmt"
	"strings"
	"text/tabwriter"
)

// show answers with v in JSON, or with what text writes.
func (t *terminal) show(v any, text func()) error {
	if !t.json {
		text()
		return nil
	}
	encoder := json.NewEncoder(t.out)
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
