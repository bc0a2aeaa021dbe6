package sqlite

import (
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"chancery/internal/core/store/internal/engine"
)

// plan holds the statements of one hot table.
type plan struct {
	insert string
	guard  string // "" without one
	held   []int  // columns that the guard looks at
	finds  []string
	keys   [][]int
}

func (w *writer) plan(h *engine.Hot) *plan {
	p := w.plans[h]
	if p == nil {
		p = newPlan(h)
		w.plans[h] = p
	}
	return p
}

// newPlan builds the statements from checked identifiers; values only ever travel as arguments.
func newPlan(h *engine.Hot) *plan {
	p := &plan{}
	marks := make([]string, len(h.Columns))
	for i := range marks {
		marks[i] = fmt.Sprintf("?%d", i+1)
	}
	names := strings.Join(h.Names(), ", ")
	clear := "true"
	if h.Guard.Table != "" {
		held := make([]string, len(h.Guard.Of))
		for i, n := range h.Guard.Of {
			p.held = append(p.held, h.Index(n))
			held[i] = fmt.Sprintf("?%d", h.Index(n)+1)
		}
		from := fmt.Sprintf("FROM %s WHERE %s IN (", h.Guard.Table, h.Guard.Column)
		end := fmt.Sprintf(") AND %s <> ''", h.Guard.Column)
		clear = "NOT EXISTS (SELECT 1 " + from + strings.Join(held, ", ") + end + ")"
		p.guard = "SELECT " + h.Guard.Column + " " + from + strings.Repeat("?, ", len(held)-1) + "?" + end + " LIMIT 1"
	}
	p.insert = fmt.Sprintf("INSERT INTO %s (%s) SELECT %s WHERE %s ON CONFLICT DO NOTHING",
		h.Table, names, strings.Join(marks, ", "), clear)
	for _, key := range h.Keys {
		p.finds = append(p.finds, fmt.Sprintf("SELECT %s FROM %s WHERE %s = ?", names, h.Table, strings.Join(key, " = ? AND ")))
		p.keys = append(p.keys, indexes(h, key))
	}
	return p
}

func indexes(h *engine.Hot, names []string) []int {
	at := make([]int, len(names))
	for i, n := range names {
		at[i] = h.Index(n)
	}
	return at
}

// append stores one row and says what became of it: one statement when it is new.
func (w *writer) append(h *engine.Hot, row []any) (engine.Appended, error) {
	p := w.plan(h)
	n, err := w.session.Exec(p.insert, row)
	if err != nil || n > 0 {
		return engine.Appended{Outcome: engine.Inserted}, err
	}
	if p.guard != "" {
		because, err := w.guarded(p, row)
		if err != nil || because != "" {
			return engine.Appended{Outcome: engine.Refused, Because: because}, err
		}
	}
	for i, find := range p.finds {
		stored, err := w.find(h, find, pick(row, p.keys[i]))
		if err != nil || stored != nil {
			return engine.Appended{Outcome: engine.Exists, Stored: stored}, err
		}
	}
	return engine.Appended{}, fmt.Errorf("hot table %s: a row was neither stored nor found by a declared key", h.Table)
}

func pick(row []any, at []int) []any {
	values := make([]any, len(at))
	for i, c := range at {
		values[i] = row[c]
	}
	return values
}

func (w *writer) guarded(p *plan, row []any) (because string, err error) {
	rows, err := w.session.Query(p.guard, pick(row, p.held))
	if err != nil {
		return "", err
	}
	defer closeRows(rows, &err)
	if rows.Next() {
		return because, rows.Scan(&because)
	}
	return "", rows.Err()
}

func (w *writer) find(h *engine.Hot, query string, key []any) (stored []any, err error) {
	rows, err := w.session.Query(query, key)
	if err != nil {
		return nil, err
	}
	defer closeRows(rows, &err)
	if rows.Next() {
		return h.ScanRow(rows)
	}
	return nil, rows.Err()
}

func closeRows(rows *sql.Rows, err *error) { *err = errors.Join(*err, rows.Close()) }
