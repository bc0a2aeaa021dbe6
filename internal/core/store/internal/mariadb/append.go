package mariadb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"chancery/internal/core/store/internal/engine"
	"chancery/internal/core/store/internal/pool"
)

// chunkMax is the longest multi-row insert; longer batches take several in one transaction. Lengths are powers of two,
// so that a connection keeps few prepared statements.
const chunkMax = 256

// flusher appends batches on one connection.
type flusher struct {
	db      *sql.DB
	conn    *sql.Conn
	inserts map[shape]*sql.Stmt
	traced  func(statement string)
}

// shape is a table and a number of rows.
type shape struct {
	hot  *engine.Hot
	rows int
}

// Flush is pool.Flusher's.
func (f *flusher) Flush(ctx context.Context, h *engine.Hot, rows []*pool.Entry) error {
	err := f.flush(ctx, h, rows)
	if err != nil && judge(err) == pool.Lost || errors.Is(err, engine.Unknown) {
		f.Close()
	}
	return err
}

func (f *flusher) flush(ctx context.Context, h *engine.Hot, rows []*pool.Entry) error {
	if err := f.connect(ctx); err != nil {
		return err
	}
	free, err := f.guard(ctx, h, rows)
	if err != nil || len(free) == 0 {
		return err
	}
	err = f.insert(ctx, h, free)
	if number(err) == duplicate {
		return f.lookUp(ctx, h, free)
	}
	return err
}

func (f *flusher) connect(ctx context.Context) error {
	if f.conn != nil && f.conn.PingContext(ctx) == nil {
		return nil
	}
	f.Close()
	ctx, cancel := context.WithTimeout(ctx, dialTime)
	defer cancel()
	conn, err := f.db.Conn(ctx)
	if err != nil {
		return engine.Unreachable.Because(err)
	}
	f.conn, f.inserts = conn, map[shape]*sql.Stmt{}
	return nil
}

// Close gives the connection up.
func (f *flusher) Close() {
	if f.conn == nil {
		return
	}
	for _, stmt := range f.inserts {
		_ = stmt.Close() // ends with its connection at the latest
	}
	_ = f.conn.Raw(func(any) error { return errGivenUp }) // not back into the pool
	_ = f.conn.Close()
	f.conn = nil
}

var errGivenUp = errors.New("given up")

// guard settles the rows that the guard refuses and gives the others.
func (f *flusher) guard(ctx context.Context, h *engine.Hot, rows []*pool.Entry) (free []*pool.Entry, err error) {
	g := h.Guard
	if g.Table == "" {
		return rows, nil
	}
	asked := map[string]bool{}
	var values []any
	for _, r := range rows {
		for _, n := range g.Of {
			if v, _ := r.Row[h.Index(n)].(string); v != "" && !asked[v] {
				asked[v] = true
				values = append(values, v)
			}
		}
	}
	held, err := f.held(ctx, g, values)
	if err != nil {
		return nil, err
	}
	for _, r := range rows {
		r.Result = engine.Appended{}
		for _, n := range g.Of {
			if v, _ := r.Row[h.Index(n)].(string); held[v] && r.Result.Because == "" {
				r.Result = engine.Appended{Outcome: engine.Refused, Because: v}
			}
		}
		if r.Result.Because == "" {
			free = append(free, r)
		}
	}
	return free, nil
}

func (f *flusher) held(ctx context.Context, g engine.Guard, values []any) (held map[string]bool, err error) {
	held = map[string]bool{}
	if len(values) == 0 {
		return held, nil
	}
	query := fmt.Sprintf("SELECT %s FROM %s WHERE %[1]s IN (%[3]s)", g.Column, g.Table, marks(len(values)))
	rows, err := f.conn.QueryContext(ctx, query, values...)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var v string
		if err := rows.Scan(&v); err != nil {
			return nil, err
		}
		held[v] = true
	}
	return held, rows.Err()
}

func marks(n int) string { return strings.Repeat("?, ", n-1) + "?" }

// insert appends rows in one transaction.
func (f *flusher) insert(ctx context.Context, h *engine.Hot, rows []*pool.Entry) error {
	if _, err := f.conn.ExecContext(ctx, "START TRANSACTION"); err != nil {
		return err
	}
	for rest := rows; len(rest) > 0; {
		n := chunkMax
		for n > len(rest) {
			n /= 2
		}
		if err := f.chunk(ctx, h, rest[:n]); err != nil {
			_, undo := f.conn.ExecContext(ctx, "ROLLBACK")
			return errors.Join(err, undo)
		}
		rest = rest[n:]
	}
	if _, err := f.conn.ExecContext(ctx, "COMMIT"); err != nil {
		if judge(err) == pool.Lost {
			return engine.Unknown.Because(err)
		}
		return err
	}
	for _, r := range rows {
		r.Result = engine.Appended{Outcome: engine.Inserted}
	}
	return nil
}

func (f *flusher) chunk(ctx context.Context, h *engine.Hot, rows []*pool.Entry) error {
	stmt := f.inserts[shape{h, len(rows)}]
	if stmt == nil {
		one := "(" + marks(len(h.Columns)) + ")"
		query := fmt.Sprintf("INSERT INTO %s (%s) VALUES %s%s", h.Table, strings.Join(h.Names(), ", "),
			strings.Repeat(one+", ", len(rows)-1), one)
		var err error
		if stmt, err = f.conn.PrepareContext(ctx, query); err != nil {
			return err
		}
		f.inserts[shape{h, len(rows)}] = stmt
	}
	f.traced("INSERT INTO " + h.Table)
	args := make([]any, 0, len(rows)*len(h.Columns))
	for _, r := range rows {
		args = append(args, r.Row...)
	}
	_, err := stmt.ExecContext(ctx, args...)
	return err
}

// lookUp finds the rows that stand in the way of a batch, by one query a key; the rows without a rival come again.
func (f *flusher) lookUp(ctx context.Context, h *engine.Hot, rows []*pool.Entry) error {
	for _, r := range rows {
		r.Again = true
	}
	for _, key := range h.Keys {
		rivals, err := f.stored(ctx, h, key, rows)
		if err != nil {
			return err
		}
		for _, r := range rows {
			if rival := rivals[keyText(h, key, r.Row)]; r.Again && rival != nil {
				r.Again, r.Result = false, engine.Appended{Outcome: engine.Exists, Stored: rival}
			}
		}
	}
	return nil
}

// stored gives the stored rows that share the key with one of rows.
func (f *flusher) stored(ctx context.Context, h *engine.Hot, key []string, rows []*pool.Entry) (found map[string][]any, err error) {
	var values []any
	n := 0
	for _, r := range rows {
		if keyText(h, key, r.Row) == "" {
			continue
		}
		n++
		for _, name := range key {
			values = append(values, r.Row[h.Index(name)])
		}
	}
	if n == 0 {
		return nil, nil
	}
	one := "(" + marks(len(key)) + ")"
	query := fmt.Sprintf("SELECT %s FROM %s WHERE (%s) IN (%s%s)", strings.Join(h.Names(), ", "), h.Table,
		strings.Join(key, ", "), strings.Repeat(one+", ", n-1), one)
	result, err := f.conn.QueryContext(ctx, query, values...)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, result.Close()) }()
	found = map[string][]any{}
	for result.Next() {
		row, err := h.ScanRow(result)
		if err != nil {
			return nil, err
		}
		found[keyText(h, key, row)] = row
	}
	return found, result.Err()
}

// keyText gives a row's key as a map key, or "" where a part of it is NULL.
func keyText(h *engine.Hot, key []string, row []any) string {
	text := ""
	for _, name := range key {
		v := row[h.Index(name)]
		if v == nil {
			return ""
		}
		text += fmt.Sprintf("%d:%v,", len(fmt.Sprint(v)), v)
	}
	return text
}
