package load

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"chancery/api"
	"chancery/internal/load/drive"
)

// meanwhile starts what goes on beside the requests of a group of phases. done ends it and waits.
func (r *run) meanwhile(ctx context.Context, group []Phase) (done func()) {
	ctx, cancel := context.WithCancel(ctx)
	var sides sync.WaitGroup
	if aside := r.book.scenario.aside; aside != nil {
		sides.Go(func() { r.figure(aside(ctx)) })
	}
	at := time.Duration(0)
	for _, p := range group {
		from, length := at, p.Warmup+p.For
		sides.Go(func() {
			if drive.Pause(ctx, from) {
				within, over := context.WithTimeout(ctx, length)
				defer over()
				r.beside(within, p)
			}
		})
		at += length
	}
	return func() {
		cancel()
		sides.Wait()
	}
}

// beside does what goes on beside one phase until ctx ends.
func (r *run) beside(ctx context.Context, p Phase) {
	if r.server != nil {
		r.server.around.slow(p.Slow)
	}
	var all sync.WaitGroup
	if p.Stall > 0 {
		all.Go(func() {
			if drive.Pause(ctx, p.Warmup+p.For/3) {
				r.server.around.stall(ctx, p.Stall)
			}
		})
	}
	if p.Changes > 0 {
		all.Go(func() { r.changes(ctx, p) })
	}
	if p.Reader {
		all.Go(func() { r.target.readOn(ctx) })
	}
	all.Wait()
}

// changes changes tokens and people so many times a second, and says how many it were.
func (r *run) changes(ctx context.Context, p Phase) {
	var person api.Account
	if err := r.target.call(ctx, "/api/v1/accounts", api.NewAccount{Kind: "person", Name: label(), Roles: []string{"person"}}, &person); err != nil {
		r.figure(Figure{Name: "changes", Value: "none: " + err.Error()})
		return
	}
	tick := time.NewTicker(time.Duration(float64(time.Second) / p.Changes))
	defer tick.Stop()
	began, made, failed, took := time.Now(), 0, 0, drive.NewHistogram()
	var token api.Token
	for turn := 0; ctx.Err() == nil; turn++ {
		select {
		case <-ctx.Done():
		case <-tick.C:
			sent := time.Now()
			switch err := r.target.change(ctx, turn, person.ID, &token); {
			case err == nil:
				made++
				drive.Record(took, time.Since(sent))
			case ctx.Err() == nil:
				failed++
			}
		}
	}
	r.figure(Figure{Name: "changes", Value: fmt.Sprintf("%d, %.0f a second; %d failed; %s", made, float64(made)/time.Since(began).Seconds(), failed, latencyOf(took))})
}

// change makes a token, deletes it, disables a person and enables it again, in turn.
func (t *target) change(ctx context.Context, turn int, person string, token *api.Token) error {
	enabled := turn%4 == 3
	switch turn % 4 {
	case 0:
		return t.admin.Call(ctx, http.MethodPost, "/api/v1/tokens", api.NewToken{Account: person, Note: "changing"}, token)
	case 1:
		return t.admin.Call(ctx, http.MethodDelete, "/api/v1/tokens/"+token.ID, nil, nil)
	}
	return t.admin.Call(ctx, http.MethodPatch, "/api/v1/accounts/"+person, api.AccountChange{Enabled: &enabled}, nil)
}

// readOn reads backups, one after the other, to nowhere.
func (t *target) readOn(ctx context.Context) {
	for ctx.Err() == nil {
		if err := t.admin.Download(ctx, "/api/v1/backup", io.Discard); err != nil {
			drive.Pause(ctx, time.Second)
		}
	}
}
