package engine

import "testing"

func TestNumbered(t *testing.T) {
	for in, want := range map[string]string{
		"SELECT 1":                              "SELECT 1",
		"a = ? AND b = ?":                       "a = $1 AND b = $2",
		"a = '?' AND b = ? AND \"c?\" = ?":      "a = '?' AND b = $1 AND \"c?\" = $2",
		"a = 'it''s ?' AND b = ?":               "a = 'it''s ?' AND b = $1",
		"INSERT INTO t (a, b) VALUES (?, 'ž?')": "INSERT INTO t (a, b) VALUES ($1, 'ž?')",
	} {
		if got := Numbered(in); got != want {
			t.Errorf("Numbered(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestHotIsChecked(t *testing.T) {
	good := Hot{Table: "t", Columns: []Column{{"a", Int}, {"b", Text}}, Keys: [][]string{{"a"}}, Guard: Guard{"g", "target", []string{"b"}}}
	if err := good.Check(); err != nil {
		t.Errorf("a good table: %v", err)
	}
	for name, change := range map[string]func(*Hot){
		"a table with a quote":  func(h *Hot) { h.Table = `t"; DROP TABLE x` },
		"a key of no column":    func(h *Hot) { h.Keys = [][]string{{"z"}} },
		"no key":                func(h *Hot) { h.Keys = nil },
		"a guard of no column":  func(h *Hot) { h.Guard.Of = []string{"z"} },
		"a guard with a space":  func(h *Hot) { h.Guard.Column = "a b" },
		"a column with capital": func(h *Hot) { h.Columns = []Column{{"A", Int}} },
	} {
		bad := good
		change(&bad)
		if bad.Check() == nil {
			t.Errorf("%s was taken", name)
		}
	}
	for name, row := range map[string][]any{
		"too short": {int64(1)}, "an int for an int64": {1, "b"}, "bytes for text": {int64(1), []byte("b")},
		"a huge row": {int64(1), string(make([]byte, RowMax+1))},
	} {
		if good.CheckRow(row) == nil {
			t.Errorf("%s was taken", name)
		}
	}
	if err := good.CheckRow([]any{nil, "b"}); err != nil {
		t.Errorf("NULL: %v", err)
	}
}
