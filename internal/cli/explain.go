package cli

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"chancery/internal/base/fault"
)

// explainText explains every code of a refusal: a paragraph each, with the code and its kinds on the first line, what it
// means on the second and what to do on the third.
//
//go:embed explain.txt
var explainText string

// An explanation is a paragraph of it.
type explanation struct {
	Code  string   `json:"code"`
	Kinds []string `json:"kinds"`
	Means string   `json:"means"`
	Do    string   `json:"do"`
}

func explanations() (all []explanation) {
	for paragraph := range strings.SplitSeq(strings.TrimSpace(explainText), "\n\n") {
		head, rest, _ := strings.Cut(paragraph, "\n")
		means, do, _ := strings.Cut(rest, "\n")
		code, kinds, _ := strings.Cut(head, " · ")
		all = append(all, explanation{code, strings.Split(kinds, ", "), means, do})
	}
	return all
}

func (t *terminal) explainCode() *cobra.Command {
	return &cobra.Command{
		Use: "explain [CODE]", Short: "Explain a refusal by its code; without one, list all", Args: cobra.MaximumNArgs(1),
		Long: "Explains the code of a refusal: what it means and what to do about it. No server is asked.",
		ValidArgsFunction: func(*cobra.Command, []string, string) (codes []string, _ cobra.ShellCompDirective) {
			for _, e := range explanations() {
				codes = append(codes, e.Code)
			}
			return codes, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(_ *cobra.Command, args []string) error {
			all := explanations()
			if len(args) == 0 {
				return t.show(all, func() { t.listExplanations(all) })
			}
			i := slices.IndexFunc(all, func(e explanation) bool { return e.Code == args[0] })
			if i < 0 {
				return fault.New(fault.NotFound, "code_unknown", "there is no refusal with the code %.80q", args[0]).
					WithHint("`chancery explain` lists all codes")
			}
			return t.show(all[i], func() {
				fmt.Fprintf(t.out, "%s (%s)\n\n%s\n\nWhat to do: %s\n", all[i].Code, strings.Join(all[i].Kinds, ", "), all[i].Means, all[i].Do)
			})
		},
	}
}

func (t *terminal) listExplanations(all []explanation) {
	rows := make([][]string, len(all))
	for i, e := range all {
		rows[i] = []string{e.Code, strings.Join(e.Kinds, ", "), e.Means}
	}
	t.table([]string{"code", "kind", "means"}, rows)
}
