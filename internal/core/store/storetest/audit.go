package storetest

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"chancery/internal/core/store"
)

// signer gives a signing function and its check.
func signer(t testing.TB) (store.Sign, func(head, signature []byte) error) {
	t.Helper()
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	return func(head []byte) ([]byte, error) { return ed25519.Sign(private, head), nil },
		func(head, signature []byte) error {
			if !ed25519.Verify(public, head, signature) {
				return errors.New("not by this key")
			}
			return nil
		}
}

// record writes some audit lines and hot rows, and waits until they are sealed.
func (b bench) record(t *testing.T, first int64) {
	t.Helper()
	for i := range int64(5) {
		err := b.Write(t.Context(), func(tx *store.Tx) error {
			return tx.Audit(store.Line{Actor: "per_1", Action: "test", Target: fmt.Sprint(first + i), Detail: "{}"})
		})
		if err != nil {
			t.Fatal(err)
		}
		b.append(t, Row(first+i, []byte("der")))
	}
	b.sealed(t)
}

// sealed waits until no row is unsealed, for three seconds at most: the promise is one, the test machine is shared.
func (b bench) sealed(t *testing.T) store.Verification {
	t.Helper()
	for limit := time.Now().Add(3 * time.Second); ; {
		v, err := b.VerifyAudit(t.Context(), nil, nil)
		if err != nil {
			t.Fatalf("verifying: %v", err)
		}
		rest := int64(0)
		for _, n := range v.Unsealed {
			rest += n
		}
		if rest == 0 {
			return v
		}
		if time.Now().After(limit) {
			t.Fatalf("%d rows are not sealed", rest)
		}
		<-time.After(50 * time.Millisecond) // polls what has no event
	}
}

func auditIsSealed(t *testing.T, b bench) {
	sign, check := signer(t)
	b.SetSigner(sign)
	b.record(t, 100)
	b.record(t, 200)
	v, err := b.VerifyAudit(t.Context(), check, nil)
	if err != nil || len(v.Faults) > 0 {
		t.Fatalf("a whole chain: %v, %q", err, v.Faults)
	}
	if v.Rows != 20 || v.Signed == 0 {
		t.Errorf("%d rows sealed, seal %d signed; want 20 rows and a signature", v.Rows, v.Signed)
	}
	_, other := signer(t)
	if v, _ = b.VerifyAudit(t.Context(), other, nil); len(v.Faults) == 0 {
		t.Error("a signature of another key was accepted")
	}
}

// tampering changes the database behind the store's back, in each of the ways that must show.
func tamperingShows(t *testing.T, b bench) {
	b.record(t, 100)
	b.record(t, 200)
	v := b.sealed(t)
	head := store.Head{Number: v.Seals, Hash: v.Head}
	for _, c := range []struct{ what, shown, statement, undo string }{
		{"a changed line", "a row of audit", "UPDATE audit SET actor = 'per_2' WHERE target = '102'", "UPDATE audit SET actor = 'per_1' WHERE target = '102'"},
		{"a changed hot row", "a row of sample_certificate", "UPDATE sample_certificate SET not_after = not_after + 1", "UPDATE sample_certificate SET not_after = not_after - 1"},
		{"a changed seal", "does not continue the chain", "UPDATE seal SET members = members + 1 WHERE number = 1", "UPDATE seal SET members = members - 1 WHERE number = 1"},
		{"a removed line", "rows of audit; 4 are there", "DELETE FROM audit WHERE target = '103'", ""},
		{"a cut tail", "written down elsewhere", "DELETE FROM seal WHERE number >= 2", ""},
	} {
		b.tamper(t, c.statement)
		v, err := b.VerifyAudit(t.Context(), nil, []store.Head{head})
		if err != nil || !strings.Contains(strings.Join(v.Faults, "; "), c.shown) {
			t.Errorf("%s did not show: %v, %q", c.what, err, v.Faults)
		}
		if c.undo != "" {
			b.tamper(t, c.undo)
			if v, err := b.VerifyAudit(t.Context(), nil, []store.Head{head}); err != nil || len(v.Faults) > 0 {
				t.Fatalf("after undoing %s: %v, %q", c.what, err, v.Faults)
			}
		}
	}
}

func (b bench) tamper(t *testing.T, statement string) {
	t.Helper()
	if err := b.Write(t.Context(), func(tx *store.Tx) error {
		_, err := tx.Exec(statement)
		return err
	}); err != nil {
		t.Fatalf("tampering: %v", err)
	}
}

func retiredRowsAreNamed(t *testing.T, b bench) {
	b.record(t, 100)
	b.record(t, 200)
	before := Row(200, nil)[8].(int64)
	n, err := b.Retire(t.Context(), "sample_certificate", store.Lifetime{Born: "not_before", Ends: "not_after"}, before, "ten minutes after the end")
	if err != nil || n != 5 {
		t.Fatalf("%d rows retired, %v; want 5", n, err)
	}
	v := b.sealed(t)
	if len(v.Faults) > 0 || v.Retired != 5 {
		t.Errorf("after retention: %d retired, faults %q", v.Retired, v.Faults)
	}
	if n, err := b.Retire(t.Context(), "sample_certificate", store.Lifetime{Born: "not_before", Ends: "not_after"}, 1<<60, "all"); err != nil || n != 4 {
		t.Errorf("%d of 5 rows retired, %v; want all but the latest", n, err)
	}
	b.record(t, 300)
	if v = b.sealed(t); len(v.Faults) > 0 {
		t.Errorf("rows after retention: %q", v.Faults)
	}
	b.tamper(t, "DELETE FROM sample_certificate WHERE agent = 'agt_0000000000000303'")
	if v = b.sealed(t); len(v.Faults) == 0 {
		t.Error("a row removed without a rule did not show")
	}
}
