package engine

import (
	"fmt"
	"regexp"
	"slices"

	"chancery/internal/base/fault"
)

// Kind is the kind of a column of a hot table.
type Kind uint8

// The kinds of columns and the Go types of their values; nil stands for NULL in each.
const (
	Int   Kind = iota // int64
	Text              // string
	Bytes             // []byte
)

// A Column is a column of a hot table.
type Column struct {
	Name string
	Kind Kind
}

// A Guard refuses a row while Table.Column holds the value of one of the row's columns named in Of. Empty values
// guard nothing. The zero Guard refuses nothing.
type Guard struct {
	Table, Column string
	Of            []string // text columns of the hot table
}

// Hot describes a table that takes appended rows at the full rate of the database. It is made once and not changed;
// its address is its identity.
type Hot struct {
	Table   string
	Columns []Column
	Keys    [][]string // the table's unique keys; the first has no NULL; looked up in this order when a row exists already
	Guard   Guard
}

// Outcome is what became of an appended row.
type Outcome uint8

// The outcomes of an append.
const (
	Inserted Outcome = iota // the row is stored
	Exists                  // a row with one of its keys was stored before
	Refused                 // the guard holds one of its values
)

// Appended is the answer to one appended row.
type Appended struct {
	Outcome Outcome
	Stored  []any  // with Exists: the stored row, in the column order of its Hot
	Because string // with Refused: the value that the guard holds
}

var identifier = regexp.MustCompile(`^[a-z_][a-z0-9_]{0,62}$`)

// Check refuses a description whose names are not plain identifiers or do not fit together, so that statements can be
// built from it without quoting.
func (h *Hot) Check() error {
	names := []string{h.Table}
	for _, c := range h.Columns {
		names = append(names, c.Name)
	}
	if h.Guard.Table != "" {
		names = append(names, h.Guard.Table, h.Guard.Column)
	}
	for _, n := range names {
		if !identifier.MatchString(n) {
			return fmt.Errorf("hot table %q: %q is no plain identifier", h.Table, n)
		}
	}
	if len(h.Columns) == 0 || len(h.Keys) == 0 {
		return fmt.Errorf("hot table %q: needs columns and a unique key", h.Table)
	}
	for _, n := range slices.Concat(slices.Concat(h.Keys...), h.Guard.Of) {
		if h.Index(n) < 0 {
			return fmt.Errorf("hot table %q: no column %q", h.Table, n)
		}
	}
	return nil
}

// Index gives the position of the named column, or -1.
func (h *Hot) Index(name string) int {
	return slices.IndexFunc(h.Columns, func(c Column) bool { return c.Name == name })
}

// Names gives the column names in order.
func (h *Hot) Names() []string {
	names := make([]string, len(h.Columns))
	for i, c := range h.Columns {
		names[i] = c.Name
	}
	return names
}

// CheckRow refuses a row whose length or kinds differ from the columns of h.
func (h *Hot) CheckRow(row []any) error {
	if len(row) != len(h.Columns) {
		return fmt.Errorf("hot table %q: %d values for %d columns", h.Table, len(row), len(h.Columns))
	}
	for i, v := range row {
		ok := v == nil
		switch v.(type) {
		case int64:
			ok = h.Columns[i].Kind == Int
		case string:
			ok = h.Columns[i].Kind == Text
		case []byte:
			ok = h.Columns[i].Kind == Bytes
		}
		if !ok {
			return fmt.Errorf("hot table %q: column %q does not take a %T", h.Table, h.Columns[i].Name, v)
		}
	}
	if Size(row) > RowMax {
		return fault.New(fault.TooLarge, "row_too_large", "The record is larger than %d bytes.", RowMax)
	}
	return nil
}

// RowMax bounds the bytes of one row, and BatchBytes those of the rows that share a transaction.
const (
	RowMax     = 1 << 20
	BatchBytes = 8 << 20
)

// Size gives the bytes of a row.
func Size(row []any) (n int) {
	for _, v := range row {
		switch v := v.(type) {
		case string:
			n += len(v)
		case []byte:
			n += len(v)
		default:
			n += 8
		}
	}
	return n
}

// Scanner is what one row of a result offers.
type Scanner interface{ Scan(dest ...any) error }

// ScanRow reads a row of all columns of h in order, as values of the columns' kinds.
func (h *Hot) ScanRow(s Scanner) ([]any, error) { return ScanKinds(s, h.Columns) }

// ScanKinds reads a row of the given columns as int64, string or []byte, with nil for NULL.
func ScanKinds(s Scanner, columns []Column) ([]any, error) {
	row, dest := make([]any, len(columns)), make([]any, len(columns))
	for i := range row {
		dest[i] = &row[i]
	}
	if err := s.Scan(dest...); err != nil {
		return nil, err
	}
	for i, c := range columns {
		v, err := asKind(row[i], c.Kind)
		if err != nil {
			return nil, fmt.Errorf("column %s: %w", c.Name, err)
		}
		row[i] = v
	}
	return row, nil
}

// asKind evens out what drivers return, text as string or bytes. Scan into an any has copied it already.
func asKind(v any, k Kind) (any, error) {
	switch v := v.(type) {
	case nil:
		return nil, nil
	case int64:
		if k == Int {
			return v, nil
		}
	case string:
		switch k {
		case Text:
			return v, nil
		case Bytes:
			return []byte(v), nil
		}
	case []byte:
		switch k {
		case Text:
			return string(v), nil
		case Bytes:
			return v, nil
		}
	}
	return nil, fmt.Errorf("a %T where kind %d was declared", v, k)
}
