package rest

import (
	"encoding/base64"
	"strings"

	"chancery/api"
	"chancery/internal/base/fault"
)

const maxIdempotencyKey = 64

// Paging is embedded in the input of a route that lists.
type Paging struct {
	Cursor string `query:"cursor" maxLength:"512" doc:"next of the page before; opaque"`
	Limit  int    `query:"limit" minimum:"1" maximum:"1000" default:"100" doc:"Largest number of items"`
}

// After gives the position after which the page starts, as NewPage was given it; "" is the beginning. The fault is
// Invalid, code cursor_invalid.
func (p Paging) After() (string, error) {
	position, err := base64.RawURLEncoding.DecodeString(p.Cursor)
	if err != nil {
		return "", fault.New(fault.Invalid, "cursor_invalid", "the cursor is not one that a page gave as next").Because(err)
	}
	return string(position), nil
}

// NewPage makes a page of items; position is where the next page goes on, "" at the end.
func NewPage[T any](items []T, position string) api.Page[T] {
	return api.Page[T]{Items: items, Next: base64.RawURLEncoding.EncodeToString([]byte(position))}
}

// PageOf makes a page of what wire gives for each item.
func PageOf[D, A any](items []D, position string, wire func(D) A) api.Page[A] {
	wired := make([]A, len(items))
	for i, item := range items {
		wired[i] = wire(item)
	}
	return NewPage(wired, position)
}

// visible reports whether s is visible ASCII.
func visible(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r < '!' || r > '~' })
}
