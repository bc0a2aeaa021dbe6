package load

import (
	"context"
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"

	"chancery/api"
)

// The bare handler's routes, one for each way to prove who asks, and one that asks for no proof and does nothing.
const (
	bareEcho    = "/echo"     // the JSON of both directions alone
	bareBearer  = "/bearer"   // a hashed bearer token; the request's signature proves the key
	bareOneTime = "/one-time" // a token signed for this one request: one more verification
	bareRenewal = "/renewal"  // a bearer token, and a key that is proved already
)

// A greeting is what the bare handler tells whoever started it.
type greeting struct {
	Address string   `json:"address"`
	Root    string   `json:"root"`   // PEM
	Tokens  []string `json:"tokens"` // bearer tokens
	Key     []byte   `json:"key"`    // PKCS#8; signs one-time tokens
}

// bareTokens is how many bearer tokens the bare handler knows.
const bareTokens = 64

// Bare is the bare handler: it listens on the loopback interface, writes a greeting to out, and serves until in ends or
// ctx does. It does the work of an ordinary certificate and nothing else: HTTPS, JSON, a token, proof of possession,
// patched octets, one signature, a synced record. There is no policy, no revocation, no audit and no search, so no
// server can be faster. dir takes the journal.
func Bare(ctx context.Context, dir string, in io.Reader, out io.Writer) error {
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(runtime.NumCPU() + 2) // a thread in fsync keeps its processor
	}
	b, hello, err := newBare(dir)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	hello.Address = listener.Addr().String()
	text, err := json.Marshal(hello)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(out, "%s\n", text); err != nil {
		return err
	}
	server := &http.Server{Handler: b, TLSConfig: b.tls, ReadHeaderTimeout: requestTimeout, TLSNextProto: map[string]func(*http.Server, *tls.Conn, http.Handler){}}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		_, _ = io.Copy(io.Discard, in)
		cancel()
	}()
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.ServeTLS(listener, "", ""); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// A bare is the handler with all that it needs.
type bare struct {
	template *template
	chain    string
	journal  *journal
	tls      *tls.Config
	bearers  map[[32]byte]struct{} // SHA-256 of the tokens
	signer   *ecdsa.PublicKey      // of one-time tokens
	used     sync.Map              // nonces of one-time tokens
}

func newBare(dir string) (*bare, greeting, error) {
	key, root, err := newAuthority()
	if err != nil {
		return nil, greeting{}, err
	}
	b := &bare{chain: encodePEM(root.Raw), bearers: map[[32]byte]struct{}{}}
	if b.template, err = newTemplate(key, root); err != nil {
		return nil, greeting{}, err
	}
	if b.journal, err = openJournal(filepath.Join(dir, "journal")); err != nil {
		return nil, greeting{}, err
	}
	hello := greeting{Root: b.chain}
	for range bareTokens {
		token := rand.Text()
		hello.Tokens = append(hello.Tokens, token)
		b.bearers[sha256.Sum256([]byte(token))] = struct{}{}
	}
	signer, err := newKey()
	if err != nil {
		return nil, greeting{}, err
	}
	b.signer = &signer.PublicKey
	if hello.Key, err = x509.MarshalPKCS8PrivateKey(signer); err != nil {
		return nil, greeting{}, err
	}
	b.tls, err = serverTLS(key, root)
	return b, hello, err
}

// ServeHTTP issues one certificate. It answers errors in a word: nobody but this package asks.
func (b *bare) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	answer, err := b.issue(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusCreated)
	_, _ = w.Write(answer) // a client that is gone needs none
}

func (b *bare) issue(r *http.Request) ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(r.Body, 64<<10))
	if err != nil {
		return nil, err
	}
	var in api.IssueRequest
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, err
	}
	if r.URL.Path == bareEcho {
		return json.Marshal(api.Issued{Serial: in.Profile, PEM: b.chain, Chain: b.chain})
	}
	if err := b.authenticate(r, body); err != nil {
		return nil, err
	}
	block, _ := pem.Decode([]byte(in.Request))
	if block == nil {
		return nil, errors.New("no request in PEM")
	}
	csr, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return nil, err
	}
	if r.URL.Path != bareRenewal {
		if err := csr.CheckSignature(); err != nil {
			return nil, err
		}
	}
	made, err := b.template.issue(csr.RawSubjectPublicKeyInfo, csr.Subject.CommonName, time.Duration(in.LifetimeSec)*time.Second)
	if err != nil {
		return nil, err
	}
	if err := b.journal.append(made.record()); err != nil {
		return nil, err
	}
	return json.Marshal(api.Issued{Serial: hex.EncodeToString(made.serial), PEM: encodePEM(made.der), Chain: b.chain, NotBefore: made.from, NotAfter: made.to})
}

// recordBytes is the size of a stored certificate with its columns, as the databases hold it.
const recordBytes = 1900

func (l leaf) record() []byte {
	record := make([]byte, recordBytes)
	copy(record, l.der)
	return record
}

func (b *bare) authenticate(r *http.Request, body []byte) error {
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok {
		return errors.New("no token")
	}
	if r.URL.Path == bareOneTime {
		return b.verifyOneTime(token, body)
	}
	if _, known := b.bearers[sha256.Sum256([]byte(token))]; !known {
		return errors.New("token unknown")
	}
	return nil
}

// signOneTime makes a token for one body: nonce and signature in base64url, with a dot between them.
func signOneTime(key *ecdsa.PrivateKey, body []byte) (string, error) {
	nonce := rand.Text()
	digest := oneTimeDigest(nonce, body)
	signature, err := ecdsa.SignASN1(rand.Reader, key, digest[:])
	return nonce + "." + base64.RawURLEncoding.EncodeToString(signature), err
}

func oneTimeDigest(nonce string, body []byte) [32]byte {
	return sha256.Sum256(append([]byte(nonce), body...))
}

func (b *bare) verifyOneTime(token string, body []byte) error {
	nonce, text, _ := strings.Cut(token, ".")
	signature, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return err
	}
	digest := oneTimeDigest(nonce, body)
	if !ecdsa.VerifyASN1(b.signer, digest[:], signature) {
		return errors.New("one-time token not signed")
	}
	if _, used := b.used.LoadOrStore(nonce, struct{}{}); used {
		return errors.New("one-time token used before")
	}
	return nil
}

func encodePEM(der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}
