package store

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"chancery/internal/base/fault"
	"chancery/internal/core/store/internal/engine"
)

const (
	restoringFact = "restoring" // stands while a restore is under way, and after one that failed
	restoreBytes  = 512 << 10   // values of one transaction
	restoreRows   = 500         // rows of one transaction
)

// Restore reads a backup into the empty database of c, whichever of the three it is, and checks that everything
// arrived. It raises the store's epoch, so that what was numbered before is not mistaken for what comes, runs
// c.Restored in the last transaction, and leaves an audit line. A database that holds rows is refused; one whose
// restore did not end is refused by Open.
func Restore(ctx context.Context, c Config, r io.Reader) error {
	u, err := newUnframer(r)
	if err != nil {
		return notABackup(err)
	}
	var header backupHeader
	kind, payload, _, err := u.next()
	if err != nil || kind != frameHeader || json.Unmarshal(payload, &header) != nil {
		return notABackup(errors.Join(err, errors.New("the backup has no header")))
	}
	s := &Store{config: c.withDefaults(), instance: "restore"}
	l := &load{store: s, u: u, header: header, rows: map[string]int64{}}
	err = l.run(ctx)
	return errors.Join(err, s.abandon())
}

func notABackup(err error) error {
	return fault.New(fault.Invalid, "backup_damaged", "The backup cannot be restored: %v.", err).
		WithHint("Try another copy of the backup. The database is not usable until a restore has ended well.")
}

// load is one restore under way.
type load struct {
	store  *Store
	u      *unframer
	header backupHeader
	tables map[string]engine.Table
	rows   map[string]int64
}

func (l *load) run(ctx context.Context) error {
	s := l.store
	o, d, err := s.connect(ctx)
	if err != nil {
		return err
	}
	s.engine = o
	if err := migrate(ctx, d, o.Migrator(), s.config.Log, l.header.Version); err != nil {
		return err
	}
	if err := o.Start(ctx); err != nil {
		return fmt.Errorf("starting the store: %w", err)
	}
	if err := s.check(ctx); err != nil {
		return err
	}
	if err := l.begin(ctx); err != nil {
		return err
	}
	if err := l.frames(ctx); err != nil {
		return err
	}
	return l.end(ctx)
}

// begin refuses a database that holds anything, and marks it as unfinished.
func (l *load) begin(ctx context.Context) error {
	return l.store.Write(ctx, func(tx *Tx) error {
		tables, err := l.store.engine.Tables(tx.session)
		if err != nil {
			return err
		}
		l.tables = map[string]engine.Table{}
		for _, t := range tables {
			var one int64
			found, err := tx.One([]any{&one}, "SELECT 1 FROM "+t.Name+" LIMIT 1")
			if err != nil {
				return err
			}
			if found {
				return fault.New(fault.Conflict, "store_not_empty", "The database is not empty; its table %s holds rows.", t.Name).
					WithHint("Restore into a fresh database.")
			}
			l.tables[t.Name] = t
		}
		return setFact(tx, restoringFact, strconv.FormatInt(l.header.At, 10))
	})
}

// frames reads tables and rows until the end, and checks the end against what arrived.
func (l *load) frames(ctx context.Context) error {
	var current backupTable
	for {
		kind, payload, before, err := l.u.next()
		if err != nil {
			return notABackup(err)
		}
		switch kind {
		case frameTable:
			current, err = l.table(payload)
		case frameRows:
			err = l.load(ctx, current, payload)
		case frameEnd:
			return l.compare(ctx, payload, before)
		default:
			err = notABackup(fmt.Errorf("a frame of kind %q", kind))
		}
		if err != nil {
			return err
		}
	}
}

// table checks that a table of the backup is one that we have.
func (l *load) table(payload []byte) (t backupTable, err error) {
	if err := json.Unmarshal(payload, &t); err != nil || len(t.Columns) == 0 || len(t.Columns) != len(t.Kinds) {
		return t, notABackup(errors.New("a table without columns"))
	}
	have, ok := l.tables[t.Name]
	if !ok {
		return t, notABackup(fmt.Errorf("the table %q is unknown here", t.Name))
	}
	for i, name := range t.Columns {
		if !slices.Contains(have.Columns, engine.Column{Name: name, Kind: t.Kinds[i]}) {
			return t, notABackup(fmt.Errorf("the column %q of %s is unknown here", name, t.Name))
		}
	}
	return t, nil
}

// load writes the rows of one frame, in transactions of bounded size.
func (l *load) load(ctx context.Context, t backupTable, payload []byte) error {
	if t.Name == "" {
		return notABackup(errors.New("rows without a table"))
	}
	for len(payload) > 0 {
		rows, rest, err := takeRows(payload, len(t.Columns))
		if err != nil {
			return notABackup(err)
		}
		if err := l.insert(ctx, t, rows); err != nil {
			return fmt.Errorf("restoring table %s: %w", t.Name, err)
		}
		payload = rest
	}
	return nil
}

// takeRows takes as many rows as one transaction may write.
func takeRows(payload []byte, columns int) (rows [][]any, rest []byte, err error) {
	start := len(payload)
	for len(payload) > 0 && len(rows) < restoreRows && start-len(payload) < restoreBytes {
		row := make([]any, columns)
		for i := range row {
			if row[i], payload, err = takeValue(payload); err != nil {
				return nil, nil, err
			}
		}
		rows = append(rows, row)
	}
	return rows, payload, nil
}

func (l *load) insert(ctx context.Context, t backupTable, rows [][]any) error {
	query := fmt.Sprintf("INSERT INTO %s (%s) VALUES (%s?)", t.Name, strings.Join(t.Columns, ", "), strings.Repeat("?, ", len(t.Columns)-1))
	replace := t.Name == "fact" // the mark of this restore stands in it
	err := l.store.Write(ctx, func(tx *Tx) error {
		for _, row := range rows {
			if replace && row[0] == restoringFact {
				continue
			}
			if _, err := tx.Exec(query, row...); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil {
		l.rows[t.Name] += int64(len(rows))
	}
	return err
}

// compare checks that all rows are there, by the backup's own count and by the database's.
func (l *load) compare(ctx context.Context, payload, before []byte) error {
	var end backupEnd
	if err := json.Unmarshal(payload, &end); err != nil || !bytes.Equal(end.Sum, before) {
		return notABackup(errors.New("its checksum does not fit what came before"))
	}
	return l.store.Read(ctx, func(tx *Tx) error {
		for table, want := range end.Rows {
			var got int64
			if _, err := tx.One([]any{&got}, "SELECT COUNT(*) FROM "+l.tables[table].Name); err != nil {
				return err
			}
			if table == "fact" {
				got-- // the mark of this restore
			}
			if l.rows[table] != want || got != want {
				return notABackup(fmt.Errorf("%d rows of %s were written, %d are there", want, table, got))
			}
		}
		return nil
	})
}

// end brings the tables up to date and opens the store for use, in one transaction with the audit line.
func (l *load) end(ctx context.Context) error {
	s := l.store
	raised := l.header.Epoch + 1
	err := s.Write(ctx, func(tx *Tx) error {
		if _, err := tx.Exec("DELETE FROM fact WHERE name = ?", restoringFact); err != nil {
			return err
		}
		if err := setFact(tx, "epoch", strconv.FormatInt(raised, 10)); err != nil {
			return err
		}
		if s.config.Restored != nil {
			if err := s.config.Restored(tx, l.header.At); err != nil {
				return err
			}
		}
		detail := fmt.Sprintf(`{"taken_at":%d,"epoch":%d}`, l.header.At, raised)
		return tx.Audit(Line{Actor: "store", Action: "store.restore", Target: "store", Detail: detail})
	})
	if err != nil {
		return fmt.Errorf("ending the restore: %w", err)
	}
	return nil
}

// whole refuses a database whose restore did not end.
func whole(tx *Tx) error {
	var at string
	found, err := tx.One([]any{&at}, "SELECT value FROM fact WHERE name = ?", restoringFact)
	if err != nil || !found {
		return err
	}
	return fault.New(fault.Conflict, "restore_unfinished", "A restore into this database did not end; what is in it is not whole.").
		WithHint("Restore again into a fresh database.")
}
