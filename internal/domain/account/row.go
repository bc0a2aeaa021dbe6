package account

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"time"

	"chancery/internal/base/fault"
	"chancery/internal/core/store"
)

const accountColumns = "id, name, display, email, roles, authorities, enabled, created_at, changed_at"

// selectAccount reads the account whose column, "id" or "name", has the value.
func selectAccount(tx *store.Tx, column, value string) (Account, error) {
	var found bool
	a, err := scanAccount(scanner(func(dest ...any) (err error) {
		found, err = tx.One(dest, "SELECT "+accountColumns+" FROM account WHERE "+column+" = ?", value)
		return err
	}))
	if err == nil && !found {
		return Account{}, accountUnknown(value)
	}
	return a, err
}

func accountUnknown(idOrName string) error {
	return fault.New(fault.NotFound, "account_unknown", "there is no account %.80q", idOrName)
}

// A scanner is a store.Row made of a function, so that one row and many are read by the same code.
type scanner func(dest ...any) error

// Scan reads the row.
func (s scanner) Scan(dest ...any) error { return s(dest...) }

func scanAccount(row store.Row) (Account, error) {
	var a Account
	var roles, authorities string
	var enabled, created, changed int64
	if err := row.Scan(&a.ID, &a.Name, &a.Display, &a.Email, &roles, &authorities, &enabled, &created, &changed); err != nil {
		return Account{}, err
	}
	a.Roles, a.Authorities = split[Role](roles), split[string](authorities)
	a.Enabled, a.Created, a.Changed = enabled == 1, moment(created), moment(changed)
	return a, nil
}

func insertAccount(tx *store.Tx, a Account) error {
	inserted, err := tx.InsertNew("INSERT INTO account ("+accountColumns+", administers) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
		a.ID, a.Name, a.Display, a.Email, join(a.Roles), join(a.Authorities), flag(a.Enabled), a.Created.UnixMilli(), a.Changed.UnixMilli(),
		flag(a.administers()))
	if err != nil {
		return err
	}
	if !inserted {
		return fault.New(fault.Exists, "account_exists", "the name %s is taken", a.Name)
	}
	detail, err := json.Marshal(map[string]any{"name": a.Name, "roles": a.Roles, "authorities": a.Authorities})
	if err != nil {
		return fmt.Errorf("describing the account: %w", err)
	}
	return record(tx, "account.create", a.ID, string(detail))
}

func updateAccount(tx *store.Tx, a Account, detail string) error {
	if _, err := tx.Exec("UPDATE account SET display = ?, email = ?, roles = ?, authorities = ?, enabled = ?, administers = ?, changed_at = ? WHERE id = ?",
		a.Display, a.Email, join(a.Roles), join(a.Authorities), flag(a.Enabled), flag(a.administers()), a.Changed.UnixMilli(), a.ID); err != nil {
		return err
	}
	return record(tx, "account.change", a.ID, detail)
}

// join and split write lists of names, which hold no comma, in one column.
func join[T ~string](list []T) string {
	parts := make([]string, len(list))
	for i, item := range list {
		parts[i] = string(item)
	}
	return strings.Join(parts, ",")
}

func split[T ~string](text string) []T {
	list := []T{}
	for part := range strings.SplitSeq(text, ",") {
		if part != "" {
			list = append(list, T(part))
		}
	}
	return list
}

func flag(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// never is the expiry of what does not expire. It is the largest and not the smallest value, so that retention by
// expiry can never take it for long gone.
const never = math.MaxInt64

// moment gives the time of stored milliseconds, the zero time for never.
func moment(ms int64) time.Time {
	if ms == never {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}

// expiry gives the stored milliseconds of a time, never for the zero time.
func expiry(t time.Time) int64 {
	if t.IsZero() {
		return never
	}
	return t.UnixMilli()
}
