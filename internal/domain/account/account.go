// Package account knows who may call: people, service accounts, what they may do, and by which credentials they prove
// themselves.
//
// An account holds roles; a role is a set of permissions fixed in code, so that a right is given by naming a job and
// not by collecting verbs. A credential is an API token, of which only the SHA-256 is stored, or a client key bound by
// the hash of its SubjectPublicKeyInfo. CallerByToken and CallerByKey turn a credential into a who.Caller, and they
// look at expiry, at the account's roles and at whether it is enabled on every call.
//
// What was looked up is kept in memory, within bounds, and dropped through the change feed one account or credential
// at a time: a change holds here before the call that made it returns, and on other instances within a second. At
// least one enabled person is always an administrator; the first is made by a one-time code, since a default password
// would be everybody's.
//
// Passwords, passkeys and sessions do not live here, nor does the table of which route needs which permission. Methods
// that act on the tokens of an account ask the context's caller; the others trust the route that called them.
package account

import (
	"context"
	"time"

	"chancery/internal/base/id"
	"chancery/internal/base/who"
	"chancery/internal/core/store"
)

// The topics of the change feed; an account's key is its id, a credential's is told by credential.feedKey.
const (
	topicAccount    = "account"
	topicCredential = "token"
)

// listMax bounds one page of a list.
const listMax = 1000

// Config bounds the directory. The zero value is usable.
type Config struct {
	Remember int              // accounts, and credentials, kept in memory; about 0.5 KB each; 0 = 100,000
	Now      func() time.Time // nil = time.Now
}

// A Directory is the accounts of one store. All methods are safe for concurrent use. Changes are durable when a method
// returns, together with their audit line.
type Directory struct {
	db          *store.Store
	now         func() time.Time
	grants      *store.Memo[grant] // by account
	credentials *store.Memo[proof] // by credential.feedKey
}

// New gives the directory of a store and follows its changes until Close.
func New(db *store.Store, c Config) *Directory {
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Remember == 0 {
		c.Remember = 100_000
	}
	d := &Directory{db: db, now: c.Now}
	d.grants = store.NewMemo(db, topicAccount, c.Remember, d.readGrant)
	d.credentials = store.NewMemo(db, topicCredential, c.Remember, d.readProof)
	return d
}

// Close ends following the store's changes. The directory must not be used afterwards.
func (d *Directory) Close() {
	d.grants.Close()
	d.credentials.Close()
}

// An Account is a person or a service account.
type Account struct {
	ID          string
	Name        string // unique, what people type: lower-case letters, digits and . _ @ + -
	Display     string // what people read; may be empty
	Email       string // may be empty; not verified
	Roles       []Role
	Authorities []string // authorities that it may use; "*" is every one
	Enabled     bool
	Created     time.Time // UTC, milliseconds
	Changed     time.Time
}

// Kind says whether the account is a person's or a service's.
func (a Account) Kind() who.Kind {
	if id.Is(id.Service, a.ID) {
		return who.Service
	}
	return who.Person
}

// administers reports whether the account counts as an administrator that can let others in again.
func (a Account) administers() bool {
	if !a.Enabled || a.Kind() != who.Person {
		return false
	}
	for _, r := range a.Roles {
		if r == Administrator {
			return true
		}
	}
	return false
}

// Find gives an account by id. The fault is NotFound, code account_unknown.
func (d *Directory) Find(ctx context.Context, account string) (Account, error) {
	return d.find(ctx, "id", account)
}

// FindByName gives an account by its name. The fault is NotFound, code account_unknown.
func (d *Directory) FindByName(ctx context.Context, name string) (Account, error) {
	return d.find(ctx, "name", name)
}

func (d *Directory) find(ctx context.Context, column, value string) (a Account, err error) {
	err = d.db.Read(ctx, func(tx *store.Tx) error {
		a, err = selectAccount(tx, column, value)
		return err
	})
	return a, err
}

// A Page is a part of a list. Next is the cursor of the following page, empty on the last one. A row that lasts through
// the walk is listed exactly once, whatever comes and goes meanwhile.
type Page[T any] struct {
	Items []T
	Next  string
}

// List gives accounts in the order in which they were made, people before services; kind who.Nobody means both.
// cursor is "" or the Next of the page before.
func (d *Directory) List(ctx context.Context, kind who.Kind, cursor string, limit int) (Page[Account], error) {
	low, high := "", "~" // beyond every id
	switch kind {
	case who.Person:
		low, high = string(id.Person)+"_", string(id.Person)+"~"
	case who.Service:
		low, high = string(id.Service)+"_", string(id.Service)+"~"
	}
	return list(ctx, d.db, limit, "SELECT "+accountColumns+" FROM account WHERE id > ? AND id < ? ORDER BY id LIMIT ?",
		[]any{max(low, cursor), high}, scanAccount, func(a Account) string { return a.ID })
}

// list runs a query whose last placeholder is the limit, one row beyond the page to know whether another follows.
func list[T any](ctx context.Context, db *store.Store, limit int, query string, args []any,
	scan func(store.Row) (T, error), cursor func(T) string,
) (Page[T], error) {
	limit = min(max(limit, 1), listMax)
	var page Page[T]
	err := db.Read(ctx, func(tx *store.Tx) error {
		page = Page[T]{Items: make([]T, 0, limit)}
		return tx.Each(query, append(args, limit+1), func(row store.Row) error {
			item, err := scan(row)
			page.Items = append(page.Items, item)
			return err
		})
	})
	if len(page.Items) > limit {
		page.Items = page.Items[:limit]
		page.Next = cursor(page.Items[limit-1])
	}
	return page, err
}
