package store

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"

	"chancery/internal/core/store/internal/engine"
)

// source is a table whose rows are sealed: the audit lines, and every table with a position column.
type source struct {
	table  string
	fields []Column // what of a row is sealed
}

// sources gives the tables whose rows are sealed, with all their columns.
func (s *Store) sources(tx *Tx) (all []source, err error) {
	tables, err := s.engine.Tables(tx.session)
	for _, t := range tables {
		if t.Ordered && !perishable[t.Name] {
			all = append(all, source{t.Name, t.Columns})
		}
	}
	return all, err
}

func (src source) names() string {
	names := make([]string, len(src.fields))
	for i, c := range src.fields {
		names[i] = c.Name
	}
	return strings.Join(names, ",")
}

// only gives the source with the fields that an older seal names; a column may have come since.
func (src source) only(names string) (source, error) {
	narrow := source{table: src.table}
	for name := range strings.SplitSeq(names, ",") {
		i := slices.IndexFunc(src.fields, func(c Column) bool { return c.Name == name })
		if i < 0 {
			return narrow, fmt.Errorf("no column %q", name)
		}
		narrow.fields = append(narrow.fields, src.fields[i])
	}
	return narrow, nil
}

// gather hashes the rows of src that follow the latest seal, or with late, those that appeared below it.
func (s *Store) gather(tx *Tx, src source, late bool) (next seal, err error) {
	p := s.engine.Positions()
	if next.epoch, err = epoch(tx); err != nil {
		return next, err
	}
	var low, bound int64
	if _, err = tx.One([]any{&low}, "SELECT COALESCE(MAX(high), 0) FROM seal WHERE source = ? AND epoch = ?", src.table, next.epoch); err != nil {
		return next, err
	}
	if _, err = tx.One([]any{&bound}, strings.ReplaceAll(p.Bound, "TABLE", src.table)); err != nil {
		return next, err
	}
	next.source, next.fields, next.high = src.table, src.names(), low
	if late && p.Late > 0 {
		if err = s.gatherLate(tx, src, low, &next); err != nil || next.members > 0 {
			return next, err
		}
	}
	if bound <= low {
		return next, nil
	}
	if bound, err = s.cut(tx, src, low, bound); err != nil {
		return next, err
	}
	rows, err := s.rowsOf(tx, src, spans{{low + 1, bound}})
	if err != nil {
		return next, err
	}
	next.high, next.members, next.content = bound, int64(len(rows)), contentOf(rows)
	if next.positions = (spans{{low + 1, bound}}); p.Late > 0 {
		next.positions = spansOf(positionsOf(rows))
	}
	return next, nil
}

// cut gives a bound that leaves about sealRows rows above low, and never parts rows of one position. Where each row has
// a position of its own, hardly any is left out, and counting rows would read them twice.
func (s *Store) cut(tx *Tx, src source, low, bound int64) (int64, error) {
	p := s.engine.Positions()
	query := fmt.Sprintf("SELECT %s FROM %s WHERE %s AND %s ORDER BY %s LIMIT 1", p.Select, src.table, p.After, p.UpTo, p.Column)
	if near := low + sealRows; p.Unique && near < bound {
		var first int64
		if found, err := tx.One([]any{&first}, query, low, near); err != nil || found {
			return near, err
		}
	} else if p.Unique {
		return bound, nil
	}
	_, err := tx.One([]any{&bound}, fmt.Sprintf("%s OFFSET %d", query, sealRows-1), low, bound)
	return bound, err
}

// gatherLate seals rows that lie below the latest seal and in no seal: their transaction was slower than others.
func (s *Store) gatherLate(tx *Tx, src source, high int64, next *seal) error {
	p := s.engine.Positions()
	since := tx.Now() - 2*p.Late.Milliseconds()
	var low int64
	if _, err := tx.One([]any{&low}, "SELECT COALESCE(MAX(high), 0) FROM seal WHERE source = ? AND epoch = ? AND at < ?", src.table, next.epoch, since); err != nil {
		return err
	}
	sealed := map[int64]bool{}
	err := tx.Each("SELECT positions FROM seal WHERE source = ? AND epoch = ? AND at >= ?", []any{src.table, next.epoch, since}, func(r Row) error {
		var text string
		if err := r.Scan(&text); err != nil {
			return err
		}
		list, err := parseSpans(text)
		for _, one := range list {
			for n := one.first; n <= one.last; n++ {
				sealed[n] = true
			}
		}
		return err
	})
	if err != nil {
		return err
	}
	var missed []int64
	query := fmt.Sprintf("SELECT %s FROM %s WHERE %s AND %s", p.Select, src.table, p.After, p.UpTo)
	err = tx.Each(query, []any{low, high}, func(r Row) error {
		var n int64
		if err := r.Scan(&n); err != nil {
			return err
		}
		if !sealed[n] && len(missed) < sealRows {
			missed = append(missed, n)
		}
		return nil
	})
	if err != nil || len(missed) == 0 {
		return err
	}
	next.positions = spansOf(missed)
	rows, err := s.rowsOf(tx, src, next.positions)
	next.members, next.content = int64(len(rows)), contentOf(rows)
	return err
}

// sealedRow is the hash of a row and where it stands.
type sealedRow struct {
	position int64
	sum      [sha256.Size]byte
}

// rowsOf hashes the rows of src at the given positions.
func (s *Store) rowsOf(tx *Tx, src source, at spans) (rows []sealedRow, err error) {
	p := s.engine.Positions()
	first, last := at.bounds()
	columns := append([]Column{{Name: p.Select, Kind: Int}}, src.fields...)
	query := fmt.Sprintf("SELECT %s, %s FROM %s WHERE %s AND %s", p.Select, src.names(), src.table, p.After, p.UpTo)
	err = tx.Each(query, []any{first - 1, last}, func(r Row) error {
		values, err := engine.ScanKinds(r, columns)
		if err != nil {
			return err
		}
		position := values[0].(int64)
		if at.has(position) {
			rows = append(rows, sealedRow{position, digest(values[1:]...)})
		}
		return nil
	})
	return rows, err
}

// contentOf hashes a set of rows, in whatever order they come.
func contentOf(rows []sealedRow) []byte {
	rows = slices.Clone(rows)
	slices.SortFunc(rows, func(a, b sealedRow) int { return bytes.Compare(a.sum[:], b.sum[:]) })
	h := sha256.New()
	for _, r := range rows {
		h.Write(r.sum[:])
	}
	return h.Sum(nil)
}

func positionsOf(rows []sealedRow) []int64 {
	positions := make([]int64, len(rows))
	for i, r := range rows {
		positions[i] = r.position
	}
	return positions
}
