package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"chancery/client"
	"chancery/internal/server"
)

func (t *terminal) backup() *cobra.Command {
	return &cobra.Command{
		Use: "backup FILE", Short: "Write everything into a file, from one moment, while the server runs", Args: cobra.ExactArgs(1),
		Long: "Private keys are in the file as they are stored, sealed; the passphrase that opens them is not. Keep a copy of the\npassphrase elsewhere: a backup without it brings back no key.",
		RunE: t.remote(func(ctx context.Context, server *client.Client, args []string) error {
			passed := t.meter("Backup", 0)
			err := replaceWith(args[0], 0o600, func(w io.Writer) error {
				return server.Download(ctx, "/api/v1/backup", io.MultiWriter(w, passed))
			})
			passed.end()
			if err != nil {
				return err
			}
			return t.show(map[string]any{"file": args[0], "bytes": passed.bytes}, func() { t.say("Backup: %s, %d bytes", args[0], passed.bytes) })
		}),
	}
}

func (t *terminal) restore() *cobra.Command {
	var url string
	c := t.settings(&cobra.Command{
		Use: "restore FILE", Short: "Build a new database from a backup", Args: cobra.ExactArgs(1),
		Long: "Restores into the data directory, which is made if it is not there, or into the empty database of --store. This is also\nthe way from one kind of database to another. Put the passphrase back before the server starts.",
		RunE: func(cmd *cobra.Command, args []string) error {
			if url != "" {
				t.set = append(t.set, "store.url="+url)
			}
			return t.restoreFrom(cmd.Context(), args[0])
		},
	})
	c.Flags().StringVar(&url, "store", "", "database to restore into, such as postgres://…; default: that of the data directory")
	return c
}

func (t *terminal) restoreFrom(ctx context.Context, path string) error {
	c, _, err := t.effective()
	if err != nil {
		return err
	}
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("open the backup: %w", err)
	}
	defer f.Close()
	if err := os.MkdirAll(t.data, 0o700); err != nil {
		return fmt.Errorf("make the data directory: %w", err)
	}
	log, err := t.logger(c)
	if err != nil {
		return err
	}
	passed := t.meter("Restore", sizeOf(f))
	err = server.Restore(ctx, c, io.TeeReader(f, passed), log)
	passed.end()
	if err != nil {
		return err
	}
	_, missing := os.Stat(c.PassphrasePath())
	lacks := errors.Is(missing, fs.ErrNotExist) && c.Keys.Passphrase.IsZero()
	return t.show(map[string]any{"restored": path, "passphrase_missing": lacks}, func() {
		t.say("Restored: %s", path)
		if c.Store.URL != "" {
			t.say("It is not the data directory's own database: set store.url in %s before the server starts.", filepath.Join(t.data, server.FileName))
		}
		if lacks {
			t.say("Put the passphrase that sealed its keys into %s before the server starts.", c.PassphrasePath())
		}
	})
}

// sizeOf gives the size of a file; 0 where it is not known.
func sizeOf(f *os.File) int64 {
	info, err := f.Stat()
	if err != nil {
		return 0
	}
	return info.Size()
}
