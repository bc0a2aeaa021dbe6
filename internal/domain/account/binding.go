package account

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"chancery/internal/base/fault"
	"chancery/internal/core/store"
)

// A Binding says that the holder of a key is an account's.
type Binding struct {
	KeyHash [32]byte // SHA-256 of the SubjectPublicKeyInfo
	Account string
	Label   string
	Created time.Time
	Expires time.Time // zero: never
}

// BindKey binds a key to an account: whoever shows a good client certificate with this key acts for it.
//
// Faults: NotFound account_unknown; Exists key_bound, whichever account has it; Conflict too_many_credentials.
func (d *Directory) BindKey(ctx context.Context, b Binding) error {
	if err := checkText("label", b.Label, textBytesMax); err != nil {
		return err
	}
	detail, err := json.Marshal(map[string]string{"account": b.Account})
	if err != nil {
		return fmt.Errorf("describing the binding: %w", err)
	}
	return d.db.Write(ctx, func(tx *store.Tx) error {
		a, err := selectAccount(tx, "id", b.Account)
		if err != nil {
			return err
		}
		if err := keepCredentialsBounded(tx, "account_key", a); err != nil {
			return err
		}
		inserted, err := tx.InsertNew("INSERT INTO account_key (key_hash, account, label, created_at, expires_at) VALUES (?, ?, ?, ?, ?)",
			b.KeyHash[:], b.Account, b.Label, tx.Now(), expiry(b.Expires))
		if err != nil {
			return err
		}
		if !inserted {
			return fault.New(fault.Exists, "key_bound", "this key is bound to an account already").WithHint("unbind it first")
		}
		return recordCredential(tx, "key.bind", hex.EncodeToString(b.KeyHash[:]), string(detail), credential{byKey, b.KeyHash})
	})
}

// UnbindKey ends a binding, here before it returns. The fault is NotFound, code binding_unknown.
func (d *Directory) UnbindKey(ctx context.Context, keyHash [32]byte) error {
	return d.db.Write(ctx, func(tx *store.Tx) error {
		removed, err := tx.Exec("DELETE FROM account_key WHERE key_hash = ?", keyHash[:])
		if err != nil {
			return err
		}
		if removed == 0 {
			return fault.New(fault.NotFound, "binding_unknown", "this key is bound to no account")
		}
		return recordCredential(tx, "key.unbind", hex.EncodeToString(keyHash[:]), "", credential{byKey, keyHash})
	})
}

// Bindings gives all keys that are bound to an account, at most a thousand.
func (d *Directory) Bindings(ctx context.Context, account string) ([]Binding, error) {
	page, err := list(ctx, d.db, credentialsMax, "SELECT key_hash, account, label, created_at, expires_at FROM account_key WHERE account = ? LIMIT ?",
		[]any{account}, scanBinding, func(Binding) string { return "" })
	return page.Items, err
}

func scanBinding(row store.Row) (Binding, error) {
	var b Binding
	var hash []byte
	var created, expires int64
	if err := row.Scan(&hash, &b.Account, &b.Label, &created, &expires); err != nil {
		return Binding{}, err
	}
	if len(hash) != sha256.Size {
		return Binding{}, errors.New("a bound key has no SHA-256")
	}
	b.KeyHash, b.Created, b.Expires = [32]byte(hash), moment(created), moment(expires)
	return b, nil
}
