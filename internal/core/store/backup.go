package store

import (
	"context"
	"fmt"
	"io"
	"strings"

	"chancery/internal/core/store/internal/engine"
)

// backupHeader opens a backup.
type backupHeader struct {
	At      int64 `json:"at"`      // UTC milliseconds
	Version int64 `json:"version"` // of the tables: the number of the latest migration
	Epoch   int64 `json:"epoch"`
}

// backupTable announces rows.
type backupTable struct {
	Name    string   `json:"name"`
	Columns []string `json:"columns"`
	Kinds   []Kind   `json:"kinds"`
}

// backupEnd closes a backup; only with it is a backup whole.
type backupEnd struct {
	Rows map[string]int64 `json:"rows"` // by table
	Sum  []byte           `json:"sum"`  // SHA-256 of everything before this frame
}

// perishable tables mean nothing outside of the running store.
var perishable = map[string]bool{"feed": true, "lease": true}

// Backup writes everything that the store holds, from one snapshot, in a form that Restore reads into any of the three
// databases. Writers are not held up. Keys are in it as they are stored: sealed, without the passphrase. On SQLite the
// backup takes as much room again beside the file while it runs. Only ctx bounds it.
func (s *Store) Backup(ctx context.Context, w io.Writer) error {
	f, err := newFrames(w)
	if err != nil {
		return fmt.Errorf("writing the backup: %w", err)
	}
	err = s.engine.Export(ctx, func(session engine.Session, tables []engine.Table) error {
		tx := s.tx(ctx, session)
		tx.readOnly = true
		return s.export(tx, tables, f)
	})
	if err != nil {
		return fmt.Errorf("writing the backup: %w", err)
	}
	return f.w.Flush()
}

func (s *Store) export(tx *Tx, tables []engine.Table, f *frames) error {
	header := backupHeader{At: tx.Now()}
	if _, err := tx.One([]any{&header.Version}, "SELECT MAX(version_id) FROM goose_db_version"); err != nil {
		return err
	}
	var err error
	if header.Epoch, err = epoch(tx); err != nil {
		return err
	}
	if err := f.putJSON(frameHeader, header); err != nil {
		return err
	}
	end := backupEnd{Rows: map[string]int64{}}
	for _, t := range tables {
		if perishable[t.Name] {
			continue
		}
		if end.Rows[t.Name], err = s.exportTable(tx, t, f); err != nil {
			return fmt.Errorf("table %s: %w", t.Name, err)
		}
	}
	end.Sum = f.sum.Sum(nil)
	return f.putJSON(frameEnd, end)
}

func (s *Store) exportTable(tx *Tx, t engine.Table, f *frames) (rows int64, err error) {
	about := backupTable{Name: t.Name}
	for _, c := range t.Columns {
		about.Columns, about.Kinds = append(about.Columns, c.Name), append(about.Kinds, c.Kind)
	}
	if err := f.putJSON(frameTable, about); err != nil {
		return 0, err
	}
	query := "SELECT " + strings.Join(about.Columns, ", ") + " FROM " + t.Name
	if t.Ordered {
		query += " ORDER BY " + s.engine.Positions().Column
	}
	var pack []byte
	err = tx.Each(query, nil, func(r Row) error {
		values, err := engine.ScanKinds(r, t.Columns)
		if err != nil {
			return err
		}
		for _, v := range values {
			pack = appendValue(pack, v)
		}
		if rows++; len(pack) < framePack {
			return nil
		}
		err = f.put(frameRows, pack)
		pack = pack[:0]
		return err
	})
	if err == nil && len(pack) > 0 {
		err = f.put(frameRows, pack)
	}
	return rows, err
}
