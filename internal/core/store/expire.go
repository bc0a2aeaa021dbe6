package store

import (
	"context"
	"encoding/json"
	"fmt"
)

// Expire removes the rows of a small table whose timeColumn (UTC milliseconds) lies before the given time, by their
// text key, in bounded steps, and gives their number. Each step leaves one audit line in its own transaction. It is for
// tables whose rows are not sealed, such as tokens; certificates go by Retire.
func (s *Store) Expire(ctx context.Context, table, keyColumn, timeColumn string, before int64, rule string) (rows int64, err error) {
	for _, name := range []string{table, keyColumn, timeColumn} {
		if !plainName.MatchString(name) {
			return 0, fmt.Errorf("expiring rows: %q is no plain name", name)
		}
	}
	for ctx.Err() == nil {
		var n int
		err := s.Write(ctx, func(tx *Tx) error {
			n, err = expireStep(tx, table, keyColumn, timeColumn, before, rule)
			return err
		})
		rows += int64(n)
		if err != nil || n == 0 {
			return rows, err
		}
	}
	return rows, context.Cause(ctx)
}

func expireStep(tx *Tx, table, keyColumn, timeColumn string, before int64, rule string) (int, error) {
	var keys []string
	query := fmt.Sprintf("SELECT %s FROM %s WHERE %s < ? LIMIT %d", keyColumn, table, timeColumn, retireRows)
	err := tx.Each(query, []any{before}, func(r Row) error {
		var key string
		err := r.Scan(&key)
		keys = append(keys, key)
		return err
	})
	if err != nil || len(keys) == 0 {
		return 0, err
	}
	for _, key := range keys {
		if _, err := tx.Exec(fmt.Sprintf("DELETE FROM %s WHERE %s = ?", table, keyColumn), key); err != nil {
			return 0, err
		}
	}
	detail, err := json.Marshal(map[string]any{"rule": rule, "rows": len(keys)})
	if err != nil {
		return 0, err
	}
	return len(keys), tx.Audit(Line{Action: "expire", Target: table, Detail: string(detail)})
}
