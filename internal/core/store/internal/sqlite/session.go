package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// statementsMax bounds the prepared statements of one session; the store's rooms have fewer distinct ones.
const statementsMax = 512

// session runs statements on one connection and keeps them prepared. ctx is the writer's, or a reader's own.
type session struct {
	ctx      context.Context
	conn     *sql.Conn
	prepared map[string]*sql.Stmt
	traced   func(statement string)
}

// newSession runs statements under no deadline, until its context is replaced.
func newSession(conn *sql.Conn, traced func(string)) *session {
	return &session{ctx: context.Background(), conn: conn, prepared: map[string]*sql.Stmt{}, traced: traced}
}

func (s *session) Exec(query string, args []any) (int64, error) {
	stmt, err := s.prepare(query)
	if err != nil {
		return 0, err
	}
	r, err := stmt.ExecContext(s.ctx, args...)
	if err != nil {
		return 0, err
	}
	return r.RowsAffected()
}

func (s *session) Query(query string, args []any) (*sql.Rows, error) {
	stmt, err := s.prepare(query)
	if err != nil {
		return nil, err
	}
	return stmt.QueryContext(s.ctx, args...)
}

func (s *session) InsertNew(query string, args []any) (bool, error) {
	n, err := s.Exec(query+" ON CONFLICT DO NOTHING", args)
	return n > 0, err
}

func (s *session) prepare(query string) (*sql.Stmt, error) {
	s.traced(query)
	if stmt := s.prepared[query]; stmt != nil {
		return stmt, nil
	}
	if len(s.prepared) >= statementsMax {
		if err := s.forget(); err != nil {
			return nil, err
		}
	}
	stmt, err := s.conn.PrepareContext(s.ctx, query)
	if err != nil {
		return nil, fmt.Errorf("preparing a statement: %w", err)
	}
	s.prepared[query] = stmt
	return stmt, nil
}

func (s *session) forget() error {
	var errs []error
	for _, stmt := range s.prepared {
		errs = append(errs, stmt.Close())
	}
	clear(s.prepared)
	return errors.Join(errs...)
}

func (s *session) Context() context.Context { return s.ctx }
