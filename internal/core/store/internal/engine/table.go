package engine

import (
	"errors"
	"fmt"
	"strings"
)

// TablesOf reads a catalogue: query gives table, column and declared type of each column, in order. Columns named
// position are the engine's own and left out, and so are tables that names a prefix in skip.
func TablesOf(s Session, query, position string, skip ...string) (tables []Table, err error) {
	rows, err := s.Query(query, nil)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var table, column, declared string
		if err := rows.Scan(&table, &column, &declared); err != nil {
			return nil, err
		}
		if skipped(table, skip) {
			continue
		}
		if len(tables) == 0 || tables[len(tables)-1].Name != table {
			tables = append(tables, Table{Name: table})
		}
		t := &tables[len(tables)-1]
		if column == position {
			t.Ordered = true
		}
		if column == "seq" || column == "xact" {
			continue
		}
		kind, err := kindOf(declared)
		if err != nil {
			return nil, fmt.Errorf("column %s.%s: %w", table, column, err)
		}
		t.Columns = append(t.Columns, Column{Name: column, Kind: kind})
	}
	return tables, rows.Err()
}

func skipped(table string, prefixes []string) bool {
	for _, p := range prefixes {
		if strings.HasPrefix(table, p) {
			return true
		}
	}
	return false
}

// kindOf reads a declared type; the rooms use integers, text and bytes under each database's names for them.
func kindOf(declared string) (Kind, error) {
	d := strings.ToUpper(declared)
	for _, k := range []struct {
		kind  Kind
		words []string
	}{
		{Bytes, []string{"BLOB", "BYTEA", "BINARY"}},
		{Text, []string{"CHAR", "TEXT"}},
		{Int, []string{"INT"}},
	} {
		for _, w := range k.words {
			if strings.Contains(d, w) {
				return k.kind, nil
			}
		}
	}
	return 0, fmt.Errorf("the type %q is none of the store's", declared)
}
