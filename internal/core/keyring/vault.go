package keyring

import (
	"bytes"
	"context"
	"crypto/cipher"
	"crypto/rand"
	"encoding/binary"
	"fmt"

	"golang.org/x/crypto/argon2"
	"golang.org/x/crypto/chacha20poly1305"

	"chancery/internal/base/fault"
	"chancery/internal/base/who"
	"chancery/internal/core/store"
)

// A cost is how much work a guess at the passphrase takes.
type cost struct {
	passes    int64
	memoryKiB int64
	lanes     int64
}

// usual is RFC 9106 §4, the second recommended option. Stored costs are used as they are stored.
var usual = cost{passes: 3, memoryKiB: 64 << 10, lanes: 4}

// bearable refuses stored costs that would only serve to exhaust this machine.
func (c cost) bearable() bool {
	return c.passes >= 1 && c.passes <= 100 && c.lanes >= 1 && c.lanes <= 64 && c.memoryKiB >= 8*c.lanes && c.memoryKiB <= 1<<20
}

// A vault is the row that holds the data key, wrapped by the passphrase.
type vault struct {
	cost
	salt    []byte
	wrapped []byte // nonce, sealed data key
}

var errPassphraseWrong = fault.New(fault.Denied, "passphrase_wrong", "the passphrase does not open this keyring").
	WithHint("give the passphrase that was set when this data directory was made; if it is certainly right, the keyring's row is damaged and a backup is the way back")

// openVault gives the data key. A store without a vault gets one of the given cost.
func openVault(ctx context.Context, db *store.Store, passphrase []byte, c cost) ([]byte, error) {
	v, found, err := readVault(ctx, db)
	if err != nil {
		return nil, err
	}
	if !found {
		if v, err = createVault(ctx, db, passphrase, c); err != nil {
			return nil, err
		}
	}
	return v.unwrap(passphrase)
}

// createVault stores a new vault, unless another instance was quicker; then it gives that one.
func createVault(ctx context.Context, db *store.Store, passphrase []byte, c cost) (vault, error) {
	dataKey := make([]byte, chacha20poly1305.KeySize)
	rand.Read(dataKey)
	defer clear(dataKey)
	ours, err := wrap(dataKey, passphrase, c)
	if err != nil {
		return vault{}, err
	}
	var standing vault
	err = db.Write(ctx, func(tx *store.Tx) error {
		inserted, err := tx.InsertNew("INSERT INTO keyring_vault (id, kdf, passes, memory_kib, lanes, salt, wrapped, changed_at) VALUES (1, 'argon2id', ?, ?, ?, ?, ?, ?)",
			ours.passes, ours.memoryKiB, ours.lanes, ours.salt, ours.wrapped, tx.Now())
		if err != nil {
			return err
		}
		if !inserted {
			standing, _, err = selectVault(tx)
			return err
		}
		standing = ours
		return tx.Audit(store.Line{Actor: who.From(tx.Context()).Actor(), Action: "keyring.create", Target: "keyring"})
	})
	return standing, err
}

// Reseal changes the passphrase. Only the data key is wrapped anew, in one row; running instances go on working, and
// the old passphrase opens nothing once Reseal has returned (backups made before keep theirs).
//
// Faults: Denied passphrase_wrong; Invalid passphrase_missing; Conflict keyring_changed if another change was quicker.
func (r *Ring) Reseal(ctx context.Context, old, new []byte) error {
	before, found, err := readVault(ctx, r.db)
	if err == nil && !found {
		err = ErrDamaged // an open ring has a vault
	}
	if err != nil {
		return fmt.Errorf("reading the keyring: %w", err)
	}
	dataKey, err := before.unwrap(old)
	if err != nil {
		return err
	}
	defer clear(dataKey)
	after, err := wrap(dataKey, new, usual)
	if err != nil {
		return err
	}
	return r.db.Write(ctx, func(tx *store.Tx) error { return replaceVault(tx, before, after) })
}

func replaceVault(tx *store.Tx, before, after vault) error {
	standing, _, err := selectVault(tx)
	if err != nil {
		return err
	}
	if !bytes.Equal(standing.wrapped, before.wrapped) {
		return fault.New(fault.Conflict, "keyring_changed", "the passphrase was changed by somebody else in this moment")
	}
	if _, err := tx.Exec("UPDATE keyring_vault SET passes = ?, memory_kib = ?, lanes = ?, salt = ?, wrapped = ?, changed_at = ? WHERE id = 1",
		after.passes, after.memoryKiB, after.lanes, after.salt, after.wrapped, tx.Now()); err != nil {
		return err
	}
	return tx.Audit(store.Line{Actor: who.From(tx.Context()).Actor(), Action: "keyring.reseal", Target: "keyring"})
}

func readVault(ctx context.Context, db *store.Store) (v vault, found bool, err error) {
	err = db.Read(ctx, func(tx *store.Tx) error {
		v, found, err = selectVault(tx)
		return err
	})
	return v, found, err
}

func selectVault(tx *store.Tx) (vault, bool, error) {
	var v vault
	found, err := tx.One([]any{&v.passes, &v.memoryKiB, &v.lanes, &v.salt, &v.wrapped},
		"SELECT passes, memory_kib, lanes, salt, wrapped FROM keyring_vault WHERE id = 1")
	return v, found, err
}

// wrap seals the data key by the passphrase under a fresh salt.
func wrap(dataKey, passphrase []byte, c cost) (vault, error) {
	v := vault{cost: c, salt: make([]byte, 16)}
	rand.Read(v.salt)
	seal, err := v.passphraseSeal(passphrase)
	if err != nil {
		return vault{}, err
	}
	v.wrapped = sealBytes(seal, dataKey, v.context())
	return v, nil
}

func (v vault) unwrap(passphrase []byte) ([]byte, error) {
	seal, err := v.passphraseSeal(passphrase)
	if err != nil {
		return nil, err
	}
	dataKey, ok := openBytes(seal, v.wrapped, v.context())
	if !ok {
		return nil, errPassphraseWrong
	}
	return dataKey, nil
}

// passphraseSeal derives the wrapping key (RFC 9106).
func (v vault) passphraseSeal(passphrase []byte) (cipher.AEAD, error) {
	if len(passphrase) == 0 {
		return nil, fault.New(fault.Invalid, "passphrase_missing", "the keyring needs a passphrase, and none was given").
			WithHint("give it by prompt, by a file or by the environment")
	}
	if !v.bearable() {
		return nil, fmt.Errorf("stored cost %+v of the passphrase is out of bounds: %w", v.cost, ErrDamaged)
	}
	wrapping := argon2.IDKey(passphrase, v.salt, uint32(v.passes), uint32(v.memoryKiB), uint8(v.lanes), chacha20poly1305.KeySize)
	defer clear(wrapping)
	return newSeal(wrapping)
}

// context binds the wrapped data key to the parameters beside it.
func (v vault) context() []byte {
	c := []byte("chancery keyring vault 1\x00")
	for _, n := range []int64{v.passes, v.memoryKiB, v.lanes} {
		c = binary.BigEndian.AppendUint64(c, uint64(n))
	}
	return append(c, v.salt...)
}

func newSeal(secret []byte) (cipher.AEAD, error) {
	seal, err := chacha20poly1305.NewX(secret)
	if err != nil {
		return nil, fmt.Errorf("preparing the seal: %w", err)
	}
	return seal, nil
}

// sealBytes gives nonce and ciphertext in one. A nonce of 24 random bytes never repeats in practice
// (draft-irtf-cfrg-xchacha §3.1), so no counter has to survive a restore.
func sealBytes(seal cipher.AEAD, plain, context []byte) []byte {
	nonce := make([]byte, seal.NonceSize(), seal.NonceSize()+len(plain)+seal.Overhead())
	rand.Read(nonce)
	return seal.Seal(nonce, nonce, plain, context)
}

func openBytes(seal cipher.AEAD, sealed, context []byte) (plain []byte, ok bool) {
	if len(sealed) < seal.NonceSize() {
		return nil, false
	}
	nonce, ciphertext := sealed[:seal.NonceSize()], sealed[seal.NonceSize():]
	plain, err := seal.Open(nil, nonce, ciphertext, context)
	return plain, err == nil
}
