package load

import (
	"context"
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
		sides.Go(func() { r.Figures = append(r.Figures, aside(ctx)) })
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
		all.Go(func() { r.target.change(ctx, p.Changes) })
	}
	if p.Reader {
		all.Go(func() { r.target.readOn(ctx) })
	}
	all.Wait()
}

// change changes a token or a person so many times a second: made, disabled, deleted.
func (t *target) change(ctx context.Context, perSecond float64) {
	tick := time.NewTicker(time.Duration(float64(time.Second) / perSecond))
	defer tick.Stop()
	var made api.Token
	for i := 0; ; i++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if i%2 == 0 {
			made = api.Token{}
			_ = t.call(ctx, "/api/v1/tokens", api.NewToken{Account: t.readerID, Note: "changing"}, &made) // what fails shows in the rate of changes on the server
			continue
		}
		if made.ID != "" {
			_ = t.admin.Call(ctx, http.MethodDelete, "/api/v1/tokens/"+made.ID, nil, nil)
		}
	}
}

// readOn reads backups, one after the other, to nowhere.
func (t *target) readOn(ctx context.Context) {
	for ctx.Err() == nil {
		if err := t.admin.Download(ctx, "/api/v1/backup", io.Discard); err != nil {
			drive.Pause(ctx, time.Second)
		}
	}
}
