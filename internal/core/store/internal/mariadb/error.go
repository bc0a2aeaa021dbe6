package mariadb

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"

	"github.com/go-sql-driver/mysql"

	"chancery/internal/base/fault"
	"chancery/internal/core/store/internal/engine"
	"chancery/internal/core/store/internal/pool"
)

// Error numbers of MariaDB.
const (
	duplicate    = 1062
	otherCharset = 1267 // a text compared with a column that cannot hold it
	lockTimeout  = 1205
	deadlock     = 1213
	readChanged  = 1020 // "record has changed since last read"
	diskFull     = 1021
	tableFull    = 1114
	readOnly     = 1290
	readOnlyTx   = 1792
	shutdown     = 1053
	killed       = 1927
	tooMany      = 1040
	statementEnd = 1969 // max_statement_time
)

func number(err error) uint16 {
	if server, ok := errors.AsType[*mysql.MySQLError](err); ok {
		return server.Number
	}
	return 0
}

// judge says what err means for its transaction.
func judge(err error) pool.Verdict {
	switch number(err) {
	case 0:
	case lockTimeout, deadlock, readChanged:
		return pool.Undone
	case shutdown, killed, tooMany:
		return pool.Lost
	default:
		return pool.Final
	}
	if _, ok := errors.AsType[net.Error](err); ok {
		return pool.Lost
	}
	for _, lost := range []error{driver.ErrBadConn, mysql.ErrInvalidConn, io.EOF, io.ErrUnexpectedEOF, net.ErrClosed,
		context.DeadlineExceeded, context.Canceled} {
		if errors.Is(err, lost) {
			return pool.Lost
		}
	}
	return pool.Final
}

// explain turns refusals of the server into faults, and drops the text of those that repeat a value.
func explain(err error) error {
	if _, ok := fault.As(err); ok {
		return err
	}
	switch n := number(err); n {
	case diskFull, tableFull:
		return engine.Full.Because(err)
	case readOnly, readOnlyTx:
		return engine.ReadOnly.Because(err)
	case otherCharset:
		return engine.Unstorable
	case statementEnd:
		return engine.Busy.Because(err)
	case duplicate, 1264, 1292, 1366, 1406, 1064:
		return fmt.Errorf("mariadb error %d", n)
	}
	if judge(err) == pool.Lost {
		return engine.Unreachable.Because(err)
	}
	return err
}
