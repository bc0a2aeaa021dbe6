package rest

import "context"

// A Record is what one request leaves behind for the access log. The front makes it and reads it when the request is
// over; the route's goroutine alone writes to it.
type Record struct {
	ID  string // the request id
	Err error  // what refused it, with the private chain
}

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
