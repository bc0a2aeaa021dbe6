package mariadb

import (
	"chancery/internal/core/store/internal/engine"
)

// Tables is engine.Engine's.
func (e *Engine) Tables(s engine.Session) ([]engine.Table, error) { return tables(s) }

func tables(s engine.Session) ([]engine.Table, error) {
	return engine.TablesOf(s, `SELECT c.table_name, c.column_name, c.data_type FROM information_schema.columns c
		JOIN information_schema.tables t ON t.table_schema = c.table_schema AND t.table_name = c.table_name
		WHERE c.table_schema = DATABASE() AND t.table_type = 'BASE TABLE' ORDER BY c.table_name, c.ordinal_position`,
		"seq", "goose_")
}
