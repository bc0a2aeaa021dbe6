package store

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
)

// retireRows is how many rows one step removes.
const retireRows = 500

var plainName = regexp.MustCompile(`^[a-z_][a-z0-9_]{0,62}$`)

// Retire removes the rows of a table whose timeColumn (UTC milliseconds) lies before the given time, in bounded steps,
// and gives their number. Each step leaves an audit line in its own transaction that says which rows went by which
// rule; seals stay. The latest row stays too, since SQLite would give its position to the next. It may be interrupted and
// called again. The table has the store's position column.
func (s *Store) Retire(ctx context.Context, table, timeColumn string, before int64, rule string) (rows int64, err error) {
	if !plainName.MatchString(table) || !plainName.MatchString(timeColumn) {
		return 0, fmt.Errorf("retiring rows: %q.%q is no plain name", table, timeColumn)
	}
	for ctx.Err() == nil {
		var n int64
		err := s.Write(ctx, func(tx *Tx) error {
			n, err = s.retireStep(tx, retirement{Table: table, Rule: rule, Before: before}, timeColumn)
			return err
		})
		rows += n
		if err != nil || n == 0 {
			return rows, err
		}
	}
	return rows, context.Cause(ctx)
}

func (s *Store) retireStep(tx *Tx, what retirement, timeColumn string) (int64, error) {
	p := s.engine.Positions()
	var last int64
	latest := fmt.Sprintf("SELECT %s FROM %s ORDER BY %s DESC LIMIT 1", p.Select, what.Table, p.Column)
	if found, err := tx.One([]any{&last}, latest); err != nil || !found {
		return 0, err
	}
	var positions []int64
	query := fmt.Sprintf("SELECT %s FROM %s WHERE %s < ? ORDER BY %s LIMIT %d", p.Select, what.Table, timeColumn, p.Column, retireRows)
	err := tx.Each(query, []any{what.Before}, func(r Row) error {
		var n int64
		err := r.Scan(&n)
		if n < last {
			positions = append(positions, n)
		}
		return err
	})
	if err != nil || len(positions) == 0 {
		return 0, err
	}
	if what.Epoch, err = epoch(tx); err != nil {
		return 0, err
	}
	gone := spansOf(positions)
	for _, one := range gone {
		query := fmt.Sprintf("DELETE FROM %s WHERE %s AND %s AND %s < ?", what.Table, p.After, p.UpTo, timeColumn)
		n, err := tx.Exec(query, one.first-1, one.last, what.Before)
		if err != nil {
			return 0, err
		}
		what.Rows += n
	}
	what.Positions = gone.String()
	detail, err := json.Marshal(what)
	if err != nil {
		return 0, err
	}
	return what.Rows, tx.Audit(Line{Actor: "store", Action: retireAction, Target: what.Table, Detail: string(detail)})
}
