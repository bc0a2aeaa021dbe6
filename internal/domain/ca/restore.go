package ca

import (
	"time"

	"chancery/internal/core/store"
)

// Restored lets the numbers of revocation lists go on beyond those that were given out after a backup was taken, which
// nobody knows: lists come at most one a second. It runs in the transaction that ends a restore. Where numbers follow
// the clock this changes nothing; it counts where they had run ahead of it. Lists that are kept, since their key was
// taken away, keep their number.
func Restored(tx *store.Tx, takenAt int64) error {
	lost := max(tx.Now()-takenAt, 0)/int64(time.Second/time.Millisecond) + 1
	_, err := tx.Exec("UPDATE crl SET number = number + ? WHERE LENGTH(der) = 0", lost)
	return err
}
