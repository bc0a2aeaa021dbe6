package account

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"chancery/internal/base/fault"
	"chancery/internal/base/id"
	"chancery/internal/base/who"
	"chancery/internal/core/store"
)

const (
	nameBytesMax   = 64
	textBytesMax   = 128 // of a display name or label
	emailBytesMax  = 254 // RFC 5321 §4.5.3.1.3
	authoritiesMax = 64
	nameAlphabet   = "abcdefghijklmnopqrstuvwxyz0123456789._@+-"
	everyAuthority = "*"
)

// A Spec is what an account starts with. Kind is who.Person or who.Service; the account is enabled.
type Spec struct {
	Kind        who.Kind
	Name        string
	Display     string
	Email       string
	Roles       []Role
	Authorities []string
}

// Create makes an account.
//
// Faults: Exists account_exists; Invalid account_invalid, role_unknown.
func (d *Directory) Create(ctx context.Context, s Spec) (Account, error) {
	a, err := s.account(d.now())
	if err != nil {
		return Account{}, err
	}
	err = d.db.Write(ctx, func(tx *store.Tx) error { return insertAccount(tx, a) })
	return a, err
}

func (s Spec) account(now time.Time) (Account, error) {
	kind := id.Person
	switch s.Kind {
	case who.Person:
	case who.Service:
		kind = id.Service
	default:
		return Account{}, invalid("an account is a person's or a service's, not a %s's", s.Kind)
	}
	now = now.UTC().Truncate(time.Millisecond)
	a := Account{
		ID: id.New(kind, now), Name: s.Name, Display: s.Display, Email: s.Email, Enabled: true, Created: now, Changed: now,
		Roles: tidy(s.Roles), Authorities: tidy(s.Authorities),
	}
	return a, a.check()
}

// tidy sorts a list, drops doubles, and never gives nil.
func tidy[T ~string](list []T) []T {
	sorted := append([]T{}, list...)
	slices.Sort(sorted)
	return slices.Compact(sorted)
}

func invalid(format string, args ...any) error {
	return fault.New(fault.Invalid, "account_invalid", format, args...)
}

// check holds an account to its bounds.
func (a Account) check() error {
	if a.Name == "" || len(a.Name) > nameBytesMax || strings.Trim(a.Name, nameAlphabet) != "" {
		return invalid("%.80q cannot be a name: use 1 to %d lower-case letters, digits and . _ @ + -", a.Name, nameBytesMax)
	}
	if id.Is(id.Person, a.Name) || id.Is(id.Service, a.Name) {
		return invalid("%q cannot be a name: it has the form of an account's identifier", a.Name)
	}
	if err := checkText("display name", a.Display, textBytesMax); err != nil {
		return err
	}
	if err := checkText("email address", a.Email, emailBytesMax); err != nil {
		return err
	}
	if at := strings.LastIndexByte(a.Email, '@'); a.Email != "" && (at < 1 || at == len(a.Email)-1) {
		return invalid("%q is not an email address", a.Email)
	}
	for _, r := range a.Roles {
		if _, err := ParseRole(string(r)); err != nil {
			return err
		}
	}
	if len(a.Authorities) > authoritiesMax {
		return invalid("an account names at most %d authorities; \"*\" is every one", authoritiesMax)
	}
	for _, name := range a.Authorities {
		if name != everyAuthority && (name == "" || len(name) > nameBytesMax || strings.Trim(name, nameAlphabet) != "") {
			return invalid("%.80q is not the name of an authority", name)
		}
	}
	return nil
}

func checkText(what, text string, bytesMax int) error {
	if len(text) > bytesMax || !utf8.ValidString(text) || strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return invalid("the %s must be at most %d bytes of printable text", what, bytesMax)
	}
	return nil
}

// A Change says what to change of an account; nil leaves a part as it is.
type Change struct {
	Display     *string   `json:"display,omitempty"`
	Email       *string   `json:"email,omitempty"`
	Roles       *[]Role   `json:"roles,omitempty"`
	Authorities *[]string `json:"authorities,omitempty"`
	Enabled     *bool     `json:"enabled,omitempty"`
}

func (c Change) of(a Account) Account {
	if c.Display != nil {
		a.Display = *c.Display
	}
	if c.Email != nil {
		a.Email = *c.Email
	}
	if c.Roles != nil {
		a.Roles = tidy(*c.Roles)
	}
	if c.Authorities != nil {
		a.Authorities = tidy(*c.Authorities)
	}
	if c.Enabled != nil {
		a.Enabled = *c.Enabled
	}
	return a
}

// Change changes an account and gives it as it stands then. What hangs on a role that is gone, or on an account that
// is disabled, ends before Change returns. A change that changes nothing leaves no trace.
//
// Faults: NotFound account_unknown; Invalid account_invalid, role_unknown; Conflict last_administrator.
func (d *Directory) Change(ctx context.Context, account string, c Change) (Account, error) {
	detail, err := json.Marshal(c)
	if err != nil {
		return Account{}, fmt.Errorf("describing the change: %w", err)
	}
	var after Account
	err = d.db.Write(ctx, func(tx *store.Tx) error {
		before, err := selectAccount(tx, "id", account)
		if err != nil {
			return err
		}
		after = c.of(before)
		if reflect.DeepEqual(before, after) {
			return nil
		}
		after.Changed = time.UnixMilli(tx.Now()).UTC()
		if err := after.check(); err != nil {
			return err
		}
		if err := keepAdministrator(tx, before, after); err != nil {
			return err
		}
		return updateAccount(tx, after, string(detail))
	})
	return after, err
}

// Delete removes an account with its tokens and bound keys.
//
// Faults: NotFound account_unknown; Conflict last_administrator.
func (d *Directory) Delete(ctx context.Context, account string) error {
	return d.db.Write(ctx, func(tx *store.Tx) error {
		a, err := selectAccount(tx, "id", account)
		if err != nil {
			return err
		}
		if err := keepAdministrator(tx, a, Account{}); err != nil {
			return err
		}
		for _, statement := range []string{
			"DELETE FROM account_token WHERE account = ?",
			"DELETE FROM account_key WHERE account = ?",
			"DELETE FROM account WHERE id = ?",
		} {
			if _, err := tx.Exec(statement, account); err != nil {
				return err
			}
		}
		return record(tx, "account.delete", a.ID, "")
	})
}

// keepAdministrator refuses a change after which nobody could let anybody in.
func keepAdministrator(tx *store.Tx, before, after Account) error {
	if !before.administers() || after.administers() {
		return nil
	}
	others, err := tx.One([]any{new(string)}, "SELECT id FROM account WHERE administers = 1 AND id <> ? LIMIT 1", before.ID)
	if err != nil || others {
		return err
	}
	return fault.New(fault.Conflict, "last_administrator", "%s is the last person who is enabled and an administrator", before.Name).
		WithHint("make somebody else an administrator first")
}

// record writes the audit line and the feed row of a change to an account. Credentials of a deleted account need no
// rows of their own: without their account they prove nothing.
func record(tx *store.Tx, action, account, detail string) error {
	if err := audit(tx, action, account, detail); err != nil {
		return err
	}
	return tx.Publish(store.Change{Topic: topicAccount, Key: account})
}

func audit(tx *store.Tx, action, target, detail string) error {
	return tx.Audit(store.Line{Actor: who.From(tx.Context()).Actor(), Action: action, Target: target, Detail: detail})
}
