package ca

import (
	"bytes"
	"crypto"
	"encoding/base64"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/cryptobyte"
	tag "golang.org/x/crypto/cryptobyte/asn1"
	"golang.org/x/crypto/ocsp"

	"chancery/internal/base/id"
	"chancery/internal/base/key"
)

// ocspQuestion writes a request for one serial with x/crypto/ocsp, and puts a nonce of the given length into it.
func ocspQuestion(t testing.TB, i *issuer, serial id.Serial, hash crypto.Hash, nonce int) []byte {
	t.Helper()
	leaf := parsed(t, i.cert.Raw)
	leaf.SerialNumber = serial.Big()
	der, err := ocsp.CreateRequest(leaf, i.cert, &ocsp.RequestOptions{Hash: hash})
	if err != nil {
		t.Fatal(err)
	}
	if nonce < 0 {
		return der
	}
	input, outer, tbs := cryptobyte.String(der), cryptobyte.String(nil), cryptobyte.String(nil)
	if !input.ReadASN1(&outer, tag.SEQUENCE) || !outer.ReadASN1(&tbs, tag.SEQUENCE) {
		t.Fatal("x/crypto/ocsp wrote something else")
	}
	var value, b cryptobyte.Builder
	value.AddASN1OctetString(bytes.Repeat([]byte{7}, nonce))
	b.AddASN1(tag.SEQUENCE, sequence(func(b *cryptobyte.Builder) {
		b.AddBytes(tbs)
		b.AddASN1(explicit(2), sequence(func(b *cryptobyte.Builder) { addExtension(b, oidOCSPNonce, false, octets(value.BytesOrPanic())) }))
	}))
	return b.BytesOrPanic()
}

func TestParseOCSP(t *testing.T) {
	t.Parallel()
	root := testRoot(t, key.P256)
	serial := newSerial()
	for _, hash := range []crypto.Hash{crypto.SHA1, crypto.SHA256, crypto.SHA384, crypto.SHA512} {
		r, ok := parseOCSP(ocspQuestion(t, root, serial, hash, -1))
		if !ok || len(r.certs) != 1 || !bytes.Equal(r.certs[0].serial, serial) || !root.isNamedBy(&r.certs[0]) || r.nonce != nil {
			t.Errorf("%s: %v %+v", hash, ok, r)
		}
		if ok && testRoot(t, key.P384).isNamedBy(&r.certs[0]) {
			t.Errorf("%s: another issuer feels named", hash)
		}
	}
	for length, want := range map[int]bool{0: false, 1: true, 16: true, 32: true, 128: true, 129: false} {
		r, ok := parseOCSP(ocspQuestion(t, root, serial, crypto.SHA1, length))
		if ok != want || ok && len(r.nonce) < length {
			t.Errorf("nonce of %d octets: accepted %v, want %v", length, ok, want) // RFC 9654 §2.1
		}
	}
	whole := ocspQuestion(t, root, serial, crypto.SHA1, 16)
	for cut := range whole {
		if _, ok := parseOCSP(whole[:cut]); ok {
			t.Errorf("the first %d octets are accepted", cut)
		}
	}
	if _, ok := parseOCSP(append(bytes.Clone(whole), 0)); ok {
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
		wantFault(t, "ocsp_malformed", err)
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
			question := ocspQuestion(t, root, serial, crypto.SHA256, 32)
			r, ok := parseOCSP(question)
			if !ok {
				t.Fatal("the question is refused")
			}
			der, err := root.answerOCSP([]verdict{{cert: r.certs[0].raw, status: status, from: now, until: now.Add(time.Minute)}}, r.nonce, now)
			if err != nil {
				t.Fatal(err)
			}
			if kind != key.Ed25519 { // x/crypto/ocsp knows no Ed25519
				compareOCSP(t, der, root, serial, status, now)
			}
			said := askOpenSSL(t, root, question, der)
			if want := map[State]string{Good: "good", Unknown: "unknown", Revoked: "revoked"}[status.State]; !strings.Contains(said, "Cert Status: "+want) || !strings.Contains(said, "Response verify OK") {
				t.Errorf("%s %v: openssl says\n%s", kind, status, said)
			}
			if status.Reason == KeyCompromise && !strings.Contains(said, "keyCompromise") {
				t.Errorf("%s: no reason in\n%s", kind, said)
			}
		}
	}
}

func compareOCSP(t *testing.T, der []byte, i *issuer, serial id.Serial, want Status, now time.Time) {
	t.Helper()
	got, err := ocsp.ParseResponse(der, i.cert)
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

// readOCSP gives what an answer says, as x/crypto/ocsp reads it.
func readOCSP(t testing.TB, der []byte, i *issuer) (State, Reason) {
	t.Helper()
	got, err := ocsp.ParseResponse(der, i.cert)
	if err != nil {
		t.Fatal(err)
	}
	return map[int]State{ocsp.Good: Good, ocsp.Unknown: Unknown, ocsp.Revoked: Revoked}[got.Status], Reason(got.RevocationReason)
}

// askOpenSSL lets `openssl ocsp` judge an answer against its question, nonce included.
func askOpenSSL(t *testing.T, i *issuer, question, answer []byte) string {
	t.Helper()
	dir := t.TempDir()
	req, resp := filepath.Join(dir, "req.der"), filepath.Join(dir, "resp.der")
	for path, data := range map[string][]byte{req: question, resp: answer} {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ca := pemFile(t, "CERTIFICATE", i.cert.Raw)
	return openssl(t, "ocsp", "-reqin", req, "-respin", resp, "-issuer", ca, "-CAfile", ca, "-text", "-no_check_time")
}

func FuzzParseOCSP(f *testing.F) {
	root := testRoot(f, key.P256)
	f.Add(ocspQuestion(f, root, newSerial(), crypto.SHA1, -1))
	f.Add(ocspQuestion(f, root, newSerial(), crypto.SHA256, 32))
	f.Fuzz(func(t *testing.T, der []byte) {
		r, ok := parseOCSP(der)
		if !ok {
			return
		}
		if len(r.certs) == 0 || len(r.certs) > ocspCertsMax {
			t.Errorf("%d certificates", len(r.certs))
		}
		for _, c := range r.certs {
			if len(c.serial) > 21 {
				t.Errorf("a serial of %d octets", len(c.serial))
			}
			root.isNamedBy(&c)
		}
		if _, err := ocsp.ParseRequest(der); err != nil && len(r.certs) == 1 && !r.certs[0].foreign {
			t.Logf("x/crypto/ocsp disagrees: %v", err) // it wants a NULL where RFC 6960 lets parameters be absent
		}
	})
}

func BenchmarkOCSPAnswer(b *testing.B) {
	root := testRoot(b, key.P256)
	r, _ := parseOCSP(ocspQuestion(b, root, newSerial(), crypto.SHA1, -1))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := root.answerOCSP([]verdict{{cert: r.certs[0].raw, status: Status{State: Good}, from: testTime, until: testTime}}, nil, testTime); err != nil {
			b.Fatal(err)
		}
	}
}
