package store

import (
	"context"
	"fmt"
	"time"
)

const (
	sealEvery = 400 * time.Millisecond
	sealRows  = 4096             // rows of one seal, and those of the same transaction
	sealLate  = 10 * time.Second // how often to look for rows that appeared late
	signEvery = time.Hour
	sealLease = 15 * time.Second
)

// Sign signs the head of the audit chain; it may be called from any goroutine.
type Sign func(head []byte) (signature []byte, err error)

// SetSigner has the head of the audit chain signed from now on, first with the next seal, then hourly. The keyring
// that holds the key opens after the store.
func (s *Store) SetSigner(sign Sign) { s.sealer.sign.Store(&sign) }

// seal is one row of the chain.
type seal struct {
	number, epoch, at, high, members int64
	source, fields                   string
	positions                        spans
	content, hash, signature         []byte
}

// link gives the hash of this seal as the successor of the one with hash previous.
func (l *seal) link(previous []byte) []byte {
	sum := digest(l.number, l.epoch, l.at, l.source, l.fields, l.high, l.positions.String(), l.members, l.content, previous)
	return sum[:]
}

// seals seals what is committed, in this instance if it holds the lease, until ctx ends.
func (s *Store) seals(ctx context.Context) {
	ticker := time.NewTicker(sealEvery)
	defer ticker.Stop()
	failing := false
	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		err := s.sealRound(ctx)
		if err != nil && ctx.Err() == nil && !failing {
			s.config.Log.Warn("sealing the audit; trying on", "error", err)
		}
		failing = err != nil
	}
}

// sealRound seals until each source has less than a full seal's rows left.
func (s *Store) sealRound(ctx context.Context) error {
	mine, err := s.mine(ctx)
	if err != nil || !mine {
		return err
	}
	late := time.Since(s.sealer.looked) > sealLate
	if late || s.sealer.stale.Swap(false) {
		if err := s.Read(ctx, func(tx *Tx) (err error) {
			s.sealer.sources, err = s.sources(tx)
			return err
		}); err != nil {
			return fmt.Errorf("finding the tables: %w", err)
		}
	}
	for _, src := range s.sealer.sources {
		for more := true; more; {
			if more, err = s.sealNext(ctx, src, late); err != nil {
				return fmt.Errorf("sealing %s: %w", src.table, err)
			}
		}
	}
	if late {
		s.sealer.looked = time.Now()
	}
	return s.signHead(ctx)
}

// mine reports whether this instance is the sealer.
func (s *Store) mine(ctx context.Context) (bool, error) {
	if s.lock != nil { // the only process on its file
		return true, nil
	}
	if time.Now().Before(s.sealer.until) {
		return true, nil
	}
	held, err := s.Lease(ctx, "sealer", sealLease)
	if held {
		s.sealer.until = time.Now().Add(sealLease / 3)
	}
	return held, err
}

// sealNext writes the next seal of src, and reports whether there may be more to seal at once.
func (s *Store) sealNext(ctx context.Context, src source, late bool) (more bool, err error) {
	var next seal
	err = s.Read(ctx, func(tx *Tx) error {
		next, err = s.gather(tx, src, late)
		return err
	})
	if err != nil || next.members == 0 {
		return false, err
	}
	return next.members >= sealRows/2, s.append(ctx, next)
}

// append chains next to the latest seal.
func (s *Store) append(ctx context.Context, next seal) error {
	return s.Write(ctx, func(tx *Tx) error {
		last, err := latestSeal(tx)
		if err != nil {
			return err
		}
		next.number, next.at = last.number+1, tx.Now()
		next.hash = next.link(last.hash)
		_, err = tx.Exec(`INSERT INTO seal (number, epoch, at, source, fields, high, positions, members, content, hash, signature)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`, next.number, next.epoch, next.at, next.source, next.fields, next.high,
			next.positions.String(), next.members, next.content, next.hash, []byte{})
		return err
	})
}

// signHead signs the latest seal when a signature is due and it has none, outside of any transaction, and logs it:
// whoever keeps the log can tell a chain that was cut or rewritten.
func (s *Store) signHead(ctx context.Context) error {
	sign, due := s.sealer.due()
	if !due {
		return nil
	}
	var head seal
	if err := s.Read(ctx, func(tx *Tx) (err error) {
		head, err = latestSeal(tx)
		return err
	}); err != nil || head.number == 0 {
		return err
	}
	if len(head.signature) > 0 { // by an earlier process
		s.sealer.signed = time.Now()
		return nil
	}
	signature, err := sign(head.hash)
	if err != nil {
		return fmt.Errorf("signing the head of the audit: %w", err)
	}
	if err := s.Write(ctx, func(tx *Tx) error {
		_, err := tx.Exec("UPDATE seal SET signature = ? WHERE number = ?", signature, head.number)
		return err
	}); err != nil {
		return err
	}
	s.sealer.signed = time.Now()
	s.config.Log.Info("audit head", "number", head.number, "hash", fmt.Sprintf("%x", head.hash), "signature", fmt.Sprintf("%x", signature))
	return nil
}

// latestSeal gives the head of the chain; a chain without seals has number 0 and no hash.
func latestSeal(tx *Tx) (last seal, err error) {
	_, err = tx.One([]any{&last.number, &last.hash, &last.at, &last.signature}, "SELECT number, hash, at, signature FROM seal ORDER BY number DESC LIMIT 1")
	return last, err
}

// SealState says how far the audit is sealed.
type SealState struct {
	Number int64     // of the latest seal
	Hash   []byte    // of the latest seal: the head of the chain
	At     time.Time // of the latest seal
	Signed int64     // number of the latest signed seal
}

func sealState(tx *Tx) (state SealState, err error) {
	last, err := latestSeal(tx)
	if err != nil {
		return state, err
	}
	state = SealState{Number: last.number, Hash: last.hash, At: time.UnixMilli(last.at)}
	_, err = tx.One([]any{&state.Signed}, "SELECT number FROM seal WHERE signature <> ? ORDER BY number DESC LIMIT 1", []byte{})
	return state, err
}
