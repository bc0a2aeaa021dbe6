package postgres

import (
	"context"
	"fmt"

	"chancery/internal/core/store/internal/engine"
)

// Settings reads what a commit of this session stands on; see engine.Engine.
func (e *Engine) Settings(ctx context.Context) ([]engine.Setting, error) {
	settings := []engine.Setting{
		{Name: "fsync", Why: "the server does not sync at all; a loss of power may destroy the whole database"},
		{Name: "synchronous_commit", Why: "the server confirms commits before they are on the disk"},
		{Name: "full_page_writes", Why: "a page that was half written when the power went cannot be repaired"},
	}
	for i := range settings {
		s := &settings[i]
		if err := e.DB.QueryRowContext(ctx, "SELECT current_setting($1)", s.Name).Scan(&s.Value); err != nil {
			return nil, fmt.Errorf("reading %s: %w", s.Name, err)
		}
		s.Safe = s.Value != "off"
	}
	return settings, nil
}
