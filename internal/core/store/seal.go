package store

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"time"

	"chancery/internal/core/store/internal/engine"
)

const (
	sealEvery = 400 * time.Millisecond
	sealRows  = 4096             // rows of one seal, and those of the same transaction
	sealLate  = 10 * time.Second // how often to look for rows that appeared late
	signEvery = time.Hour
	sealLease = 15 * time.Second
)

// Sign signs the head of the audit chain; it may be called from any goroutine.
type Sign func(head []byte) (signature []byte, err error)

// SetSigner has the head of the audit chain signed from now on, first with the next seal, then hourly. The keyring
// that holds the key opens after the store.
func (s *Store) SetSigner(sign Sign) { s.sealer.sign.Store(&sign) }

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

// seal is one row of the chain.
type seal struct {
	number, epoch, at, high, members int64
	source, fields                   string
	positions                        spans
	content, hash, signature         []byte
}

// link gives the hash of this seal as the successor of the one with hash previous.
func (l *seal) link(previous []byte) []byte {
	sum := digest(l.number, l.epoch, l.at, l.source, l.fields, l.high, l.positions.String(), l.members, l.content, previous)
	return sum[:]
}

// seals seals what is committed, in this instance if it holds the lease, until ctx ends.
func (s *Store) seals(ctx context.Context) {
	ticker := time.NewTicker(sealEvery)
	defer ticker.Stop()
	failing := false
	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		err := s.sealRound(ctx)
		if err != nil && ctx.Err() == nil && !failing {
			s.config.Log.Warn("sealing the audit; trying on", "error", err)
		}
		failing = err != nil
	}
}

// sealRound seals until each source has less than a full seal's rows left.
func (s *Store) sealRound(ctx context.Context) error {
	mine, err := s.mine(ctx)
	if err != nil || !mine {
		return err
	}
	late := time.Since(s.sealer.looked) > sealLate
	if late || s.sealer.stale.Swap(false) {
		if err := s.Read(ctx, func(tx *Tx) (err error) {
			s.sealer.sources, err = s.sources(tx)
			return err
		}); err != nil {
			return fmt.Errorf("finding the tables: %w", err)
		}
	}
	for _, src := range s.sealer.sources {
		for more := true; more; {
			if more, err = s.sealNext(ctx, src, late); err != nil {
				return fmt.Errorf("sealing %s: %w", src.table, err)
			}
		}
	}
	if late {
		s.sealer.looked = time.Now()
	}
	return nil
}

// mine reports whether this instance is the sealer.
func (s *Store) mine(ctx context.Context) (bool, error) {
	if s.lock != nil { // the only process on its file
		return true, nil
	}
	if time.Now().Before(s.sealer.until) {
		return true, nil
	}
	held, err := s.Lease(ctx, "sealer", sealLease)
	if held {
		s.sealer.until = time.Now().Add(sealLease / 3)
	}
	return held, err
}

// sealNext writes the next seal of src, and reports whether there may be more to seal at once.
func (s *Store) sealNext(ctx context.Context, src source, late bool) (more bool, err error) {
	var next seal
	err = s.Read(ctx, func(tx *Tx) error {
		next, err = s.gather(tx, src, late)
		return err
	})
	if err != nil || next.members == 0 {
		return false, err
	}
	return next.members >= sealRows, s.append(ctx, next)
}

// append chains next to the latest seal and signs it when a signature is due.
func (s *Store) append(ctx context.Context, next seal) error {
	signer, due := s.sealer.due()
	err := s.Write(ctx, func(tx *Tx) error {
		last, err := latestSeal(tx)
		if err != nil {
			return err
		}
		next.number, next.at, next.signature = last.number+1, tx.Now(), []byte{}
		next.hash = next.link(last.hash)
		_, err = tx.Exec(`INSERT INTO seal (number, epoch, at, source, fields, high, positions, members, content, hash, signature)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`, next.number, next.epoch, next.at, next.source, next.fields, next.high,
			next.positions.String(), next.members, next.content, next.hash, next.signature)
		return err
	})
	if err != nil || !due {
		return err
	}
	return s.signHead(ctx, next, signer)
}

// signHead signs a seal that is stored already: no signature is made inside a transaction.
func (s *Store) signHead(ctx context.Context, head seal, sign Sign) error {
	signature, err := sign(head.hash)
	if err != nil {
		return fmt.Errorf("signing the head of the audit: %w", err)
	}
	err = s.Write(ctx, func(tx *Tx) error {
		_, err := tx.Exec("UPDATE seal SET signature = ? WHERE number = ?", signature, head.number)
		return err
	})
	if err != nil {
		return err
	}
	s.sealer.signed = time.Now()
	s.config.Log.Info("audit head", "number", head.number, "hash", fmt.Sprintf("%x", head.hash), "signature", fmt.Sprintf("%x", signature))
	return nil
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

// cut gives a bound that leaves about sealRows rows above low, and never parts rows of one position.
func (s *Store) cut(tx *Tx, src source, low, bound int64) (int64, error) {
	p := s.engine.Positions()
	query := fmt.Sprintf("SELECT %s FROM %s WHERE %s AND %s ORDER BY %s LIMIT 1 OFFSET %d", p.Select, src.table, p.After, p.UpTo, p.Column, sealRows-1)
	_, err := tx.One([]any{&bound}, query, low, bound)
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

// latestSeal gives the head of the chain; a chain without seals has number 0 and no hash.
func latestSeal(tx *Tx) (last seal, err error) {
	_, err = tx.One([]any{&last.number, &last.hash, &last.at}, "SELECT number, hash, at FROM seal ORDER BY number DESC LIMIT 1")
	return last, err
}

// SealState says how far the audit is sealed.
type SealState struct {
	Number int64     // of the latest seal
	Hash   []byte    // of the latest seal: the head of the chain
	At     time.Time // of the latest seal
	Signed int64     // number of the latest signed seal
}

func sealState(tx *Tx) (state SealState, err error) {
	last, err := latestSeal(tx)
	if err != nil {
		return state, err
	}
	state = SealState{Number: last.number, Hash: last.hash, At: time.UnixMilli(last.at)}
	_, err = tx.One([]any{&state.Signed}, "SELECT number FROM seal WHERE signature <> ? ORDER BY number DESC LIMIT 1", []byte{})
	return state, err
}
