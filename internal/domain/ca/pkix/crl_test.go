package pkix

import (
	"bytes"
	"crypto/x509"
	"fmt"
	"strings"
	"testing"
	"time"

	zx509 "github.com/zmap/zcrypto/x509"
	"github.com/zmap/zlint/v3"
	"github.com/zmap/zlint/v3/lint"

	"chancery/internal/base/id"
	"chancery/internal/base/key"
	"chancery/internal/domain/ca/pkix/pkixtest"
)

// TestCRL reads our lists with crypto/x509, openssl and the RFC lints, for each kind of issuer, empty and filled.
func TestCRL(t *testing.T) {
	t.Parallel()
	for _, kind := range []key.Kind{key.P256, key.P384, key.Ed25519, key.RSA2048} {
		for _, count := range []int{0, 3} {
			t.Run(fmt.Sprintf("%s/%d", kind, count), func(t *testing.T) {
				root := testRoot(t, kind)
				r := NewRoll()
				serials := make([]id.Serial, count)
				for n := range serials {
					serials[n] = newSerial()
					mustAdd(t, r, serials[n], Reason(n)) // unspecified, keyCompromise, cACompromise
				}
				der, err := root.SignCRL(r, 1_772_600_767, testTime, testTime.Add(time.Hour))
				if err != nil {
					t.Fatal(err)
				}
				compareCRL(t, der, root, serials)
				lintCRL(t, der)
				file, ca := pkixtest.PEM(t, "X509 CRL", der), pkixtest.PEM(t, "CERTIFICATE", root.Cert.Raw)
				if said := pkixtest.OpenSSL(t, "crl", "-in", file, "-CAfile", ca, "-noout", "-text"); !strings.Contains(said, "verify OK") || strings.Contains(said, "Unspecified") {
					t.Errorf("openssl says\n%s", said)
				}
			})
		}
	}
}

func mustAdd(t testing.TB, r *Roll, serial id.Serial, reason Reason) {
	t.Helper()
	if err := r.Add(serial, testTime, reason); err != nil {
		t.Fatal(err)
	}
}

func compareCRL(t *testing.T, der []byte, i *Issuer, want []id.Serial) {
	t.Helper()
	list, err := x509.ParseRevocationList(der)
	if err != nil {
		t.Fatal(err)
	}
	if err := list.CheckSignatureFrom(i.Cert); err != nil {
		t.Error(err)
	}
	if list.Number.Int64() != 1_772_600_767 || !list.ThisUpdate.Equal(testTime) || !list.NextUpdate.Equal(testTime.Add(time.Hour)) || !bytes.Equal(list.AuthorityKeyId, i.Cert.SubjectKeyId) {
		t.Errorf("number %s, from %s until %s", list.Number, list.ThisUpdate, list.NextUpdate)
	}
	if len(list.RevokedCertificateEntries) != len(want) {
		t.Fatalf("%d entries, want %d", len(list.RevokedCertificateEntries), len(want))
	}
	for n, e := range list.RevokedCertificateEntries {
		if e.SerialNumber.Cmp(want[n].Big()) != 0 || e.ReasonCode != n || !e.RevocationTime.Equal(testTime) {
			t.Errorf("entry %d: %+v", n, e)
		}
		if n == 0 && len(e.Extensions) > 0 {
			t.Error("an unspecified reason is written")
		}
	}
}

func lintCRL(t *testing.T, der []byte) {
	t.Helper()
	list, err := zx509.ParseRevocationList(der)
	if err != nil {
		t.Fatal(err)
	}
	rules, err := lint.GlobalRegistry().Filter(lint.FilterOptions{IncludeSources: lintSources})
	if err != nil {
		t.Fatal(err)
	}
	if err := complaints(zlint.LintRevocationListEx(list, rules)); err != nil {
		t.Error(err)
	}
}

func TestRollHoldsEachSerialOnce(t *testing.T) {
	t.Parallel()
	r := NewRoll()
	serial := newSerial()
	mustAdd(t, r, serial, Superseded)
	size := len(r.entries)
	mustAdd(t, r, serial, KeyCompromise)
	if len(r.entries) != size {
		t.Error("entered twice")
	}
}

// BenchmarkCRL100k is one more revocation with 100,000 entries there already (C8 in docs/performance.md).
func BenchmarkCRL100k(b *testing.B) {
	root := testRoot(b, key.P256)
	r := NewRoll()
	for range 100_000 {
		mustAdd(b, r, newSerial(), KeyCompromise)
	}
	b.ReportAllocs()
	for b.Loop() {
		mustAdd(b, r, newSerial(), KeyCompromise)
		if _, err := root.SignCRL(r, 1, testTime, testTime.Add(time.Hour)); err != nil {
			b.Fatal(err)
		}
	}
}
