package rest

import (
	"context"
	"time"
)

// A Record is what one request leaves behind for the access log. The front makes it and reads it when the request is
// over; the route's goroutine alone writes to it.
type Record struct {
	ID  string // the request id
	Err error  // what refused it, with the private chain

	Parse time.Duration // reading the body and its form; zero if the route was not reached

	begin time.Time // of Parse
}

// parsed ends the phase of parsing.
func (r *Record) parsed() { r.Parse = time.Since(r.begin) }

type recordKey struct{}

// WithRecord gives a context that carries the record.
func WithRecord(ctx context.Context, r *Record) context.Context {
	return context.WithValue(ctx, recordKey{}, r)
}

// RecordOf gives the context's record; without one it gives a record that nobody reads.
func RecordOf(ctx context.Context) *Record {
	if r, ok := ctx.Value(recordKey{}).(*Record); ok {
		return r
	}
	return &Record{}
}
