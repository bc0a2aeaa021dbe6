package pkix

import (
	"bytes"
	"crypto"
	"encoding/base64"
	"net/url"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ocsp"

	"chancery/internal/base/id"
	"chancery/internal/base/key"
	"chancery/internal/domain/ca/pkix/pkixtest"
)

func TestParseOCSP(t *testing.T) {
	t.Parallel()
	root := testRoot(t, key.P256)
	serial := newSerial()
	for _, hash := range []crypto.Hash{crypto.SHA1, crypto.SHA256, crypto.SHA384, crypto.SHA512} {
		r, ok := ParseOCSP(pkixtest.Question(t, root.Cert, serial, hash, -1))
		if !ok || len(r.Certs) != 1 || !bytes.Equal(r.Certs[0].Serial, serial) || !root.IsNamedBy(&r.Certs[0]) || r.Nonce != nil {
			t.Errorf("%s: %v %+v", hash, ok, r)
		}
		if ok && testRoot(t, key.P384).IsNamedBy(&r.Certs[0]) {
			t.Errorf("%s: another issuer feels named", hash)
		}
	}
	for length, want := range map[int]bool{0: false, 1: true, 16: true, 32: true, 128: true, 129: false} {
		r, ok := ParseOCSP(pkixtest.Question(t, root.Cert, serial, crypto.SHA1, length))
		if ok != want || ok && len(r.Nonce) < length {
			t.Errorf("nonce of %d octets: accepted %v, want %v", length, ok, want) // RFC 9654 §2.1
		}
	}
	whole := pkixtest.Question(t, root.Cert, serial, crypto.SHA1, 16)
	for cut := range whole {
		if _, ok := ParseOCSP(whole[:cut]); ok {
			t.Errorf("the first %d octets are accepted", cut)
		}
	}
	if _, ok := ParseOCSP(append(bytes.Clone(whole), 0)); ok {
		t.Error("trailing octets are accepted")
	}
}

func TestDecodeOCSPPath(t *testing.T) {
	t.Parallel()
	der := bytes.Repeat([]byte{0xfb, 0xff, 0x3e}, 20)
	std := base64.StdEncoding.EncodeToString(append(der, 1))
	for _, path := range []string{std, url.PathEscape(std), url.QueryEscape(std), base64.RawURLEncoding.EncodeToString(append(der, 1))} {
		got, err := DecodeOCSPPath(path)
		if err != nil || !bytes.Equal(got, append(der, 1)) {
			t.Errorf("%s: %x, %v", path, got, err)
		}
	}
	for _, path := range []string{"%zz", "!!!", strings.Repeat("A", 4*ocspRequestMax)} {
		_, err := DecodeOCSPPath(path)
		pkixtest.WantFault(t, "ocsp_malformed", err)
	}
}

// TestOCSPAnswer reads our answers with x/crypto/ocsp and with openssl, for each kind of issuer and state.
func TestOCSPAnswer(t *testing.T) {
	t.Parallel()
	now := time.Now().Truncate(time.Second)
	revokedAt := now.Add(-time.Hour)
	for _, kind := range []key.Kind{key.P256, key.P384, key.Ed25519, key.RSA2048} {
		root := testRoot(t, kind)
		for _, status := range []Status{{State: Good}, {State: Unknown}, {State: Revoked, At: revokedAt}, {State: Revoked, At: revokedAt, Reason: KeyCompromise}} {
			serial := newSerial()
			question := pkixtest.Question(t, root.Cert, serial, crypto.SHA256, 32)
			r, ok := ParseOCSP(question)
			if !ok {
				t.Fatal("the question is refused")
			}
			der, err := root.AnswerOCSP([]Verdict{{Cert: r.Certs[0].Raw, Status: status, From: now, Until: now.Add(time.Minute)}}, r.Nonce, now)
			if err != nil {
				t.Fatal(err)
			}
			if kind != key.Ed25519 { // x/crypto/ocsp knows no Ed25519
				compareOCSP(t, der, root, serial, status, now)
			}
			said := pkixtest.AskOpenSSL(t, root.Cert, question, der)
			if want := map[State]string{Good: "good", Unknown: "unknown", Revoked: "revoked"}[status.State]; !strings.Contains(said, "Cert Status: "+want) || !strings.Contains(said, "Response verify OK") {
				t.Errorf("%s %v: openssl says\n%s", kind, status, said)
			}
			if status.Reason == KeyCompromise && !strings.Contains(said, "keyCompromise") {
				t.Errorf("%s: no reason in\n%s", kind, said)
			}
		}
	}
}

func compareOCSP(t *testing.T, der []byte, i *Issuer, serial id.Serial, want Status, now time.Time) {
	t.Helper()
	got, err := ocsp.ParseResponse(der, i.Cert)
	if err != nil {
		t.Fatal(err)
	}
	states := map[State]int{Good: ocsp.Good, Unknown: ocsp.Unknown, Revoked: ocsp.Revoked}
	if got.Status != states[want.State] || got.SerialNumber.Cmp(serial.Big()) != 0 || !got.ThisUpdate.Equal(now) || !got.NextUpdate.Equal(now.Add(time.Minute)) || !got.ProducedAt.Equal(now) {
		t.Errorf("got %+v", got)
	}
	if want.State == Revoked && (!got.RevokedAt.Equal(want.At) || got.RevocationReason != int(want.Reason)) {
		t.Errorf("revoked at %s for %d, want %s for %d", got.RevokedAt, got.RevocationReason, want.At, want.Reason)
	}
}

func FuzzParseOCSP(f *testing.F) {
	root := testRoot(f, key.P256)
	f.Add(pkixtest.Question(f, root.Cert, newSerial(), crypto.SHA1, -1))
	f.Add(pkixtest.Question(f, root.Cert, newSerial(), crypto.SHA256, 32))
	f.Fuzz(func(t *testing.T, der []byte) {
		r, ok := ParseOCSP(der)
		if !ok {
			return
		}
		if len(r.Certs) == 0 || len(r.Certs) > ocspCertsMax {
			t.Errorf("%d certificates", len(r.Certs))
		}
		for _, c := range r.Certs {
			if len(c.Serial) > 21 {
				t.Errorf("a serial of %d octets", len(c.Serial))
			}
			root.IsNamedBy(&c)
		}
		if _, err := ocsp.ParseRequest(der); err != nil && len(r.Certs) == 1 && !r.Certs[0].foreign {
			t.Logf("x/crypto/ocsp disagrees: %v", err) // it wants a NULL where RFC 6960 lets parameters be absent
		}
	})
}

func FuzzDecodeOCSPPath(f *testing.F) {
	f.Add("MEIwQDA-")
	f.Add("%2B/=")
	f.Fuzz(func(t *testing.T, path string) {
		der, err := DecodeOCSPPath(path)
		if err != nil {
			return
		}
		again, err := DecodeOCSPPath(base64.RawURLEncoding.EncodeToString(der))
		if err != nil || !bytes.Equal(again, der) {
			t.Errorf("%x comes back as %x, %v", der, again, err)
		}
	})
}

func BenchmarkOCSPAnswer(b *testing.B) {
	root := testRoot(b, key.P256)
	r, _ := ParseOCSP(pkixtest.Question(b, root.Cert, newSerial(), crypto.SHA1, -1))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := root.AnswerOCSP([]Verdict{{Cert: r.Certs[0].Raw, Status: Status{State: Good}, From: testTime, Until: testTime}}, nil, testTime); err != nil {
			b.Fatal(err)
		}
	}
}
