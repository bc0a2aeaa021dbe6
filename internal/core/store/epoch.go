package store

import "strconv"

// epoch says how often the store was restored: positions and numbers of the feed mean something within one epoch only.
func epoch(tx *Tx) (n int64, err error) {
	var text string
	found, err := tx.One([]any{&text}, "SELECT value FROM fact WHERE name = ?", "epoch")
	if err != nil || !found {
		return 0, err
	}
	return strconv.ParseInt(text, 10, 64)
}

// setFact writes a named fact of the store.
func setFact(tx *Tx, name, value string) error {
	n, err := tx.Exec("UPDATE fact SET value = ? WHERE name = ?", value, name)
	if err != nil || n > 0 {
		return err
	}
	_, err = tx.InsertNew("INSERT INTO fact (name, value) VALUES (?, ?)", name, value)
	return err
}
