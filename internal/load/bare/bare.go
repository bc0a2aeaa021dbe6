// Package bare is the bare handler: a server that does the work of an ordinary certificate and nothing else.
//
// It speaks HTTPS and JSON as the real server does, looks a token up, verifies the possession of a key, patches the
// to-be-signed octets, signs them once and waits for a synced record. There is no policy, no revocation, no audit and
// no search, and a log stands in for the database, so no server on the same machine can be faster: what it reaches is
// the measure of the others. It runs in a process of its own, for one run, with keys that live as long.
package bare

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
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"

	"chancery/api"
)

// The routes, one for each way to prove who asks, and one that asks for no proof and does nothing.
const (
	Echo    = "/echo"     // the JSON of both directions alone
	Bearer  = "/bearer"   // a hashed bearer token; the request's signature proves the key
	OneTime = "/one-time" // a token signed for this one request: one more verification
	Renewal = "/renewal"  // a bearer token, and a key that is proved already
)

// A Greeting is what the handler tells whoever started it.
type Greeting struct {
	Address string   `json:"address"`
	Root    string   `json:"root"`   // PEM
	Tokens  []string `json:"tokens"` // bearer tokens
	Key     []byte   `json:"key"`    // PKCS#8; signs one-time tokens
}

// tokens is how many bearer tokens the handler knows.
const tokens = 64

// Serve listens on the loopback interface, writes a greeting to out as one line of JSON, and serves until in or ctx
// ends. dir takes the journal.
func Serve(ctx context.Context, dir string, in io.Reader, out io.Writer) error {
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(runtime.NumCPU() + 2) // a thread in fsync keeps its processor
	}
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400) // as the server does, so that the two differ in their work alone
	}
	h, hello, err := New(dir)
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
	server := &http.Server{Handler: h, TLSConfig: h.tls, ReadHeaderTimeout: 30 * time.Second, TLSNextProto: map[string]func(*http.Server, *tls.Conn, http.Handler){}}
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

// A Handler is the handler with all that it needs.
type Handler struct {
	template *Template
	chain    string
	journal  *Journal
	tls      *tls.Config
	bearers  map[[32]byte]struct{} // SHA-256 of the tokens
	signer   *ecdsa.PublicKey      // of one-time tokens
	used     sync.Map              // nonces of one-time tokens
}

// New makes a handler with keys of its own; its journal lies in dir.
func New(dir string) (*Handler, Greeting, error) {
	key, root, err := NewAuthority()
	if err != nil {
		return nil, Greeting{}, err
	}
	h := &Handler{chain: encodePEM(root.Raw), bearers: map[[32]byte]struct{}{}}
	if h.template, err = NewTemplate(key, root); err != nil {
		return nil, Greeting{}, err
	}
	if h.journal, err = OpenJournal(filepath.Join(dir, "journal")); err != nil {
		return nil, Greeting{}, err
	}
	hello := Greeting{Root: h.chain}
	for range tokens {
		token := rand.Text()
		hello.Tokens = append(hello.Tokens, token)
		h.bearers[sha256.Sum256([]byte(token))] = struct{}{}
	}
	signer, err := newKey()
	if err != nil {
		return nil, Greeting{}, err
	}
	h.signer = &signer.PublicKey
	if hello.Key, err = x509.MarshalPKCS8PrivateKey(signer); err != nil {
		return nil, Greeting{}, err
	}
	h.tls, err = ServerTLS(key, root)
	return h, hello, err
}

// Close ends the journal. Nobody may ask any more.
func (h *Handler) Close() error { return h.journal.Close() }

// ServeHTTP issues one certificate. It answers errors in a word: nobody but this package asks.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	answer, err := h.issue(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusCreated)
	_, _ = w.Write(answer) // a client that is gone needs none
}

func (h *Handler) issue(r *http.Request) ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(r.Body, 64<<10))
	if err != nil {
		return nil, err
	}
	var in api.IssueRequest
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, err
	}
	if r.URL.Path == Echo {
		return json.Marshal(api.Issued{Serial: in.Profile, PEM: h.chain, Chain: h.chain})
	}
	if err := h.authenticate(r, body); err != nil {
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
	if r.URL.Path != Renewal {
		if err := csr.CheckSignature(); err != nil {
			return nil, err
		}
	}
	made, err := h.template.Issue(csr.RawSubjectPublicKeyInfo, csr.Subject.CommonName, time.Duration(in.LifetimeSec)*time.Second)
	if err != nil {
		return nil, err
	}
	if err := h.journal.Append(made.record()); err != nil {
		return nil, err
	}
	return json.Marshal(api.Issued{Serial: hex.EncodeToString(made.Serial), PEM: encodePEM(made.DER), Chain: h.chain, NotBefore: made.NotBefore, NotAfter: made.NotAfter})
}

// RecordBytes is the size of a stored certificate with its columns, as the databases hold it.
const RecordBytes = 1900

func (l Leaf) record() []byte {
	record := make([]byte, RecordBytes)
	copy(record, l.DER)
	return record
}

func (h *Handler) authenticate(r *http.Request, body []byte) error {
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok {
		return errors.New("no token")
	}
	if r.URL.Path == OneTime {
		return h.verifyOneTime(token, body)
	}
	if _, known := h.bearers[sha256.Sum256([]byte(token))]; !known {
		return errors.New("token unknown")
	}
	return nil
}

// SignOneTime makes a token for one body: nonce and signature in base64url, with a dot between them.
func SignOneTime(key *ecdsa.PrivateKey, body []byte) (string, error) {
	nonce := rand.Text()
	digest := oneTimeDigest(nonce, body)
	signature, err := ecdsa.SignASN1(rand.Reader, key, digest[:])
	return nonce + "." + base64.RawURLEncoding.EncodeToString(signature), err
}

func oneTimeDigest(nonce string, body []byte) [32]byte {
	return sha256.Sum256(append([]byte(nonce), body...))
}

func (h *Handler) verifyOneTime(token string, body []byte) error {
	nonce, text, _ := strings.Cut(token, ".")
	signature, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return err
	}
	digest := oneTimeDigest(nonce, body)
	if !ecdsa.VerifyASN1(h.signer, digest[:], signature) {
		return errors.New("one-time token not signed")
	}
	if _, used := h.used.LoadOrStore(nonce, struct{}{}); used {
		return errors.New("one-time token used before")
	}
	return nil
}

func encodePEM(der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}
