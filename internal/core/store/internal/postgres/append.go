package postgres

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"chancery/internal/core/store/internal/engine"
	"chancery/internal/core/store/internal/pool"
)

// idleMax is how long a connection may idle before it is looked at: a write into one that the server has closed would
// leave the outcome unknown.
const idleMax = 100 * time.Millisecond

// flusher appends batches on a connection of its own.
type flusher struct {
	config *pgx.ConnConfig
	conn   *pgx.Conn
	used   time.Time
	traced func(statement string)
	plans  map[*engine.Hot]*plan
}

// plan holds the statements of one hot table.
type plan struct {
	insert string
	finds  []find // the guard first
}

// find looks one row's values up.
type find struct {
	query string
	args  []int // columns of the row
	guard bool
}

func newPlan(h *engine.Hot) *plan {
	names := strings.Join(h.Names(), ", ")
	arrays := make([]string, len(h.Columns))
	for i, c := range h.Columns {
		arrays[i] = fmt.Sprintf("$%d::%s[]", i+1, [...]string{engine.Int: "bigint", engine.Text: "text", engine.Bytes: "bytea"}[c.Kind])
	}
	p := &plan{}
	clear := ""
	if g := h.Guard; g.Table != "" {
		held, marks := make([]string, len(g.Of)), make([]string, len(g.Of))
		at := make([]int, len(g.Of))
		for i, n := range g.Of {
			held[i], marks[i], at[i] = "r."+n, fmt.Sprintf("$%d", i+1), h.Index(n)
		}
		const holds = "SELECT g.%s FROM %s g WHERE g.%[1]s = ANY (ARRAY[%[3]s]) AND g.%[1]s <> ''"
		clear = " WHERE NOT EXISTS (" + fmt.Sprintf(holds, g.Column, g.Table, strings.Join(held, ", ")) + ")"
		p.finds = append(p.finds, find{fmt.Sprintf(holds, g.Column, g.Table, strings.Join(marks, ", ")) + " LIMIT 1", at, true})
	}
	p.insert = fmt.Sprintf("INSERT INTO %s (%s) SELECT %[2]s FROM unnest(%[3]s) AS r(%[2]s)%[4]s ON CONFLICT DO NOTHING RETURNING %[5]s",
		h.Table, names, strings.Join(arrays, ", "), clear, strings.Join(h.Keys[0], ", "))
	for _, key := range h.Keys {
		conditions, at := make([]string, len(key)), make([]int, len(key))
		for i, n := range key {
			conditions[i], at[i] = fmt.Sprintf("%s = $%d", n, i+1), h.Index(n)
		}
		p.finds = append(p.finds, find{query: fmt.Sprintf("SELECT %s FROM %s WHERE %s", names, h.Table, strings.Join(conditions, " AND ")), args: at})
	}
	return p
}

// Flush is pool.Flusher's.
func (f *flusher) Flush(ctx context.Context, h *engine.Hot, rows []*pool.Entry) error {
	if err := f.connect(ctx); err != nil {
		return engine.Unreachable.Because(err)
	}
	p := f.plans[h]
	if p == nil {
		p = newPlan(h)
		f.plans[h] = p
	}
	missing, err := f.insert(ctx, p, h, rows)
	if err != nil {
		return outcome(err)
	}
	f.used = time.Now()
	if len(missing) == 0 {
		return nil
	}
	return f.lookUp(ctx, p, h, missing)
}

// outcome tells an insert that surely did not happen from one that nobody knows about: it commits by itself.
func outcome(err error) error {
	if undone(err) || judge(err) == pool.Undone {
		return err
	}
	return engine.Unknown.Because(err)
}

func (f *flusher) connect(ctx context.Context) error {
	if f.conn != nil && !f.conn.IsClosed() {
		if time.Since(f.used) < idleMax || f.conn.Ping(ctx) == nil {
			return nil
		}
	}
	f.Close()
	ctx, cancel := context.WithTimeout(ctx, dialTime)
	defer cancel()
	conn, err := pgx.ConnectConfig(ctx, f.config)
	if err != nil {
		return err
	}
	f.conn, f.used, f.plans = conn, time.Now(), map[*engine.Hot]*plan{}
	return nil
}

// Close closes the connection without waiting long for the server.
func (f *flusher) Close() {
	if f.conn == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 500*time.Millisecond)
	defer cancel()
	_ = f.conn.Close(ctx) // it is given up either way
	f.conn = nil
}

// insert appends rows in one statement and gives those that did not go in.
func (f *flusher) insert(ctx context.Context, p *plan, h *engine.Hot, rows []*pool.Entry) (missing []*pool.Entry, err error) {
	f.traced(p.insert)
	result, err := f.conn.Query(ctx, p.insert, columns(h, rows)...)
	if err != nil {
		return nil, err
	}
	defer result.Close()
	key := h.Keys[0]
	written := make(map[string]bool, len(rows))
	values, dest := make([]any, len(key)), make([]any, len(key))
	for i := range dest {
		dest[i] = &values[i]
	}
	for result.Next() {
		if err := result.Scan(dest...); err != nil {
			return nil, err
		}
		written[fmt.Sprint(values...)] = true
	}
	if err := result.Err(); err != nil {
		return nil, err
	}
	for _, r := range rows {
		for i, n := range key {
			values[i] = r.Row[h.Index(n)]
		}
		if written[fmt.Sprint(values...)] {
			r.Result = engine.Appended{Outcome: engine.Inserted}
		} else {
			missing = append(missing, r)
		}
	}
	return missing, nil
}

// columns turns rows into one array for each column.
func columns(h *engine.Hot, rows []*pool.Entry) []any {
	arrays := make([]any, len(h.Columns))
	for i, c := range h.Columns {
		switch c.Kind {
		case engine.Int:
			arrays[i] = column[int64](rows, i)
		case engine.Text:
			arrays[i] = column[string](rows, i)
		case engine.Bytes:
			values := make([][]byte, len(rows))
			for n, r := range rows {
				values[n], _ = r.Row[i].([]byte) // nil is NULL
			}
			arrays[i] = values
		}
	}
	return arrays
}

func column[T any](rows []*pool.Entry, i int) []*T {
	values := make([]*T, len(rows))
	for n, r := range rows {
		if v, ok := r.Row[i].(T); ok {
			values[n] = &v
		}
	}
	return values
}

// lookUp says why rows did not go in, in one round trip.
func (f *flusher) lookUp(ctx context.Context, p *plan, h *engine.Hot, missing []*pool.Entry) error {
	batch := &pgx.Batch{}
	for _, r := range missing {
		r.Again = true // until something is found that stood in its way
		for _, find := range p.finds {
			args := make([]any, len(find.args))
			for i, at := range find.args {
				args[i] = r.Row[at]
			}
			batch.Queue(find.query, args...).Query(func(rows pgx.Rows) error { return f.found(rows, find, h, r) })
		}
	}
	return f.conn.SendBatch(ctx, batch).Close()
}

// found takes the first answer that explains why r did not go in.
func (f *flusher) found(rows pgx.Rows, by find, h *engine.Hot, r *pool.Entry) error {
	defer rows.Close()
	if !rows.Next() || !r.Again {
		return rows.Err()
	}
	r.Again = false
	if by.guard {
		r.Result = engine.Appended{Outcome: engine.Refused}
		return rows.Scan(&r.Result.Because)
	}
	stored, err := h.ScanRow(rows)
	r.Result = engine.Appended{Outcome: engine.Exists, Stored: stored}
	return err
}
