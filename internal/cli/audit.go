package cli

import (
	"context"
	"encoding/hex"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"chancery/api"
	"chancery/client"
	"chancery/internal/base/fault"
	"chancery/internal/core/store"
	"chancery/internal/server"
)

func (t *terminal) audit() *cobra.Command {
	c := group("audit", "The audit: who changed what, and when")
	c.AddCommand(t.auditList(), t.settings(t.auditVerify()))
	return c
}

func (t *terminal) auditList() *cobra.Command {
	var target, actor string
	var l listing
	c := &cobra.Command{
		Use: "list", Short: "Read the audit, the oldest line first", Args: cobra.NoArgs,
		RunE: t.remote(func(ctx context.Context, server *client.Client, _ []string) error {
			query := url.Values{}
			if target != "" {
				query.Set("target", target)
			}
			if actor != "" {
				query.Set("actor", actor)
			}
			page, err := collect[api.AuditLine](ctx, server, "/api/v1/audit", query, l)
			if err != nil {
				return err
			}
			return browse(t, page, []string{"seq", "at", "actor", "action", "target", "detail"}, func(a api.AuditLine) []string {
				return []string{strconv.FormatInt(a.Seq, 10), stamp(a.At), a.Actor, a.Action, a.Target, a.Detail}
			})
		}),
	}
	c.Flags().StringVar(&target, "target", "", "about this identifier")
	c.Flags().StringVar(&actor, "actor", "", "by this account")
	l.flags(c)
	return c
}

func (t *terminal) auditVerify() *cobra.Command {
	var heads []string
	c := &cobra.Command{
		Use: "verify", Short: "Walk the chain of seals over the audit and all certificates", Args: cobra.NoArgs,
		Long: "Works on the data directory, with the server stopped. A changed, removed or slipped-in line shows. The head of the chain is\nwritten to the log, too, with each signature: give such heads with --head, and a tail that was cut off shows as well.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			known, err := parseHeads(heads)
			if err != nil {
				return err
			}
			return t.offline(cmd.Context(), func(ctx context.Context, s *server.Server) error {
				found, err := s.VerifyAudit(ctx, known)
				if err != nil {
					return err
				}
				return t.judge(found)
			})
		},
	}
	c.Flags().StringArrayVar(&heads, "head", nil, "a head from the log, as NUMBER:HASH; may be repeated")
	return c
}

func parseHeads(texts []string) (heads []store.Head, err error) {
	for _, text := range texts {
		number, hash, _ := strings.Cut(text, ":")
		h := store.Head{}
		if h.Number, err = strconv.ParseInt(number, 10, 64); err == nil {
			h.Hash, err = hex.DecodeString(hash)
		}
		if err != nil {
			return nil, usageError{fmt.Errorf("--head %s: want NUMBER:HASH, as in the log", text)}
		}
		heads = append(heads, h)
	}
	return heads, nil
}

// An auditReport is the answer of `chancery audit verify --json`.
type auditReport struct {
	Whole    bool             `json:"whole"`
	Seals    int64            `json:"seals"`
	Rows     int64            `json:"rows"`
	Retired  int64            `json:"retired"`
	Unsealed map[string]int64 `json:"unsealed"`
	Signed   int64            `json:"signed"`
	SignedAt time.Time        `json:"signed_at,omitzero"`
	Head     string           `json:"head"`
	Faults   []string         `json:"faults"`
}

// judge shows what a walk found. The error says that something was wrong.
func (t *terminal) judge(v store.Verification) error {
	report := auditReport{
		Whole: len(v.Faults) == 0, Seals: v.Seals, Rows: v.Rows, Retired: v.Retired, Unsealed: v.Unsealed, Signed: v.Signed,
		SignedAt: v.SignedAt.UTC(), Head: hex.EncodeToString(v.Head), Faults: append([]string{}, v.Faults...),
	}
	err := t.show(report, func() {
		t.card("Seals", fmt.Sprint(v.Seals), "Sealed rows", fmt.Sprint(v.Rows), "Gone by rule", fmt.Sprint(v.Retired),
			"Not sealed yet", tail(v.Unsealed), "Signed up to seal", fmt.Sprint(v.Signed), "Signed at", stamp(v.SignedAt),
			"Head", report.Head)
		for _, f := range v.Faults {
			t.say("WRONG  %s", f)
		}
	})
	if err != nil {
		return err
	}
	if !report.Whole {
		return fault.New(fault.Conflict, "audit_broken", "the audit is not what was written: %d faults", len(v.Faults)).
			WithHint("keep the database as it is, and compare it with a backup")
	}
	t.say("The chain is whole.")
	return nil
}

func tail(unsealed map[string]int64) string {
	var parts []string
	for _, table := range slices.Sorted(maps.Keys(unsealed)) {
		if unsealed[table] > 0 {
			parts = append(parts, fmt.Sprintf("%d of %s", unsealed[table], table))
		}
	}
	return strings.Join(parts, ", ")
}
