package account

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"chancery/internal/base/fault"
	"chancery/internal/base/id"
	"chancery/internal/base/who"
	"chancery/internal/core/store"
)

const (
	tokenPrefix   = "chy_" // lets scanners of leaked secrets know what they found
	tokenBytes    = 32
	tokenAlphabet = "abcdefghijklmnopqrstuvwxyz234567" // RFC 4648 §6, lower case
	tokenLength   = (tokenBytes*8 + 4) / 5

	// credentialsMax bounds the tokens, and the bound keys, of one account, and with them what Delete has to remove.
	credentialsMax = 1000
)

var tokenEncoding = base32.NewEncoding(tokenAlphabet).WithPadding(base32.NoPadding)

// A Token is what may be known of an API token.
type Token struct {
	ID          string
	Account     string
	Label       string
	Narrowed    bool    // only Permissions, and of these what the account has
	Permissions who.Set // of a narrowed token
	Created     time.Time
	Expires     time.Time // zero: never
}

// A TokenSpec is what a token starts with.
type TokenSpec struct {
	Label       string
	Permissions who.Set   // nil: all that the account has, now and later
	Expires     time.Time // zero: never
}

// CreateToken makes an API token for an account. The second result is the token itself: it is shown this once, and
// only its SHA-256 is stored. A caller who makes a token for the own account can give it no right that the caller's
// own credential lacks.
//
// Callers need token:manage, or token:own for their own account. Faults: NotFound account_unknown; Invalid
// token_malformed, permission_unknown; Denied permission_missing; Conflict too_many_credentials.
func (d *Directory) CreateToken(ctx context.Context, account string, s TokenSpec) (Token, string, error) {
	if err := mayHandleTokens(who.From(ctx), account); err != nil {
		return Token{}, "", err
	}
	t, raw, err := s.token(d.now(), account)
	if err != nil {
		return Token{}, "", err
	}
	var made Token
	err = d.db.Write(ctx, func(tx *store.Tx) error {
		a, err := selectAccount(tx, "id", account)
		if err != nil {
			return err
		}
		if made, err = t.within(who.From(ctx), a); err != nil {
			return err
		}
		if err := keepCredentialsBounded(tx, "account_token", a); err != nil {
			return err
		}
		return insertToken(tx, made, raw)
	})
	return made, raw, err
}

// mayHandleTokens refuses callers who may not act on the tokens of the account.
func mayHandleTokens(c who.Caller, account string) error {
	if c.ID == account && c.May(who.TokenOwn) {
		return nil
	}
	return c.Need(who.TokenManage)
}

func (s TokenSpec) token(now time.Time, account string) (t Token, raw string, err error) {
	if err := checkText("label", s.Label, textBytesMax); err != nil {
		return Token{}, "", err
	}
	now = now.UTC().Truncate(time.Millisecond)
	if !s.Expires.IsZero() && !s.Expires.After(now) {
		return Token{}, "", fault.New(fault.Invalid, "token_malformed", "a token cannot expire in the past")
	}
	for _, p := range s.Permissions {
		if !slices.Contains(who.Permissions(), p) {
			return Token{}, "", fault.New(fault.Invalid, "permission_unknown", "%.40q is not a permission", p).
				WithHint("the permissions are %v", who.Permissions())
		}
	}
	random := make([]byte, tokenBytes)
	rand.Read(random)
	t = Token{
		ID: id.New(id.Token, now), Account: account, Label: s.Label, Created: now, Expires: moment(expiry(s.Expires)),
		Narrowed: s.Permissions != nil, Permissions: tidy(s.Permissions),
	}
	return t, tokenPrefix + tokenEncoding.EncodeToString(random), nil
}

// within holds a token that a caller makes for the own account to what the caller's credential may do.
func (t Token) within(c who.Caller, a Account) (Token, error) {
	if c.ID != a.ID {
		return t, nil
	}
	all := permissionsOf(a.Roles)
	held := all.And(c.Permissions)
	if !t.Narrowed {
		t.Narrowed = len(held) < len(all)
		if t.Narrowed {
			t.Permissions = held
		}
		return t, nil
	}
	for _, p := range t.Permissions {
		if !held.Has(p) {
			return Token{}, fault.New(fault.Denied, "permission_missing", "a token for %s cannot be given %s, which the credential that asks does not hold", a.Name, p)
		}
	}
	return t, nil
}

// hashToken gives the hash by which a token is stored, or false for what cannot be a token.
func hashToken(raw string) ([32]byte, bool) {
	secret, ok := strings.CutPrefix(raw, tokenPrefix)
	if !ok || len(secret) != tokenLength || strings.Trim(secret, tokenAlphabet) != "" {
		return [32]byte{}, false
	}
	return sha256.Sum256([]byte(raw)), true
}

func keepCredentialsBounded(tx *store.Tx, table string, a Account) error {
	var count int64
	if _, err := tx.One([]any{&count}, "SELECT COUNT(*) FROM "+table+" WHERE account = ?", a.ID); err != nil {
		return err
	}
	if count >= credentialsMax {
		return fault.New(fault.Conflict, "too_many_credentials", "%s has %d credentials of this kind already", a.Name, count).
			WithHint("delete those that are no longer needed")
	}
	return nil
}

const tokenColumns = "id, account, label, narrowed, permissions, created_at, expires_at"

func insertToken(tx *store.Tx, t Token, raw string) error {
	hash := sha256.Sum256([]byte(raw))
	if _, err := tx.Exec("INSERT INTO account_token ("+tokenColumns+", hash) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
		t.ID, t.Account, t.Label, flag(t.Narrowed), join(t.Permissions), t.Created.UnixMilli(), expiry(t.Expires), hash[:]); err != nil {
		return err
	}
	detail, err := json.Marshal(struct {
		Account     string    `json:"account"`
		Narrowed    bool      `json:"narrowed"`
		Permissions who.Set   `json:"permissions,omitempty"`
		Expires     time.Time `json:"expires,omitzero"`
	}{t.Account, t.Narrowed, t.Permissions, t.Expires})
	if err != nil {
		return fmt.Errorf("describing the token: %w", err)
	}
	return recordCredential(tx, "token.create", t.ID, string(detail), credential{byToken, hash})
}

// recordCredential writes the audit line and the feed row of a change to a credential.
func recordCredential(tx *store.Tx, action, target, detail string, c credential) error {
	if err := audit(tx, action, target, detail); err != nil {
		return err
	}
	return tx.Publish(store.Change{Topic: topicCredential, Key: c.feedKey()})
}

func scanToken(row store.Row) (Token, error) {
	var t Token
	var permissions string
	var narrowed, created, expires int64
	if err := row.Scan(&t.ID, &t.Account, &t.Label, &narrowed, &permissions, &created, &expires); err != nil {
		return Token{}, err
	}
	t.Narrowed, t.Permissions = narrowed == 1, split[who.Permission](permissions)
	t.Created, t.Expires = moment(created), moment(expires)
	return t, nil
}

// Tokens gives the tokens of an account in the order in which they were made. Callers need token:manage, or token:own
// for their own account.
func (d *Directory) Tokens(ctx context.Context, account, cursor string, limit int) (Page[Token], error) {
	if err := mayHandleTokens(who.From(ctx), account); err != nil {
		return Page[Token]{}, err
	}
	return list(ctx, d.db, limit, "SELECT "+tokenColumns+" FROM account_token WHERE account = ? AND id > ? ORDER BY id LIMIT ?",
		[]any{account, cursor}, scanToken, func(t Token) string { return t.ID })
}

// DeleteToken ends a token, here before it returns. Callers need token:manage, or token:own for their own tokens; a
// token may always end itself. The fault is NotFound, code token_unknown, also for a token that is not the caller's.
func (d *Directory) DeleteToken(ctx context.Context, token string) error {
	c := who.From(ctx)
	return d.db.Write(ctx, func(tx *store.Tx) error {
		var account string
		var hash []byte
		found, err := tx.One([]any{&account, &hash}, "SELECT account, hash FROM account_token WHERE id = ?", token)
		if err != nil {
			return err
		}
		own := c.Kind != who.Nobody && c.Credential == token
		if !found || len(hash) != sha256.Size || !own && mayHandleTokens(c, account) != nil {
			return fault.New(fault.NotFound, "token_unknown", "there is no token %.40q", token)
		}
		if _, err := tx.Exec("DELETE FROM account_token WHERE id = ?", token); err != nil {
			return err
		}
		return recordCredential(tx, "token.delete", token, "", credential{byToken, [32]byte(hash)})
	})
}

// keepExpired is how long expired tokens are shown in lists before they go.
const keepExpired = 30 * 24 * time.Hour

// Retire removes tokens that expired a month ago, in bounded steps, each with an audit line.
func (d *Directory) Retire(ctx context.Context) error {
	_, err := d.db.Expire(ctx, "account_token", "id", "expires_at", d.now().Add(-keepExpired).UnixMilli(), "expired a month ago")
	return err
}
