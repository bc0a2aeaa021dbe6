package postgres

import (
	"context"
	"database/sql/driver"
	"errors"
	"io"
	"net"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"chancery/internal/base/fault"
	"chancery/internal/core/store/internal/engine"
	"chancery/internal/core/store/internal/pool"
)

// judge says what err means for its transaction (PostgreSQL manual, appendix A: error codes).
func judge(err error) pool.Verdict {
	if server, ok := errors.AsType[*pgconn.PgError](err); ok {
		switch {
		case server.Code == "40001", server.Code == "40P01":
			return pool.Undone
		case strings.HasPrefix(server.Code, "08"), strings.HasPrefix(server.Code, "57P"),
			server.Code == "53300", server.Code == "25P03":
			return pool.Lost
		}
		return pool.Final
	}
	if _, ok := errors.AsType[net.Error](err); ok {
		return pool.Lost
	}
	if _, ok := errors.AsType[*pgconn.ConnectError](err); ok {
		return pool.Lost
	}
	for _, lost := range []error{driver.ErrBadConn, io.EOF, io.ErrUnexpectedEOF, net.ErrClosed,
		context.DeadlineExceeded, context.Canceled} {
		if errors.Is(err, lost) {
			return pool.Lost
		}
	}
	if pgconn.SafeToRetry(err) || strings.Contains(err.Error(), "conn closed") {
		return pool.Lost
	}
	return pool.Final
}

// undone reports whether a failed COMMIT surely did not happen: the server said so, or it was never sent.
func undone(err error) bool {
	if server, ok := errors.AsType[*pgconn.PgError](err); ok {
		return judge(server) != pool.Lost && server.Code != "40003"
	}
	return errors.Is(err, pgx.ErrTxCommitRollback) || pgconn.SafeToRetry(err)
}

// explain turns refusals of the server into faults; other errors stay as they are.
func explain(err error) error {
	if _, ok := fault.As(err); ok {
		return err
	}
	if server, ok := errors.AsType[*pgconn.PgError](err); ok {
		switch server.Code {
		case "53100", "53200":
			return engine.Full.Because(err)
		case "22021", "22P05":
			return engine.Unstorable // the server's text repeats the value
		case "25006":
			return engine.ReadOnly.Because(err)
		case "55P03", "57014":
			return engine.Busy.Because(err)
		}
	}
	if judge(err) == pool.Lost {
		return engine.Unreachable.Because(scrub(err))
	}
	return err
}

// scrub keeps the reason of a failed connection and drops the rest of its text, which may repeat the address.
func scrub(err error) error {
	if parse, ok := errors.AsType[*pgconn.ParseConfigError](err); ok {
		return errors.Join(errors.New("not a PostgreSQL address"), errors.Unwrap(parse))
	}
	return err
}
