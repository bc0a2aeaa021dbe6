package adminapi

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"chancery/api"
	"chancery/internal/base/fault"
	"chancery/internal/base/who"
	"chancery/internal/core/store"
	"chancery/internal/edge/rest"
)

func (f face) audit(a *rest.API) {
	rest.Route(a, rest.Operation{Method: http.MethodGet, Path: "/api/v1/audit", Permission: who.AuditRead, Tags: tag, Summary: "Read the audit, the oldest line first"},
		func(ctx context.Context, in *struct {
			rest.Paging
			Target string `query:"target" maxLength:"96"`
			Actor  string `query:"actor" maxLength:"64"`
		}) (*rest.Body[api.Page[api.AuditLine]], error) {
			after, err := position(in.Paging)
			if err != nil {
				return nil, err
			}
			lines, err := f.db.AuditLines(ctx, store.AuditQuery{After: after, Target: in.Target, Actor: in.Actor, Limit: in.Limit})
			if err != nil {
				return nil, err
			}
			items := make([]api.AuditLine, len(lines))
			next := ""
			for i, l := range lines {
				items[i] = api.AuditLine{Seq: l.Seq, At: time.UnixMilli(l.At).UTC(), Actor: l.Actor, Action: l.Action, Target: l.Target, Detail: l.Detail}
			}
			if len(lines) == in.Limit {
				next = strconv.FormatInt(lines[len(lines)-1].Seq, 10)
			}
			return rest.Reply(rest.NewPage(items, next), nil)
		})
}

func position(p rest.Paging) (int64, error) {
	text, err := p.After()
	if err != nil || text == "" {
		return 0, err
	}
	after, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, fault.New(fault.Invalid, "cursor_invalid", "the cursor was not made by this list")
	}
	return after, nil
}

// healthTimeout is how long the database has to answer a question about its health.
const healthTimeout = 2 * time.Second

func (f face) state(a *rest.API) {
	alive := func(*rest.Request) (*rest.Answer, error) {
		return &rest.Answer{Type: "text/plain; charset=utf-8", Body: []byte("ok\n")}, nil
	}
	text := rest.Media{Out: map[string]any{"text/plain": nil}, First: "text/plain"}
	rest.Raw(a, rest.Operation{Method: http.MethodGet, Path: "/healthz", Permission: who.Public, Tags: tag, Summary: "Say that the process lives"}, text, alive)
	rest.Raw(a, rest.Operation{Method: http.MethodGet, Path: "/readyz", Permission: who.Public, Tags: tag, Summary: "Say whether the database answers"}, text,
		func(r *rest.Request) (*rest.Answer, error) {
			ctx, cancel := context.WithTimeout(r.Context(), healthTimeout)
			defer cancel()
			if err := f.db.Read(ctx, func(*store.Tx) error { return nil }); err != nil {
				return nil, fault.New(fault.Unavailable, "store_unavailable", "the database does not answer").After(time.Second).Because(err)
			}
			return alive(r)
		})
	rest.Route(a, rest.Operation{Method: http.MethodGet, Path: "/api/v1/health", Permission: who.HealthRead, Tags: tag, Summary: "Show the state of the database and its durability settings"},
		func(ctx context.Context, _ *struct{}) (*rest.Body[api.Health], error) {
			ctx, cancel := context.WithTimeout(ctx, healthTimeout)
			defer cancel()
			return rest.Reply(Health(ctx, f.db, f.version), nil)
		})
	rest.Route(a, rest.Operation{Method: http.MethodGet, Path: "/api/v1/refusals", Permission: who.AuditRead, Tags: tag, Summary: "Show recent refusals, the newest first", Description: "From memory, of this instance alone."},
		func(context.Context, *struct{}) (*rest.Body[api.Page[api.Refusal]], error) {
			return rest.Reply(rest.NewPage(f.refusals(), ""), nil)
		})
	rest.Raw(a, rest.Operation{Method: http.MethodGet, Path: "/api/v1/backup", Permission: who.BackupWrite, Deadline: time.Hour, Tags: tag, Summary: "Write a backup of everything, from one snapshot"},
		rest.Media{Out: map[string]any{"application/octet-stream": nil}, First: "application/octet-stream"},
		func(r *rest.Request) (*rest.Answer, error) {
			return &rest.Answer{Type: "application/octet-stream", Stream: func(w io.Writer) error { return f.db.Backup(r.Context(), w) }}, nil
		})
}

// heldTooLong is when a write-ahead log that cannot be folded in is worth a word: our own reads are ended before.
const heldTooLong = 5 * time.Second

// Health says how a store does, as the route answers it; a command that opens the store itself says the same.
func Health(ctx context.Context, db *store.Store, version string) api.Health {
	state := db.Health(ctx)
	out := api.Health{Status: "ok", Version: version, Waiting: state.Waiting, Epoch: state.Epoch}
	for _, s := range state.Settings {
		out.Settings = append(out.Settings, api.HealthSetting{Name: s.Name, Value: s.Value, Safe: s.Safe})
		if !s.Safe {
			out.Status = "degraded"
			out.Notes = append(out.Notes, s.Name+" is accepted although it is unsafe: "+s.Why)
		}
	}
	if held := state.Stats.LogHeld; held > heldTooLong {
		out.Status = "degraded"
		out.Notes = append(out.Notes, fmt.Sprintf("the write-ahead log has %d MB: a reader, maybe of another process, has kept it from being folded in for %v; the server's log names it",
			state.Stats.LogBytes>>20, held.Round(time.Second)))
	}
	if !state.Reachable {
		out.Status = "degraded"
		out.Notes = append(out.Notes, "the database does not answer")
	}
	return out
}
