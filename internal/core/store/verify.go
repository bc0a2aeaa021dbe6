package store

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

const (
	verifyPage  = 4 // seals in one snapshot, so that it stays young
	verifyTries = 8 // of a page whose snapshot grew too old all the same
)

// A Verification says what a walk over the whole audit found. Nothing in Faults means: every sealed row is as it was
// sealed, and the chain is whole as far as Known heads and signatures can tell.
type Verification struct {
	Seals    int64            // in the chain
	Rows     int64            // that are sealed and as they were
	Earlier  int64            // seals from before a restore: their chain was checked, their rows are sealed anew
	Retired  int64            // sealed rows that went by a retention rule
	Unsealed map[string]int64 // by table: rows that no seal holds yet, the tail of the last second
	Signed   int64            // number of the latest seal with a good signature, 0 for none
	SignedAt time.Time        // when that seal was written
	Head     []byte           // hash of the latest seal
	Faults   []string         // what is wrong, in plain words
}

// A Head is a head of the chain that was written down elsewhere, as the log does with each signature.
type Head struct {
	Number int64
	Hash   []byte
}

// VerifyAudit walks the whole chain and every sealed row. check verifies a signature over a head; nil leaves
// signatures unchecked. known are heads from elsewhere: only they show a tail that was cut off together with its seals.
func (s *Store) VerifyAudit(ctx context.Context, check func(head, signature []byte) error, known []Head) (Verification, error) {
	w := walk{store: s, check: check, known: map[int64][]byte{}, members: map[string]int64{}, high: map[string]int64{}}
	w.result.Unsealed = map[string]int64{}
	for _, h := range known {
		w.known[h.Number] = h.Hash
	}
	if err := s.Read(ctx, w.begin); err != nil {
		return w.result, fmt.Errorf("reading the retention lines: %w", err)
	}
	for more := true; more; {
		page, err := w.page(ctx)
		if err != nil {
			return w.result, fmt.Errorf("checking seal %d: %w", w.last.number+1, err)
		}
		for _, one := range page {
			w.chain(one.seal)
			w.content(one)
			w.last = one.seal
		}
		more = len(page) == verifyPage
	}
	for number := range w.known {
		w.fault("the chain ends at seal %d, but head %d was written down elsewhere: the tail was cut off", w.last.number, number)
	}
	w.result.Head = w.last.hash
	return w.result, s.Read(ctx, w.tails)
}

// walk is one verification under way.
type walk struct {
	store   *Store
	check   func(head, signature []byte) error
	known   map[int64][]byte // those not met yet
	epoch   int64
	sources []source
	retired map[string]spans // by table: positions whose rows went by rule
	last    seal
	members map[string]int64 // by table: sealed rows of this epoch
	high    map[string]int64
	result  Verification
}

func (w *walk) fault(format string, args ...any) {
	w.result.Faults = append(w.result.Faults, fmt.Sprintf(format, args...))
}

func (w *walk) begin(tx *Tx) (err error) {
	if w.epoch, err = epoch(tx); err != nil {
		return err
	}
	if w.sources, err = w.store.sources(tx); err != nil {
		return err
	}
	w.retired, err = retirements(tx, w.epoch)
	return err
}

// checked is a seal and what is there of its rows.
type checked struct {
	seal
	rows    []sealedRow
	problem error // why there are no rows to look at
}

// page reads the next seals and hashes their rows, from one snapshot.
func (w *walk) page(ctx context.Context) (page []checked, err error) {
	for range verifyTries {
		err = w.store.Read(ctx, func(tx *Tx) (err error) {
			if page, err = w.seals(tx); err != nil {
				return err
			}
			for i := range page {
				if err := w.look(tx, &page[i]); err != nil {
					return err
				}
			}
			return nil
		})
		if !errors.Is(err, Stale) {
			break
		}
	}
	return page, err
}

func (w *walk) seals(tx *Tx) (page []checked, err error) {
	query := fmt.Sprintf(`SELECT number, epoch, at, source, fields, high, positions, members, content, hash, signature
		FROM seal WHERE number > ? ORDER BY number LIMIT %d`, verifyPage)
	err = tx.Each(query, []any{w.last.number}, func(r Row) error {
		var l checked
		var positions string
		err := r.Scan(&l.number, &l.epoch, &l.at, &l.source, &l.fields, &l.high, &positions, &l.members, &l.content, &l.hash, &l.signature)
		if err != nil {
			return err
		}
		if l.positions, l.problem = parseSpans(positions); len(l.positions) == 0 && l.problem == nil {
			l.problem = errors.New("it names no positions")
		}
		page = append(page, l)
		return nil
	})
	return page, err
}

// look hashes the rows of a seal of this epoch.
func (w *walk) look(tx *Tx, l *checked) error {
	if l.epoch != w.epoch || l.problem != nil {
		return nil
	}
	src, err := w.source(l.seal)
	if err != nil {
		l.problem = err
		return nil
	}
	l.rows, err = w.store.rowsOf(tx, src, l.positions)
	return err
}

// chain checks number, hash, signature and what is known of l from elsewhere.
func (w *walk) chain(l seal) {
	w.result.Seals++
	if l.number != w.last.number+1 {
		w.fault("seals %d to %d are missing", w.last.number+1, l.number-1)
	}
	if !bytes.Equal(l.hash, l.link(w.last.hash)) {
		w.fault("seal %d does not continue the chain: it or the one before it was changed", l.number)
	}
	if hash, ok := w.known[l.number]; ok {
		if !bytes.Equal(hash, l.hash) {
			w.fault("seal %d is not the one that was written down elsewhere: the chain was rewritten", l.number)
		}
		delete(w.known, l.number)
	}
	if len(l.signature) == 0 || w.check == nil {
		return
	}
	if err := w.check(l.hash, l.signature); err != nil {
		w.fault("the signature of seal %d is wrong: %v", l.number, err)
		return
	}
	w.result.Signed, w.result.SignedAt = l.number, time.UnixMilli(l.at)
}

// content checks the rows that l seals.
func (w *walk) content(l checked) {
	if l.epoch != w.epoch {
		w.result.Earlier++
		return
	}
	if l.problem != nil {
		w.fault("seal %d cannot be checked: %v", l.number, l.problem)
		return
	}
	w.members[l.source] += l.members
	w.high[l.source] = max(w.high[l.source], l.high)
	gone := l.members - int64(len(l.rows))
	switch {
	case gone > 0 && w.retired[l.source].meets(l.positions):
		w.result.Retired += gone
		w.members[l.source] -= gone
	case gone != 0:
		w.fault("seal %d holds %d rows of %s; %d are there", l.number, l.members, l.source, len(l.rows))
	case !bytes.Equal(contentOf(l.rows), l.content):
		w.fault("a row of %s that seal %d holds was changed", l.source, l.number)
	default:
		w.result.Rows += l.members
	}
}

// source gives the table that l speaks of, with the fields that it seals.
func (w *walk) source(l seal) (source, error) {
	for _, src := range w.sources {
		if src.table == l.source {
			return src.only(l.fields)
		}
	}
	return source{}, fmt.Errorf("there is no table %q", l.source)
}

// tails counts what no seal holds: rows behind the last seal of each table, and rows that were slipped in before it.
func (w *walk) tails(tx *Tx) error {
	p := w.store.engine.Positions()
	for _, src := range w.sources {
		high := w.high[src.table]
		var below, above int64
		if _, err := tx.One([]any{&below}, "SELECT COUNT(*) FROM "+src.table+" WHERE "+p.UpTo, high); err != nil {
			return err
		}
		if _, err := tx.One([]any{&above}, "SELECT COUNT(*) FROM "+src.table+" WHERE "+p.After, high); err != nil {
			return err
		}
		w.result.Unsealed[src.table] = above
		if src.table == "audit" {
			if err := w.ownHashes(tx, p.After, high); err != nil {
				return err
			}
		}
		switch more := below - w.members[src.table]; {
		case more > 0 && p.Late > 0: // a slow transaction's, to be sealed within seconds, if it is one
			w.result.Unsealed[src.table] += more
		case more > 0:
			w.fault("%d rows of %s were slipped in behind the seals", more, src.table)
		}
	}
	return nil
}

// ownHashes checks the unsealed audit lines against the hash that each carries.
func (w *walk) ownHashes(tx *Tx, after string, high int64) error {
	return tx.Each("SELECT at, actor, action, target, detail, hash FROM audit WHERE "+after, []any{high}, func(r Row) error {
		var at int64
		var l Line
		var hash []byte
		if err := r.Scan(&at, &l.Actor, &l.Action, &l.Target, &l.Detail, &hash); err != nil {
			return err
		}
		if sum := l.hash(at); !bytes.Equal(sum[:], hash) {
			w.fault("an unsealed line of %s about %q was changed", time.UnixMilli(at).UTC().Format(time.RFC3339), l.Target)
		}
		return nil
	})
}

// retirement is the detail of an audit line about rows that went by a retention rule.
type retirement struct {
	Table     string `json:"table"`
	Rule      string `json:"rule"`
	Before    int64  `json:"before"`
	Rows      int64  `json:"rows"`
	Epoch     int64  `json:"epoch"`
	Positions string `json:"positions"`
}

const retireAction = "store.retire"

// retirements gives the positions of one epoch that went by rule, by table.
func retirements(tx *Tx, epoch int64) (map[string]spans, error) {
	positions := map[string][]spans{}
	err := tx.Each("SELECT detail FROM audit WHERE action = ?", []any{retireAction}, func(r Row) error {
		var detail string
		if err := r.Scan(&detail); err != nil {
			return err
		}
		var one retirement
		if err := json.Unmarshal([]byte(detail), &one); err != nil {
			return fmt.Errorf("a retention line: %w", err)
		}
		if one.Epoch != epoch {
			return nil
		}
		list, err := parseSpans(one.Positions)
		positions[one.Table] = append(positions[one.Table], list)
		return err
	})
	merged := map[string]spans{}
	for table, lists := range positions {
		merged[table] = join(lists)
	}
	return merged, err
}
