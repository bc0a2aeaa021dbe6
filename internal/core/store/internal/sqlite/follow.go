package sqlite

import (
	"context"

	"chancery/internal/core/store/internal/engine"
)

// Follow gives nil: no other process writes to the file.
func (e *Engine) Follow(context.Context) (engine.Follower, error) { return nil, nil }
