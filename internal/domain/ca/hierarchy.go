package ca

import (
	"bytes"
	"cmp"
	"context"
	"crypto"
	"crypto/x509"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"chancery/internal/base/fault"
	"chancery/internal/base/id"
	"chancery/internal/base/name"
	"chancery/internal/core/keyring"
	"chancery/internal/core/store"
	"chancery/internal/domain/ca/pkix"
)

// Config says how the authorities work. The zero value works, without addresses in certificates.
type Config struct {
	// BaseURL is where relying parties reach this server, such as http://ca.example.org. It goes into certificates as
	// addresses of status and issuers; empty leaves them out.
	BaseURL string
	// TrustDomain is the full DNS name under which agents have their SPIFFE identifiers; empty leaves those out.
	TrustDomain string
	// Profiles come to the built-in ones or replace those of the same name.
	Profiles []Profile
	// CRLLifetime is from thisUpdate to nextUpdate of a CRL, which is signed anew at half of it. Default 24 h.
	CRLLifetime time.Duration
	// OCSPLifetime is the same of an OCSP answer; for agent certificates it is at most a minute. Default 1 h.
	OCSPLifetime time.Duration
	// StatusesMax bounds the certificates whose status is kept in memory, about half a KB each. Default 65,536.
	StatusesMax int
	// Keep is how long ordinary certificates stay stored after they expired. Default 365 days.
	Keep time.Duration
	// KeepAgents is the same for agent certificates, of which a large company makes a hundred gigabytes a day. Default 24 h.
	KeepAgents time.Duration
	// Now is the clock; nil is time.Now.
	Now func() time.Time
	// Observe is told how long the phase "sign" of each issuance took; nil tells nobody. It is quick and safe for
	// concurrent use.
	Observe func(phase string, d time.Duration)
}

func (c Config) withDefaults() Config {
	c.CRLLifetime = cmp.Or(max(c.CRLLifetime, 0), 24*time.Hour)
	c.OCSPLifetime = cmp.Or(max(c.OCSPLifetime, 0), time.Hour)
	c.Keep = cmp.Or(max(c.Keep, 0), 365*24*time.Hour)
	c.KeepAgents = cmp.Or(max(c.KeepAgents, 0), 24*time.Hour)
	c.StatusesMax = cmp.Or(max(c.StatusesMax, 0), 64<<10)
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Observe == nil {
		c.Observe = func(string, time.Duration) {}
	}
	c.BaseURL = strings.TrimRight(c.BaseURL, "/")
	return c
}

// OCSPPath is where questions about status are answered, below BaseURL. A GET goes on with a slash and the encoded
// question.
const OCSPPath = "/pki/ocsp"

// CertificatePath gives the path of an authority's certificate in DER.
func CertificatePath(authority string) string { return "/pki/" + authority + ".cer" }

// CRLPath gives the path of an authority's revocation list in DER.
func CRLPath(authority string) string { return "/pki/" + authority + ".crl" }

// The topics of the change feed that the room publishes. The key of a revocation is its target.
const (
	topicRevocation = "revocation"
	topicAuthority  = "authority"
	topicProfile    = "profile"
	topicKey        = "key" // the keyring's
)

// keyPrefix begins the names of authorities' keys in the keyring.
const keyPrefix = "authority/"

// A Hierarchy is the authorities of one installation: roots, and issuing authorities below them. All methods are safe
// for concurrent use.
type Hierarchy struct {
	db     *store.Store
	keys   *keyring.Ring
	config Config

	serials id.Serials
	known   combinations
	revoked revocations
	records *store.Memo[*record]
	lists   lists

	wanted   atomic.Int64 // counts changes of authorities, profiles and keys
	current  atomic.Pointer[snapshot]
	loading  sync.Mutex
	unfollow []func()
}

// A snapshot is the authorities and profiles as of some change. It is immutable.
type snapshot struct {
	change      int64
	authorities map[string]*authority
	order       []string // parents before their children, otherwise the oldest first
	profiles    map[string]Profile
}

// New reads authorities, profiles and revocations from the store and follows their changes. Close ends it.
func New(ctx context.Context, db *store.Store, keys *keyring.Ring, c Config) (*Hierarchy, error) {
	h := &Hierarchy{db: db, keys: keys, config: c.withDefaults()}
	for _, p := range c.Profiles {
		if err := p.Validate(); err != nil {
			return nil, err
		}
	}
	if _, err := name.Of(name.DNS, c.TrustDomain); c.TrustDomain != "" && err != nil {
		return nil, err
	}
	for _, hot := range []*store.Hot{hotCertificate, hotAgent} {
		if err := db.Register(hot); err != nil {
			return nil, err
		}
	}
	h.records = store.NewMemo(db, "certificate", h.config.StatusesMax, h.loadRecord)
	changed := func(store.Change) { h.wanted.Add(1) }
	keyChanged := func(c store.Change) {
		if c.Key == "" || strings.HasPrefix(c.Key, keyPrefix) { // people's keys come and go all day
			h.wanted.Add(1)
		}
	}
	h.unfollow = []func(){
		db.Subscribe(topicAuthority, changed), db.Subscribe(topicProfile, changed), db.Subscribe(topicKey, keyChanged),
		db.Subscribe(topicRevocation, func(c store.Change) { h.revoked.tell(c.Key) }),
	}
	h.revoked.tell("")
	h.wanted.Add(1)
	if err := h.start(ctx); err != nil {
		h.Close()
		return nil, fmt.Errorf("starting the authorities: %w", err)
	}
	return h, nil
}

func (h *Hierarchy) start(ctx context.Context) error {
	if _, err := h.snapshot(ctx); err != nil {
		return err
	}
	if err := h.revoked.catchUp(ctx, h.db); err != nil {
		return err
	}
	return h.db.Read(ctx, func(tx *store.Tx) error { // serials go on after the highest stored one
		for _, table := range []string{"certificate", "agent_certificate"} {
			var last []byte
			if _, err := tx.One([]any{&last}, "SELECT serial FROM "+table+" ORDER BY serial DESC LIMIT 1"); err != nil {
				return err
			}
			h.serials.Resume(id.Serial(last))
		}
		return nil
	})
}

// Close ends following the store's changes.
func (h *Hierarchy) Close() {
	for _, cancel := range h.unfollow {
		cancel()
	}
}

func (h *Hierarchy) now() time.Time { return h.config.Now().UTC() }

// snapshot gives authorities and profiles with every change that was told before the call.
func (h *Hierarchy) snapshot(ctx context.Context) (*snapshot, error) {
	if s := h.current.Load(); s != nil && s.change == h.wanted.Load() {
		return s, nil
	}
	h.loading.Lock()
	defer h.loading.Unlock()
	change := h.wanted.Load()
	if s := h.current.Load(); s != nil && s.change == change {
		return s, nil
	}
	s, err := h.load(ctx)
	if err != nil {
		return nil, fmt.Errorf("loading the authorities: %w", err)
	}
	s.change = change
	h.current.Store(s)
	return s, nil
}

func (h *Hierarchy) load(ctx context.Context) (*snapshot, error) {
	s := &snapshot{authorities: map[string]*authority{}, profiles: map[string]Profile{}}
	for _, p := range slices.Concat(BuiltIn(), h.config.Profiles) {
		s.profiles[p.Name] = p
	}
	var rows []Authority
	var bodies []string
	err := h.db.Read(ctx, func(tx *store.Tx) (err error) {
		if rows, err = selectAuthorities(tx); err != nil {
			return err
		}
		bodies, err = selectProfiles(tx)
		return err
	})
	if err != nil {
		return nil, err
	}
	for _, body := range bodies {
		p, err := pkix.ParseProfile([]byte(body))
		if err != nil {
			return nil, err
		}
		s.profiles[p.Name] = p
	}
	return s, h.openAll(ctx, s, rows)
}

// openAll opens parents before their children; rows that were made in the same millisecond come in any order.
func (h *Hierarchy) openAll(ctx context.Context, s *snapshot, rows []Authority) error {
	for len(rows) > 0 {
		var waiting []Authority
		for _, row := range rows {
			if row.Parent != "" && s.authorities[row.Parent] == nil {
				waiting = append(waiting, row)
				continue
			}
			a, err := h.open(ctx, s, row)
			if err != nil {
				return fmt.Errorf("authority %s: %w", row.Name, err)
			}
			s.authorities[row.Name] = a
			s.order = append(s.order, row.Name)
		}
		if len(waiting) == len(rows) {
			return fmt.Errorf("authority %s has no parent %s", rows[0].Name, rows[0].Parent)
		}
		rows = waiting
	}
	return nil
}

func selectAuthorities(tx *store.Tx) (rows []Authority, err error) {
	err = tx.Each("SELECT name, parent, signing_key, created_at, der FROM authority ORDER BY created_at, name", nil, func(r store.Row) error {
		var a Authority
		var created int64
		if err := r.Scan(&a.Name, &a.Parent, &a.Key, &created, &a.Certificate); err != nil {
			return err
		}
		a.Created = time.UnixMilli(created).UTC()
		rows = append(rows, a)
		return nil
	})
	return rows, err
}

func selectProfiles(tx *store.Tx) (bodies []string, err error) {
	err = tx.Each("SELECT body FROM profile ORDER BY name", nil, func(r store.Row) error {
		var body string
		err := r.Scan(&body)
		bodies = append(bodies, body)
		return err
	})
	return bodies, err
}

// open makes an authority of its row: certificate, signer where the key is here, and a template for each profile.
func (h *Hierarchy) open(ctx context.Context, s *snapshot, row Authority) (*authority, error) {
	cert, err := x509.ParseCertificate(row.Certificate)
	if err != nil {
		return nil, err
	}
	signer, err := h.signer(ctx, row.Key)
	if err != nil {
		return nil, err
	}
	a := &authority{Authority: row, target: authorityTarget(row.Name), templates: map[string]*pkix.Template{}}
	a.NotBefore, a.NotAfter, a.Online = cert.NotBefore, cert.NotAfter, signer != nil
	a.above = []string{a.target}
	a.Chain = [][]byte{row.Certificate}
	var above *pkix.Issuer
	if parent := s.authorities[row.Parent]; parent != nil {
		above = parent.issuer
		a.above = append(a.above, parent.above...)
		a.Chain = append(a.Chain, parent.Chain...)
	}
	if a.issuer, err = pkix.IssuerOf(cert, signer, above); err != nil {
		return nil, err
	}
	for _, p := range s.profiles {
		if a.templates[p.Name], err = pkix.NewTemplate(a.issuer, h.links(row.Name), p); err != nil {
			return nil, err
		}
	}
	return a, nil
}

// signer gives the signer of a key, or nil where the key was taken away.
func (h *Hierarchy) signer(ctx context.Context, key string) (crypto.Signer, error) {
	signer, err := h.keys.Signer(ctx, key)
	switch fault.CodeOf(err) {
	case "key_unknown", "key_retired":
		return nil, nil
	}
	return signer, err
}

func (h *Hierarchy) links(authority string) pkix.Links {
	if h.config.BaseURL == "" {
		return pkix.Links{}
	}
	return pkix.Links{
		Certificate: h.config.BaseURL + CertificatePath(authority),
		CRL:         h.config.BaseURL + CRLPath(authority),
		OCSP:        h.config.BaseURL + OCSPPath,
	}
}

// Authorities lists all authorities, parents before their children.
func (h *Hierarchy) Authorities(ctx context.Context) ([]Authority, error) {
	s, err := h.snapshot(ctx)
	if err != nil {
		return nil, err
	}
	list := make([]Authority, len(s.order))
	for i, n := range s.order {
		list[i] = s.authorities[n].Authority
	}
	return list, nil
}

// Signed reports whether one of the authorities here signed a certificate. It verifies one signature, and says nothing
// about time or revocation; Status does.
func (h *Hierarchy) Signed(ctx context.Context, cert *x509.Certificate) (bool, error) {
	s, err := h.snapshot(ctx)
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(s.order, func(name string) bool {
		issuer := s.authorities[name].issuer.Cert
		return bytes.Equal(issuer.RawSubject, cert.RawIssuer) && cert.CheckSignatureFrom(issuer) == nil
	}), nil
}

// Authority gives one authority. The fault is NotFound, code authority_unknown.
func (h *Hierarchy) Authority(ctx context.Context, name string) (Authority, error) {
	a, err := h.authority(ctx, name)
	if err != nil {
		return Authority{}, err
	}
	return a.Authority, nil
}

func (h *Hierarchy) authority(ctx context.Context, name string) (*authority, error) {
	s, err := h.snapshot(ctx)
	if err != nil {
		return nil, err
	}
	a := s.authorities[name]
	if a == nil {
		return nil, fault.New(fault.NotFound, "authority_unknown", "there is no authority named %.40q", name)
	}
	return a, nil
}

// template gives an authority and what it makes certificates of a profile from. The fault is NotFound, code
// authority_unknown or profile_unknown.
func (h *Hierarchy) template(ctx context.Context, authority, profile string) (*authority, *pkix.Template, error) {
	a, err := h.authority(ctx, authority)
	if err != nil {
		return nil, nil, err
	}
	t := a.templates[profile]
	if t == nil {
		return nil, nil, fault.New(fault.NotFound, "profile_unknown", "there is no profile named %.40q", profile)
	}
	return a, t, nil
}

// Profiles lists all profiles by name: built in, configured and saved.
func (h *Hierarchy) Profiles(ctx context.Context) ([]Profile, error) {
	s, err := h.snapshot(ctx)
	if err != nil {
		return nil, err
	}
	list := make([]Profile, 0, len(s.profiles))
	for _, n := range slices.Sorted(maps.Keys(s.profiles)) {
		list = append(list, s.profiles[n])
	}
	return list, nil
}
