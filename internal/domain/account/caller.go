package account

import (
	"context"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"chancery/internal/base/fault"
	"chancery/internal/base/who"
	"chancery/internal/core/store"
)

// A credential names what a caller shows: the hash of a token or of a public key. The kind keeps them apart, since the
// bytes of a public key are known to everybody and must never pass for a token.
type credential struct {
	kind credentialKind
	hash [32]byte
}

type credentialKind string

const (
	byToken credentialKind = "token"
	byKey   credentialKind = "key"
)

func (c credential) feedKey() string { return string(c.kind) + ":" + hex.EncodeToString(c.hash[:]) }

func parseFeedKey(s string) (c credential, ok bool) {
	kind, text, _ := strings.Cut(s, ":")
	hash, err := hex.DecodeString(text)
	if err != nil || len(hash) != len(c.hash) {
		return credential{}, false
	}
	return credential{kind: credentialKind(kind), hash: [32]byte(hash)}, true
}

// A proof is what a credential proves: whose it is, and until when.
type proof struct {
	account     string
	token       string // the token's id; empty for a key
	narrowed    bool
	permissions who.Set // of a narrowed token
	expires     int64   // UTC milliseconds, or never
}

// A grant is what an account may do at this time.
type grant struct {
	caller  who.Caller // without the credential
	enabled bool
}

// CallerByToken gives the caller who shows an API token, with the rights that the account and the token have now.
//
// The token is hashed and looked up by its hash; what the time of a lookup tells about a hash helps nobody to find
// the 256 bits behind it.
//
// Faults: Unauthenticated token_invalid, token_expired; Denied account_disabled; those of the store.
func (d *Directory) CallerByToken(ctx context.Context, raw string) (who.Caller, error) {
	hash, ok := hashToken(raw)
	if !ok {
		return who.Caller{}, errTokenInvalid
	}
	return d.caller(ctx, credential{byToken, hash})
}

// CallerByKey gives the caller whose account is bound to the key with this SHA-256 of its SubjectPublicKeyInfo. That
// the caller holds the key, and that the certificate around it is good, is for the TLS listener to check.
//
// Faults: Unauthenticated key_unbound, key_expired; Denied account_disabled; those of the store.
func (d *Directory) CallerByKey(ctx context.Context, keyHash [32]byte) (who.Caller, error) {
	c, err := d.caller(ctx, credential{byKey, keyHash})
	if err == nil {
		c.KeyHash = keyHash
	}
	return c, err
}

var (
	errTokenInvalid = fault.New(fault.Unauthenticated, "token_invalid", "this API token is unknown or was deleted")
	errTokenExpired = fault.New(fault.Unauthenticated, "token_expired", "this API token has expired").WithHint("make a new one")
	errKeyUnbound   = fault.New(fault.Unauthenticated, "key_unbound", "the key of this client certificate is bound to no account").
			WithHint("an administrator can bind it to a person or a service account")
	errKeyExpired = fault.New(fault.Unauthenticated, "key_expired", "the binding of this key to its account has expired")
	errDisabled   = fault.New(fault.Denied, "account_disabled", "this account is disabled")
)

func (d *Directory) caller(ctx context.Context, shown credential) (who.Caller, error) {
	unknown, expired := errTokenInvalid, errTokenExpired
	if shown.kind == byKey {
		unknown, expired = errKeyUnbound, errKeyExpired
	}
	p, found, err := d.credentials.Get(ctx, shown.feedKey())
	switch {
	case err != nil:
		return who.Caller{}, fmt.Errorf("looking up a %s: %w", shown.kind, err)
	case !found:
		return who.Caller{}, unknown
	case d.now().UnixMilli() >= p.expires:
		return who.Caller{}, expired
	}
	c, err := d.Holder(ctx, p.account)
	if fault.KindOf(err) == fault.NotFound {
		return who.Caller{}, unknown
	}
	if err != nil {
		return who.Caller{}, err
	}
	c.Credential = p.token
	if p.narrowed {
		c.Permissions = c.Permissions.And(p.permissions)
	}
	return c, nil
}

// Holder gives an account as a caller, with the rights that it has now and no credential: what hangs on the account
// without being its own credential asks here at each use. It is from memory.
//
// Faults: NotFound account_unknown; Denied account_disabled; those of the store.
func (d *Directory) Holder(ctx context.Context, account string) (who.Caller, error) {
	g, found, err := d.grants.Get(ctx, account)
	switch {
	case err != nil:
		return who.Caller{}, fmt.Errorf("looking up account %s: %w", account, err)
	case !found:
		return who.Caller{}, accountUnknown(account)
	case !g.enabled:
		return who.Caller{}, errDisabled
	}
	return g.caller, nil
}

func (d *Directory) readProof(ctx context.Context, key string) (p proof, found bool, err error) {
	c, ok := parseFeedKey(key)
	if !ok {
		return p, false, nil
	}
	query := "SELECT account, id, narrowed, permissions, expires_at FROM account_token WHERE hash = ?"
	if c.kind == byKey {
		query = "SELECT account, '', 0, '', expires_at FROM account_key WHERE key_hash = ?"
	}
	err = d.db.Read(ctx, func(tx *store.Tx) error {
		var narrowed int64
		var permissions string
		found, err = tx.One([]any{&p.account, &p.token, &narrowed, &permissions, &p.expires}, query, c.hash[:])
		p.narrowed, p.permissions = narrowed == 1, split[who.Permission](permissions)
		return err
	})
	return p, found, err
}

func (d *Directory) readGrant(ctx context.Context, account string) (grant, bool, error) {
	a, err := d.Find(ctx, account)
	if fault.KindOf(err) == fault.NotFound {
		return grant{}, false, nil
	}
	return grant{enabled: a.Enabled, caller: who.Caller{
		Kind: a.Kind(), ID: a.ID, Name: a.Name,
		Permissions:    permissionsOf(a.Roles),
		Authorities:    a.Authorities,
		AllAuthorities: slices.Contains(a.Authorities, everyAuthority) || slices.ContainsFunc(a.Roles, Role.everywhere),
	}}, true, err
}
