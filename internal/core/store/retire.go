package store

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"

	"chancery/internal/core/store/internal/engine"
)

const (
	retireRows  = 500  // rows that one step removes
	retireSight = 2000 // rows that one step looks at
)

var plainName = regexp.MustCompile(`^[a-z_][a-z0-9_]{0,62}$`)

// A Lifetime names the columns (UTC milliseconds) that say when a row was born and when it ends.
type Lifetime struct{ Born, Ends string }

// Retire removes the rows of a table that ended before the given time, in bounded steps, and gives their number. Each
// step leaves an audit line in its own transaction that says which rows went by which rule; seals stay. The latest row
// stays too, since SQLite would give its position to the next. It may be interrupted and called again. The table has
// the store's position column.
//
// It looks for them on a reader, in the order of positions, which is roughly that of birth, and stops at rows that were
// born when the others had to be over: a table of short lives is never read beyond what goes.
func (s *Store) Retire(ctx context.Context, table string, life Lifetime, before int64, rule string) (rows int64, err error) {
	for _, name := range []string{table, life.Born, life.Ends} {
		if !plainName.MatchString(name) {
			return 0, fmt.Errorf("retiring rows: %q is no plain name", name)
		}
	}
	what := retirement{Table: table, Rule: rule, Before: before}
	for low := int64(0); ctx.Err() == nil; { // positions begin at 1
		seen, err := s.look(ctx, table, life, before, low)
		if err != nil {
			return rows, err
		}
		n, err := s.retireAll(ctx, what, life, seen.ended)
		rows += n
		if err != nil || seen.over {
			return rows, err
		}
		low = seen.next(low)
	}
	return rows, context.Cause(ctx)
}

// A sight is what one step has looked at.
type sight struct {
	ended []int64 // positions of rows that go
	high  int64   // the last position
	over  bool    // nothing further on can have ended
}

// next gives where to look on. Rows of one transaction share a position on PostgreSQL, so the last one is looked at
// again, unless there was nothing else.
func (s sight) next(low int64) int64 {
	return max(s.high-1, low+1)
}

// look finds the rows that have ended among the next ones after a position.
func (s *Store) look(ctx context.Context, table string, life Lifetime, before, low int64) (seen sight, err error) {
	p := s.engine.Positions()
	query := fmt.Sprintf("SELECT %s, %s, %s FROM %s WHERE %s ORDER BY %s LIMIT %d", p.Select, life.Born, life.Ends, table, p.After, p.Column, retireSight)
	err = s.Read(ctx, func(tx *Tx) error {
		seen = sight{over: true}
		last, found, err := lastPosition(tx, p, table)
		if err != nil || !found {
			return err
		}
		rows, young := 0, 0
		err = tx.Each(query, []any{low}, func(r Row) error {
			var position, born, ends int64
			if err := r.Scan(&position, &born, &ends); err != nil {
				return err
			}
			rows, seen.high = rows+1, position
			if born >= before {
				young++
			}
			if ends < before && position < last {
				seen.ended = append(seen.ended, position)
			}
			return nil
		})
		seen.over = rows < retireSight || young == rows
		return err
	})
	return seen, err
}

func lastPosition(tx *Tx, p engine.Positions, table string) (last int64, found bool, err error) {
	found, err = tx.One([]any{&last}, fmt.Sprintf("SELECT %s FROM %s ORDER BY %s DESC LIMIT 1", p.Select, table, p.Column))
	return last, found, err
}

// retireAll removes rows by their positions, some at a time.
func (s *Store) retireAll(ctx context.Context, what retirement, life Lifetime, positions []int64) (rows int64, err error) {
	for len(positions) > 0 {
		some := positions[:min(retireRows, len(positions))]
		positions = positions[len(some):]
		var n int64
		err := s.Write(ctx, func(tx *Tx) error {
			n, err = s.retireStep(tx, what, life, some)
			return err
		})
		rows += n
		if err != nil {
			return rows, err
		}
	}
	return rows, nil
}

func (s *Store) retireStep(tx *Tx, what retirement, life Lifetime, positions []int64) (_ int64, err error) {
	if what.Epoch, err = epoch(tx); err != nil {
		return 0, err
	}
	p := s.engine.Positions()
	gone := spansOf(positions)
	for _, one := range gone {
		query := fmt.Sprintf("DELETE FROM %s WHERE %s AND %s AND %s < ?", what.Table, p.After, p.UpTo, life.Ends)
		n, err := tx.Exec(query, one.first-1, one.last, what.Before)
		if err != nil {
			return 0, err
		}
		what.Rows += n
	}
	if what.Rows == 0 {
		return 0, nil
	}
	what.Positions = gone.String()
	detail, err := json.Marshal(what)
	if err != nil {
		return 0, err
	}
	return what.Rows, tx.Audit(Line{Actor: "store", Action: retireAction, Target: what.Table, Detail: string(detail)})
}
