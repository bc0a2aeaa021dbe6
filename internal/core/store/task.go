package store

import (
	"context"
	"sync"
)

// tasks is the background work of a store. The zero value is ready.
type tasks struct{ group sync.WaitGroup }

func (t *tasks) start(ctx context.Context, run func(context.Context)) {
	t.group.Go(func() { run(ctx) })
}

// wait returns when all tasks have ended, or ctx has.
func (t *tasks) wait(ctx context.Context) {
	ended := make(chan struct{})
	go func() {
		t.group.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-ctx.Done():
	}
}
