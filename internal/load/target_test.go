package load

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net/http"
	"net/http/httptest"
	"path"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"

	"chancery/api"
	"chancery/internal/load/bare"
)

// certificateUntil makes a certificate that ends at a time.
func certificateUntil(t *testing.T, end time.Time) []byte {
	t.Helper()
	key, root, err := bare.NewAuthority()
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: end.Add(-time.Hour), NotAfter: end}
	der, err := x509.CreateCertificate(nil, template, root, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return der
}

// TestLookUpSeesRevocations: a certificate that is there and the same, but revoked, is not what was answered. One that
// expired in the run is.
func TestLookUpSeesRevocations(t *testing.T) {
	past, future := certificateUntil(t, time.Now().Add(-time.Minute)), certificateUntil(t, time.Now().Add(time.Hour))
	records := map[string]struct {
		status string
		der    []byte
	}{
		"01": {"good", future}, "02": {"revoked", future}, "03": {"expired", past}, "04": {"expired", future}, "05": {"", future}, "06": {"revoked", past},
	}
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		r, ok := records[path.Base(q.URL.Path)]
		if !ok { // OCSP is asked for the first one only, and is not the matter here
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		_ = json.MarshalWrite(w, api.Certificate{Status: r.status, PEM: string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: r.der}))})
	}))
	defer server.Close()
	issuer, err := x509.ParseCertificate(future)
	if err != nil {
		t.Fatal(err)
	}
	one := &target{address: server.Listener.Addr().String(), tls: &tls.Config{RootCAs: x509.NewCertPool(), ServerName: "example.com"}, issuers: map[string]*x509.Certificate{"agents": issuer}}
	one.tls.RootCAs.AddCert(server.Certificate())
	var all []issued
	for _, serial := range []string{"01", "02", "03", "04", "05", "06"} {
		all = append(all, issued{serial: serial, sum: sha256.Sum256(records[serial].der)})
	}
	got := one.lookUp(t.Context(), all, "agents", 100)
	if want := (Lookup{LookedUp: 6, Invalid: 4, OCSPAsked: 1, OCSPWrong: 1}); !cmp.Equal(want, countsOf(got)) {
		t.Errorf("looked up as %+v, want %+v", got, want)
	}
	if (Lookup{Invalid: 1}).failed() == nil {
		t.Error("a run whose certificates were revoked did not fail")
	}
	if got := one.lookUpStored(t.Context(), all); got.failed() != nil || got.FirstWrong != "" {
		t.Errorf("where some were revoked on purpose: %+v", got)
	}
}

// countsOf leaves of a look-up what is counted.
func countsOf(l Lookup) Lookup {
	l.DurationSec, l.FirstWrong = 0, ""
	return l
}
