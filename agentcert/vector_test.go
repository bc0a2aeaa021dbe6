package agentcert

import (
	"bytes"
	"crypto"
	"crypto/sha256"
	"crypto/x509"
	"encoding/asn1"
	"encoding/base64"
	"encoding/hex"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"chancery/capability"
)

// octets gives the octets from first to last.
func octets(first, last byte) []byte {
	var b []byte
	for v := int(first); v <= int(last); v++ {
		b = append(b, byte(v))
	}
	return b
}

// release is the input of the published version 1 vector.
func release(version int) *AIC {
	return &AIC{
		Version:      version,
		AgentID:      "agent-7",
		Principal:    PrincipalUID{Version: 1, Realm: "acme", Identifier: "alice", KeyHash: octets(1, 32), HashAlgorithm: crypto.SHA256},
		Capabilities: []capability.Capability{{Scheme: "ca", ID: "issue", Parameters: []byte(`{"tpl":"ci"}`)}},
		Constraints:  []capability.Capability{{Scheme: "constraint", ID: "ct1", Parameters: []byte(`{"x":1}`)}},
		Authorization: DelegationAuthorization{
			Reason:    Reason{Code: "ops", Description: "release pipeline"},
			Lifetime:  time.Hour,
			Timestamp: time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC),
			Nonce:     []byte("01234567890123456789012345678901"),
		},
	}
}

// query is the common input of the structure vectors.
func query() *AIC {
	return &AIC{
		Version:   1,
		AgentID:   "agent-109",
		Principal: PrincipalUID{Version: 1, Realm: "corp.com", Identifier: "zhangsan", KeyHash: octets(0, 31), HashAlgorithm: crypto.SHA256},
		Capabilities: []capability.Capability{
			{Scheme: "http", ID: "GET:/api/v1/users", Parameters: []byte{1, 2}},
			{Scheme: "db", ID: "SELECT:*"},
		},
		Constraints: tenNet(),
		Authorization: DelegationAuthorization{
			Reason:    Reason{Code: "http", Description: "Need to query users"},
			Lifetime:  time.Hour,
			Timestamp: time.Date(2026, 8, 18, 0, 0, 0, 0, time.UTC),
			Nonce:     octets(0xa0, 0xbf),
			Algorithm: x509.ECDSAWithSHA256,
			Signature: octets(0x20, 0x65),
		},
	}
}

func tenNet() []capability.Capability {
	return []capability.Capability{{Scheme: capability.ConstraintWireScheme, ID: "allowed-cidr", Parameters: []byte(`["10.0.0.0/8"]`)}}
}

// binding is the input of the version 2 vector with a short nonce, an unversioned principal and no key hash.
func binding() *AIC {
	return &AIC{
		Version:      2,
		AgentID:      "agent:x509-01",
		Principal:    PrincipalUID{Version: 0, Realm: "corp.com", Identifier: "zhangsan"},
		Capabilities: []capability.Capability{{Scheme: "ca", ID: "issue"}},
		Authorization: DelegationAuthorization{
			Reason:    Reason{Code: "DATA_ANALYSIS", Description: "v2 binding vector"},
			Lifetime:  time.Hour,
			Timestamp: time.Date(2025, 8, 18, 6, 53, 20, 0, time.UTC),
			Nonce:     octets(1, 16),
		},
	}
}

// spkiP is the agent key of the binding vector.
func spkiP(t *testing.T) []byte {
	t.Helper()
	der, err := base64.StdEncoding.DecodeString("MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE44H9QvDhhiXgJ9P1JuZ6TQUHDTi0OHLvQxsM0J1QzTwi1PYliVWFEGIJJZasyRMPBeBHbb9i4W7ZngTyneoW4A==")
	if err != nil {
		t.Fatal(err)
	}
	return der
}

const releaseTBS = `3081e30201010c076167656e742d3730410201010c0461636d650c05616c696365
04200102030405060708090a0b0c0d0e0f1011121314
15161718191a1b1c1d1e1f20a00d300b060960864801650304020130170c036f70730c1072656c6561736520706970656c696e65301d
301b0c0263610c056973737565a00e040c7b2274706c223a226369227d020100a020301e301c0c0a636f6e73747261696e740c03637431
a00904077b2278223a317d02020e10180f32303236303330343035303630375a0420
3031323334353637383930313233343536373839303132333435363738393031`

func TestVectors(t *testing.T) {
	t.Parallel()
	policy := &PrincipalAuthorization{
		Version:     1,
		Grants:      []capability.Capability{{Scheme: "database", ID: "query:SELECT"}, {Scheme: "http", ID: "GET:*"}},
		Constraints: tenNet(),
		Policy:      &DelegationPolicy{Version: 1, MaxAgents: 8, AllowedMode: Representative},
	}
	signed := func(a *AIC, spki []byte) func() ([]byte, error) {
		return func() ([]byte, error) { return a.SignedBytes(spki) }
	}
	tests := []struct {
		name   string
		encode func() ([]byte, error)
		size   int
		sum    string
	}{
		{"signed bytes v1", signed(release(1), nil), 230, "e484e4cabd65a89362a566ce5eb6708a3f619a02aa359f15cf366739be29ce8b"},
		{"signed bytes v2", signed(release(2), []byte("agent-spki-der-000infinity")), 284, "a03fe1a8f8615471fdd5b3af419f88b08917fee49964904b0aabb8a9fc001fc8"},
		{"extension", query().Encode, 377, "5e546a841485a0a447542648380137364ed24e8ad625ca0b401ee62d53f7bf8b"},
		{"signed bytes of the extension", signed(query(), nil), 290, "4d7ea1c3fae321aae0212dbf622e1165d954a9dbe5b9ec2de366ca94cc6aa726"},
		{"principal authorization", policy.Encode, 121, "56ccc51b101b606dabc370d01d3e9aa0e39611b287e2353028abf952e246781a"},
		{"signed bytes with short nonce", signed(binding(), spkiP(t)), 194, "3f07751cc20ea7eabb4ad20f15361835ad2a2e9b32dd04034d3117fce2bbc401"},
	}
	for _, tt := range tests {
		got, err := tt.encode()
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		if sum := sha256.Sum256(got); len(got) != tt.size || hex.EncodeToString(sum[:]) != tt.sum {
			t.Errorf("%s: %d octets, want %d: %x", tt.name, len(got), tt.size, got)
		}
	}
}

func TestVectorBytes(t *testing.T) {
	t.Parallel()
	want, err := hex.DecodeString(strings.ReplaceAll(releaseTBS, "\n", ""))
	if err != nil {
		t.Fatal(err)
	}
	got, err := release(1).SignedBytes(nil)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("v1: got %x (%v)\nwant %x", got, err, want)
	}
	const tail = "a13330310420c3bad66b7c65fb78298a58b42168d8599bc856a88e080a6d87aca2fe8d55cf1ea00d300b0609608648016503040201"
	got, err = release(2).SignedBytes([]byte("agent-spki-der-000infinity"))
	if err != nil || !strings.HasSuffix(hex.EncodeToString(got), tail) {
		t.Errorf("v2: got %x (%v)\nwant it to end in %s", got, err, tail)
	}
	e := &encoder{}
	e.extension(&Extension{ID: asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 66257, 3, 1}, Value: []byte{0xde, 0xad}})
	if hex.EncodeToString(e.out) != "3013060a2b0601040184855103010101000402dead" {
		t.Errorf("extension field: %x", e.out)
	}
	for id, want := range map[string]string{
		OIDExtension.String():              "060a2b060104018485510101",
		OIDPrincipalAuthorization.String(): "060a2b060104018485510102",
		OIDDepthControl.String():           "060b2b06010401848551010104",
	} {
		oid, _ := x509.ParseOID(id)
		der, _ := oid.MarshalBinary()
		if got := hex.EncodeToString(der); got != want[4:] {
			t.Errorf("%s is %s, want %s", id, got, want[4:])
		}
	}
}

func TestKeyHashVector(t *testing.T) {
	t.Parallel()
	hash := KeyHash(spkiP(t))
	if got := base64.RawURLEncoding.EncodeToString(hash[:]); got != "AzI5g3OUET8jssmYEYgla0j6so9XAqNe9YxTubyiXAE" {
		t.Errorf("got %s", got)
	}
}

// The vector's parameters 01 02 are no JSON: the wire form keeps them, validation refuses them.
func TestVectorReadsBack(t *testing.T) {
	t.Parallel()
	der, err := query().Encode()
	if err != nil {
		t.Fatal(err)
	}
	got, err := ParseAIC(der)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(query(), got); diff != "" {
		t.Error(diff)
	}
	if err := got.Validate(); err == nil {
		t.Error("parameters that are no JSON pass validation")
	}
}
