package store

import (
	"crypto/sha256"
	"encoding/binary"

	"chancery/internal/core/store/internal/engine"
)

// A Line is one entry of the audit: who did what to what. Detail is a small JSON object or empty. Time and hash are
// the store's.
type Line struct{ Actor, Action, Target, Detail string }

// Audit adds l to the audit in this transaction. The line carries its own hash at once; the sealer chains and signs it
// within a second of the commit.
func (tx *Tx) Audit(l Line) error {
	sum := l.hash(tx.now)
	_, err := tx.Exec("INSERT INTO audit (at, actor, action, target, detail, hash) VALUES (?, ?, ?, ?, ?, ?)",
		tx.now, l.Actor, l.Action, l.Target, l.Detail, sum[:])
	return err
}

// hash covers every field with its length, so that no two lines share their bytes.
func (l Line) hash(at int64) [sha256.Size]byte {
	return digest(at, l.Actor, l.Action, l.Target, l.Detail)
}

// digest hashes int64, string, []byte and nil values, each with its kind and length.
func digest(values ...any) [sha256.Size]byte {
	b := make([]byte, 0, engine.Size(values)+10*len(values))
	for _, v := range values {
		b = appendValue(b, v)
	}
	return sha256.Sum256(b)
}

// appendValue encodes one value so that it can be told from every other sequence of values.
func appendValue(b []byte, v any) []byte {
	switch v := v.(type) {
	case int64:
		return binary.BigEndian.AppendUint64(append(b, 'i'), uint64(v))
	case string:
		return append(binary.AppendUvarint(append(b, 't'), uint64(len(v))), v...)
	case []byte:
		return append(binary.AppendUvarint(append(b, 'b'), uint64(len(v))), v...)
	}
	return append(b, 'n')
}
