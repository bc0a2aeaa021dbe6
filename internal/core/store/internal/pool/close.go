package pool

import (
	"context"
	"fmt"
	"time"
)

// Bounded runs close, which may wait for a server that does not answer, for no longer than a second past ctx.
func Bounded(ctx context.Context, close func() error) error {
	ended := make(chan error, 1)
	go func() { ended <- close() }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	select {
	case err := <-ended:
		return err
	case <-time.After(time.Second):
		return fmt.Errorf("closing the connections: %w", context.Cause(ctx))
	}
}
