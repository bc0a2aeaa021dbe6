package pool

import (
	"context"
	"fmt"
	"time"
)

// Bounded runs close, which may wait for a server that does not answer, for no longer than a second past ctx. What
// close says is dropped: a connection that broke is closed as well.
func Bounded(ctx context.Context, close func() error) error {
	ended := make(chan struct{}, 1)
	go func() {
		_ = close()
		ended <- struct{}{}
	}()
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
	}
	select {
	case <-ended:
		return nil
	case <-time.After(time.Second):
		return fmt.Errorf("closing the connections: %w", context.Cause(ctx))
	}
}
