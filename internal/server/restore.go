package server

import (
	"context"
	"fmt"
	"io"
	"log/slog"

	"chancery/internal/core/store"
	"chancery/internal/domain/ca"
)

// Restore reads a backup into the empty database of the configuration, durable on return. The passphrase is not part of
// a backup: the keyring opens with the one that it was sealed with.
func Restore(ctx context.Context, c Config, backup io.Reader, log *slog.Logger) error {
	err := store.Restore(ctx, store.Config{URL: c.storeURL(), Accept: c.Store.Accept, Log: log, Restored: ca.Restored}, backup)
	if err != nil {
		return fmt.Errorf("restore the backup: %w", err)
	}
	return nil
}
