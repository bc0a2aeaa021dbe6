package store

import "context"

// An AuditLine is a line as it is stored. Seq grows with time; At is in milliseconds.
type AuditLine struct {
	Seq, At int64
	Line
}

// An AuditQuery asks for lines after a position. Target and Actor narrow it where they are not empty.
type AuditQuery struct {
	After         int64 // Seq of the last line that is known; 0 for the beginning
	Target, Actor string
	Limit         int
}

// AuditLines gives lines of the audit, the oldest first.
func (s *Store) AuditLines(ctx context.Context, q AuditQuery) (lines []AuditLine, err error) {
	query, args := "SELECT seq, at, actor, action, target, detail FROM audit WHERE seq > ?", []any{q.After}
	if q.Target != "" {
		query, args = query+" AND target = ?", append(args, q.Target)
	}
	if q.Actor != "" {
		query, args = query+" AND actor = ?", append(args, q.Actor)
	}
	err = s.Read(ctx, func(tx *Tx) error {
		lines = nil
		return tx.Each(query+" ORDER BY seq LIMIT ?", append(args, q.Limit), func(row Row) error {
			var l AuditLine
			err := row.Scan(&l.Seq, &l.At, &l.Actor, &l.Action, &l.Target, &l.Detail)
			lines = append(lines, l)
			return err
		})
	})
	return lines, err
}
