package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"
	"unicode/utf8"

	"chancery/internal/base/fault"
	"chancery/internal/core/store/internal/engine"
)

const (
	txBytesMax = 1 << 20 // arguments of one transaction
	txLong     = 20 * time.Millisecond
)

// A Tx is one run of a transaction. It belongs to the goroutine and the call that it was given to. Statements use the
// common subset of the three databases with question marks as placeholders; arguments are integers, strings, []byte
// and nil, and nothing else; a string that is not UTF-8 or holds a zero byte is Invalid, code text_invalid. Any error of
// a method spoils the Tx: the later methods return it again, and so does Write.
type Tx struct {
	ctx      context.Context
	session  engine.Session
	log      func(msg string, args ...any)
	now      int64
	origin   string
	bytes    int
	changes  []Change
	visiting bool
	readOnly bool
	err      error
}

// Row is one row of a result.
type Row interface{ Scan(dest ...any) error }

func (s *Store) tx(ctx context.Context, session engine.Session) *Tx {
	return &Tx{ctx: ctx, session: session, log: s.config.Log.Warn, now: s.now(), origin: s.instance}
}

// run gives fn's own error marked as such, or the error that spoiled the Tx, whatever fn made of it. A panic of fn
// becomes an error, since it would otherwise end the writer of everybody.
func (tx *Tx) run(fn func(*Tx) error) (err error) {
	start := time.Now()
	defer func() {
		if p := recover(); p != nil {
			err = engine.Own{Err: fmt.Errorf("a transaction panicked: %v", p)}
		}
		if took := time.Since(start); took > txLong && !tx.readOnly {
			tx.log("a transaction held the writer for long", "took", took)
		}
	}()
	err = fn(tx)
	switch {
	case tx.err == nil && err != nil:
		return engine.Own{Err: err}
	case tx.err == nil || errors.Is(err, tx.err):
		return err
	case err == nil:
		return tx.err
	}
	return fmt.Errorf("%w (%w)", err, tx.err)
}

// Now gives the time of this run in UTC milliseconds; it is the same value all through the run.
func (tx *Tx) Now() int64 { return tx.now }

// Context gives the caller's context with a mark by which Write refuses to be called inside a transaction.
func (tx *Tx) Context() context.Context { return context.WithValue(tx.ctx, insideKey{}, true) }

// Exec runs a statement and says how many rows it changed.
func (tx *Tx) Exec(query string, args ...any) (affected int64, err error) {
	values, err := tx.write(args)
	if err != nil {
		return 0, err
	}
	affected, err = tx.session.Exec(query, values)
	return affected, tx.spoil(err)
}

// InsertNew runs "INSERT INTO t (…) VALUES (…)" and reports false, without an error, when a unique key is taken.
func (tx *Tx) InsertNew(query string, args ...any) (inserted bool, err error) {
	values, err := tx.write(args)
	if err != nil {
		return false, err
	}
	inserted, err = tx.session.InsertNew(query, values)
	return inserted, tx.spoil(err)
}

// One reads the first row of a query into dest and reports whether there was one.
func (tx *Tx) One(dest []any, query string, args ...any) (found bool, err error) {
	rows, err := tx.query(query, args)
	if err != nil {
		return false, err
	}
	defer func() { err = tx.spoil(errors.Join(err, rows.Close())) }()
	if !rows.Next() {
		return false, rows.Err()
	}
	return true, rows.Scan(dest...)
}

// Each calls visit for each row of a query, in order. visit keeps nothing of the Row and calls no method of the Tx.
// An error of visit ends the walk and is returned, but does not spoil the Tx.
func (tx *Tx) Each(query string, args []any, visit func(Row) error) (err error) {
	rows, err := tx.query(query, args)
	if err != nil {
		return err
	}
	tx.visiting = true
	defer func() {
		tx.visiting = false
		if closing := tx.spoil(rows.Close()); err == nil {
			err = closing
		}
	}()
	for rows.Next() {
		if err := visit(scanned{rows}); err != nil {
			return err
		}
	}
	return tx.spoil(rows.Err())
}

// scanned hides from visitors all of a result but its current row.
type scanned struct{ rows *sql.Rows }

func (r scanned) Scan(dest ...any) error { return r.rows.Scan(dest...) }

func (tx *Tx) query(query string, args []any) (*sql.Rows, error) {
	values, err := tx.arguments(args)
	if err != nil {
		return nil, err
	}
	rows, err := tx.session.Query(query, values)
	return rows, tx.spoil(err)
}

func (tx *Tx) write(args []any) ([]any, error) {
	if tx.readOnly {
		return nil, tx.spoil(errors.New("a change inside Read"))
	}
	return tx.arguments(args)
}

// arguments evens out args and counts them against the bound of a transaction.
func (tx *Tx) arguments(args []any) ([]any, error) {
	if tx.err != nil {
		return nil, tx.err
	}
	if tx.visiting {
		return nil, tx.spoil(errors.New("a statement inside Each"))
	}
	values := make([]any, len(args))
	for i, a := range args {
		v, size, err := plain(a)
		if err != nil {
			return nil, tx.spoil(fmt.Errorf("argument %d: %w", i+1, err))
		}
		values[i] = v
		tx.bytes += size
	}
	if tx.bytes > txBytesMax && !tx.readOnly {
		return nil, tx.spoil(fault.New(fault.TooLarge, "change_too_large",
			"The change is larger than one transaction may be, %d bytes.", txBytesMax))
	}
	return values, nil
}

// plain gives an argument as int64, string, []byte or nil, and its size. A nil slice is an empty value, not NULL.
func plain(a any) (value any, size int, err error) {
	switch v := a.(type) {
	case nil:
		return nil, 1, nil
	case int64:
		return v, 8, nil
	case string:
		return v, len(v), storable(v)
	case []byte:
		if v == nil {
			v = []byte{}
		}
		return v, len(v), nil
	}
	switch v := reflect.ValueOf(a); v.Kind() {
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return v.Int(), 8, nil
	case reflect.Uint8, reflect.Uint16, reflect.Uint32:
		return int64(v.Uint()), 8, nil
	case reflect.String:
		return plain(v.String())
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return plain(v.Bytes())
		}
	}
	return nil, 0, fmt.Errorf("a %T; the store takes integers, strings, bytes and nil", a)
}

// storable refuses a text that not all of the databases take, so that they agree on what a stranger's text finds.
func storable(text string) error {
	if strings.IndexByte(text, 0) >= 0 || !utf8.ValidString(text) {
		return engine.Unstorable
	}
	return nil
}

func (tx *Tx) spoil(err error) error {
	if tx.err == nil {
		tx.err = err
	}
	return err
}
