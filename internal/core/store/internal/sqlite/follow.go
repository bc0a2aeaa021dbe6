package sqlite

import (
	"context"

	"chancery/internal/core/store/internal/engine"
)

// Follow gives nil: no other process writes to the file.
func (e *Engine) Follow(context.Context) (engine.Follower, error) { return nil, nil }

// Positions are row ids: one writer gives them in commit order.
func (e *Engine) Positions() engine.Positions {
	return engine.Positions{
		Unique: true, Column: "seq", Select: "seq", After: "seq > ?", UpTo: "seq <= ?",
		Bound: "SELECT COALESCE(MAX(seq), 0) FROM TABLE",
	}
}
