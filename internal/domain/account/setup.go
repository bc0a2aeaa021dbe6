package account

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"strings"
	"time"

	"chancery/internal/base/fault"
	"chancery/internal/base/who"
	"chancery/internal/core/store"
)

// firstRoles lets the first person start everything; narrower accounts are made from there.
func firstRoles() []Role { return []Role{Administrator, Operator, Issuer, Revoker, Self} }

var errSetupDone = fault.New(fault.Conflict, "setup_done", "there is an administrator already").
	WithHint("an administrator can make further accounts; `chancery rescue` helps where none can sign in")

// NewSetupCode gives the code by which the first administrator is made, once and within its lifetime. Only its
// SHA-256 is stored; an earlier code ends. The fault is Conflict, code setup_done, once there is an administrator.
func (d *Directory) NewSetupCode(ctx context.Context, lifetime time.Duration) (string, error) {
	code := rand.Text()[:25] // 125 bits
	hash := hashSetupCode(code)
	err := d.db.Write(ctx, func(tx *store.Tx) error {
		if err := refuseSecondSetup(tx); err != nil {
			return err
		}
		if _, err := tx.Exec("DELETE FROM account_setup"); err != nil {
			return err
		}
		if _, err := tx.Exec("INSERT INTO account_setup (id, hash, expires_at) VALUES (1, ?, ?)", hash[:], tx.Now()+lifetime.Milliseconds()); err != nil {
			return err
		}
		return audit(tx, "setup.code", "setup", "")
	})
	if err != nil {
		return "", err
	}
	return strings.Join([]string{code[:5], code[5:10], code[10:15], code[15:20], code[20:]}, "-"), nil
}

// SetUp makes the first administrator, and an API token for it, which is the third result and shown this once. Kind,
// roles and authorities of s are not looked at: the account is a person's with every role that works, everywhere.
//
// Faults: Denied setup_code_wrong for a code that is wrong, used or expired; Conflict setup_done; those of Create.
func (d *Directory) SetUp(ctx context.Context, code string, s Spec, t TokenSpec) (Account, Token, string, error) {
	s.Kind, s.Roles, s.Authorities = who.Person, firstRoles(), []string{everyAuthority}
	a, err := s.account(d.now())
	if err != nil {
		return Account{}, Token{}, "", err
	}
	token, raw, err := t.token(d.now(), a.ID)
	if err != nil {
		return Account{}, Token{}, "", err
	}
	err = d.db.Write(ctx, func(tx *store.Tx) error {
		if err := refuseSecondSetup(tx); err != nil {
			return err
		}
		if err := redeem(tx, hashSetupCode(code)); err != nil {
			return err
		}
		if err := insertAccount(tx, a); err != nil {
			return err
		}
		return insertToken(tx, token, raw)
	})
	if err != nil {
		return Account{}, Token{}, "", err
	}
	return a, token, raw, nil
}

func refuseSecondSetup(tx *store.Tx) error {
	done, err := tx.One([]any{new(string)}, "SELECT id FROM account WHERE administers = 1 LIMIT 1")
	if err == nil && done {
		return errSetupDone
	}
	return err
}

// redeem uses up the standing code if it is this one.
func redeem(tx *store.Tx, given [32]byte) error {
	var hash []byte
	var expires int64
	found, err := tx.One([]any{&hash, &expires}, "SELECT hash, expires_at FROM account_setup WHERE id = 1")
	if err != nil {
		return err
	}
	if same := subtle.ConstantTimeCompare(hash, given[:]) == 1; !found || !same || tx.Now() >= expires {
		return fault.New(fault.Denied, "setup_code_wrong", "this setup code is wrong, used or expired").
			WithHint("the server prints a new one when it starts without an administrator")
	}
	_, err = tx.Exec("DELETE FROM account_setup")
	return err
}

// hashSetupCode hashes a code as people may type it: dashes, spaces and case do not matter.
func hashSetupCode(code string) [32]byte {
	return sha256.Sum256([]byte(strings.ToUpper(strings.NewReplacer("-", "", " ", "").Replace(code))))
}
