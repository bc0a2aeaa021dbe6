package pkix

import (
	"crypto/x509"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"chancery/internal/base/fault"
	"chancery/internal/base/key"
	"chancery/internal/base/name"
)

// A Profile says what the certificates of one kind look like and what an order may ask for. Profiles are data: six
// are built in, operators save their own. A Profile is a value; Validate holds before anything is made from it.
type Profile struct {
	Name        string `json:"name"`                  // 1 to 32 of a-z, 0-9 and hyphen
	Description string `json:"description,omitempty"` // one line for people

	Authority  bool `json:"authority,omitempty"`   // certifies an authority: basicConstraints with cA (RFC 5280 §4.2.1.9)
	PathLength int  `json:"path_length,omitempty"` // with Authority: how many authorities may follow below; -1 = no limit

	KeyUsages    []string `json:"key_usages"`              // names of RFC 5280 §4.2.1.3, such as digitalSignature
	ExtKeyUsages []string `json:"ext_key_usages"`          // names such as serverAuth, or dotted OIDs (§4.2.1.12)
	Policies     []string `json:"policies,omitempty"`      // dotted OIDs (§4.2.1.4)
	Extensions   []string `json:"extensions,omitempty"`    // dotted OIDs of the extensions that an order may bring, written non-critical
	NoCheck      bool     `json:"ocsp_no_check,omitempty"` // id-pkix-ocsp-nocheck (RFC 6960 §4.2.2.2.1)

	// Names that the certificate may hold, as kind:text with kind dns, ip (CIDR), email or uri. With Authority they are
	// written into the certificate and bind everything below it (RFC 5280 §4.2.1.10); otherwise orders are held to them.
	PermittedNames []string `json:"permitted_names,omitempty"`
	ExcludedNames  []string `json:"excluded_names,omitempty"`

	KeyKinds   []key.Kind `json:"key_kinds"`   // kinds of subject keys; RSA sizes between two kinds count as the smaller
	NameKinds  []string   `json:"name_kinds"`  // kinds of subject alternative names: dns, ip, email, uri
	NamesMin   int        `json:"names_min"`   // fewest names
	NamesMax   int        `json:"names_max"`   // most names, at most 100
	CommonName string     `json:"common_name"` // CommonNameRequired, CommonNameOptional or CommonNameIsName

	LifetimeSec    int64 `json:"lifetime_sec"`     // given to an order that asks for nothing; seconds
	LifetimeMaxSec int64 `json:"lifetime_max_sec"` // the most that an order gets; seconds
	BackdateSec    int64 `json:"backdate_sec"`     // notBefore lies this long before now, for clocks that run late; 0 to 3600
}

// What a profile says about the common name of the subject.
const (
	CommonNameRequired = "required" // people and machines that are known by it
	CommonNameOptional = "optional"
	CommonNameIsName   = "is_name" // absent, or one of the subject alternative names (RFC 9525 §2: names live there)
)

const (
	day          = 24 * 60 * 60
	namesCeiling = 100
	yearsCeiling = 30
)

// PrincipalAuthorization is the extension in a principal's certificate that says what the principal may delegate;
// AgentIdentity is the extension of an agent certificate. The rooms that know agents encode and read their values.
const (
	AgentIdentity          = "1.3.6.1.4.1.66257.1.1"
	PrincipalAuthorization = "1.3.6.1.4.1.66257.1.2"
)

var keyUsageBits = map[string]x509.KeyUsage{
	"digitalSignature":  x509.KeyUsageDigitalSignature,
	"contentCommitment": x509.KeyUsageContentCommitment,
	"keyEncipherment":   x509.KeyUsageKeyEncipherment,
	"dataEncipherment":  x509.KeyUsageDataEncipherment,
	"keyAgreement":      x509.KeyUsageKeyAgreement,
	"keyCertSign":       x509.KeyUsageCertSign,
	"cRLSign":           x509.KeyUsageCRLSign,
}

var extKeyUsageOIDs = map[string]string{
	"serverAuth":      "1.3.6.1.5.5.7.3.1",
	"clientAuth":      "1.3.6.1.5.5.7.3.2",
	"codeSigning":     "1.3.6.1.5.5.7.3.3",
	"emailProtection": "1.3.6.1.5.5.7.3.4",
	"timeStamping":    "1.3.6.1.5.5.7.3.8",
	"OCSPSigning":     "1.3.6.1.5.5.7.3.9",
}

// BuiltIn gives the profiles that every installation has: root, issuing, tls-server, tls-client, principal, agent and
// ocsp-signer. The values are fresh on each call.
func BuiltIn() []Profile {
	authority := Profile{
		Authority: true, KeyUsages: []string{"digitalSignature", "keyCertSign", "cRLSign"},
		KeyKinds: key.Kinds(), CommonName: CommonNameRequired, BackdateSec: 60,
	}
	leaf := Profile{
		KeyUsages: []string{"digitalSignature"}, KeyKinds: key.Kinds(), NamesMax: namesCeiling,
		LifetimeSec: 90 * day, LifetimeMaxSec: 398 * day, BackdateSec: 60,
	}
	root := authority
	root.Name, root.Description, root.PathLength = "root", "a root of trust, signed by its own key", -1
	root.LifetimeSec, root.LifetimeMaxSec = 20*365*day, yearsCeiling*365*day

	issuing := authority
	issuing.Name, issuing.Description = "issuing", "an authority that issues certificates but no authorities"
	issuing.LifetimeSec, issuing.LifetimeMaxSec = 10*365*day, 20*365*day

	server := leaf
	server.Name, server.Description = "tls-server", "a TLS server, by DNS names and addresses"
	server.ExtKeyUsages, server.NameKinds = []string{"serverAuth"}, []string{"dns", "ip"}
	server.NamesMin, server.CommonName = 1, CommonNameIsName

	client := leaf
	client.Name, client.Description = "tls-client", "a TLS client: a machine or a service account"
	client.ExtKeyUsages, client.NameKinds = []string{"clientAuth"}, []string{"dns", "ip", "email", "uri"}
	client.CommonName = CommonNameRequired

	principal := leaf
	principal.Name, principal.Description = "principal", "a person who may delegate to agents"
	principal.ExtKeyUsages, principal.NameKinds = []string{"clientAuth"}, []string{"email", "uri"}
	principal.Extensions, principal.CommonName = []string{PrincipalAuthorization}, CommonNameRequired

	agent := leaf
	agent.Name, agent.Description = "agent", "an AI agent that acts for a person; short-lived, never backdated"
	agent.ExtKeyUsages, agent.NameKinds, agent.NamesMax = []string{"clientAuth"}, []string{"uri"}, 1
	agent.Extensions, agent.CommonName = []string{AgentIdentity}, CommonNameRequired
	agent.LifetimeSec, agent.LifetimeMaxSec, agent.BackdateSec = 600, day, 0

	ocsp := leaf
	ocsp.Name, ocsp.Description = "ocsp-signer", "a delegated OCSP responder"
	ocsp.ExtKeyUsages, ocsp.NamesMax = []string{"OCSPSigning"}, 0
	ocsp.NoCheck, ocsp.CommonName, ocsp.LifetimeSec, ocsp.LifetimeMaxSec = true, CommonNameRequired, 7*day, 30*day

	return []Profile{root, issuing, server, client, principal, agent, ocsp}
}

// ParseProfile reads a profile from JSON and validates it. Names that are unknown, doubled or in the wrong case are
// refused. Faults are Invalid.
func ParseProfile(text []byte) (Profile, error) {
	var p Profile
	if err := json.Unmarshal(text, &p, json.RejectUnknownMembers(true)); err != nil {
		return Profile{}, fault.New(fault.Invalid, "profile_malformed", "the profile is not well-formed: %v", err)
	}
	return p, p.Validate()
}

var label = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?$`)

// IsLabel reports whether text can name a profile or an authority: 1 to 32 of a-z, 0-9 and inner hyphens.
func IsLabel(text string) bool { return label.MatchString(text) }

// Validate says what is wrong with a profile, or nil. Faults are Invalid, code profile_invalid.
func (p *Profile) Validate() error {
	checks := []func() string{p.nameProblem, p.usageProblem, p.authorityProblem, p.subjectProblem, p.lifetimeProblem}
	for _, check := range checks {
		if problem := check(); problem != "" {
			return fault.New(fault.Invalid, "profile_invalid", "profile %.32q: %s", p.Name, problem)
		}
	}
	if _, err := newConstraints(p.PermittedNames, p.ExcludedNames); err != nil {
		return err
	}
	return nil
}

func (p *Profile) nameProblem() string {
	switch {
	case !label.MatchString(p.Name):
		return "a name has 1 to 32 of a-z, 0-9 and hyphen, and neither starts nor ends with a hyphen"
	case len(p.Description) > 200:
		return "the description has more than 200 octets"
	}
	return ""
}

func (p *Profile) usageProblem() string {
	for _, usage := range p.KeyUsages {
		if keyUsageBits[usage] == 0 {
			return fmt.Sprintf("%.40q is not a key usage", usage)
		}
	}
	for _, usage := range p.ExtKeyUsages {
		if _, err := extKeyUsageOID(usage); err != nil {
			return fmt.Sprintf("extended key usage: %v", err)
		}
	}
	for _, oid := range slices.Concat(p.Policies, p.Extensions) {
		if _, err := parseOID(oid); err != nil {
			return err.Error()
		}
	}
	for _, oid := range p.Extensions {
		if strings.HasPrefix(oid, "2.5.29.") || strings.HasPrefix(oid, "1.3.6.1.5.5.7.1.") {
			return fmt.Sprintf("orders cannot bring the extension %s: the authority writes it", oid)
		}
	}
	if len(p.KeyUsages) == 0 || len(p.ExtKeyUsages) > 16 || len(p.Policies) > 16 || len(p.Extensions) > 16 {
		return "it needs a key usage, and at most 16 extended key usages, policies and extensions"
	}
	return ""
}

func (p *Profile) authorityProblem() string {
	signs := slices.Contains(p.KeyUsages, "keyCertSign") || slices.Contains(p.KeyUsages, "cRLSign")
	switch {
	case p.Authority && !slices.Contains(p.KeyUsages, "keyCertSign"):
		return "an authority needs the key usage keyCertSign" // RFC 5280 §4.2.1.9
	case p.Authority && (p.PathLength < -1 || p.PathLength > 8):
		return "path_length lies between -1 and 8"
	case !p.Authority && signs:
		return "keyCertSign and cRLSign are for authorities"
	case !p.Authority && p.PathLength != 0:
		return "path_length is for authorities"
	}
	return ""
}

func (p *Profile) subjectProblem() string {
	for _, k := range p.KeyKinds {
		if _, err := key.ParseKind(string(k)); err != nil {
			return fmt.Sprintf("%.20q is not a kind of key", k)
		}
	}
	for _, k := range p.NameKinds {
		if !slices.Contains([]string{"dns", "ip", "email", "uri"}, k) {
			return fmt.Sprintf("%.20q is not a kind of name", k)
		}
	}
	switch {
	case len(p.KeyKinds) == 0:
		return "it allows no kind of key"
	case p.NamesMin < 0 || p.NamesMax < p.NamesMin || p.NamesMax > namesCeiling:
		return fmt.Sprintf("names_min and names_max lie between 0 and %d, in this order", namesCeiling)
	case !slices.Contains([]string{CommonNameRequired, CommonNameOptional, CommonNameIsName}, p.CommonName):
		return "common_name is required, optional or is_name"
	case p.CommonName != CommonNameRequired && p.NamesMin == 0:
		return "a certificate needs a subject: require the common name or at least one name" // RFC 5280 §4.1.2.6
	}
	return ""
}

func (p *Profile) lifetimeProblem() string {
	switch {
	case p.LifetimeSec < 1 || p.LifetimeSec > p.LifetimeMaxSec:
		return "lifetime_sec lies between 1 and lifetime_max_sec"
	case p.LifetimeMaxSec > yearsCeiling*365*day:
		return fmt.Sprintf("lifetime_max_sec is more than %d years", yearsCeiling)
	case p.BackdateSec < 0 || p.BackdateSec > 3600:
		return "backdate_sec lies between 0 and 3600"
	}
	return ""
}

// ForAgents reports whether certificates of the profile carry an agent's identity.
func (p *Profile) ForAgents() bool { return slices.Contains(p.Extensions, AgentIdentity) }

// ForPrincipals reports whether certificates of the profile say what their holder may delegate.
func (p *Profile) ForPrincipals() bool { return slices.Contains(p.Extensions, PrincipalAuthorization) }

// ForResponders reports whether holders of certificates of the profile may answer for the authority (RFC 6960 §4.2.2.2).
func (p *Profile) ForResponders() bool {
	return slices.Contains(p.ExtKeyUsages, "OCSPSigning") || slices.Contains(p.ExtKeyUsages, extKeyUsageOIDs["OCSPSigning"])
}

func (p *Profile) allowsName(k name.Kind) bool { return slices.Contains(p.NameKinds, k.String()) }

// keyRefused says why the kind of a subject's key does not fit, or nil.
func (p *Profile) keyRefused(k key.Kind) error {
	if slices.Contains(p.KeyKinds, k) {
		return nil
	}
	return fault.New(fault.Invalid, "key_refused", "profile %s does not take %s keys", p.Name, k).
		WithHint("it takes %v", p.KeyKinds)
}

// period gives the validity of a certificate made now: whole seconds, both ends count (RFC 5280 §4.1.2.5), the time
// before now that comes from backdating is not taken from what was asked for. A wish of zero means the default.
func (p *Profile) period(now time.Time, wish time.Duration) (from, to time.Time) {
	seconds := p.LifetimeSec
	if wish > 0 {
		seconds = min(max(int64(wish/time.Second), 1), p.LifetimeMaxSec)
	}
	now = now.UTC().Truncate(time.Second)
	from = now.Add(-time.Duration(p.BackdateSec) * time.Second)
	return from, now.Add(time.Duration(seconds-1) * time.Second)
}

// extensionMax bounds an extension that an order brings; a certificate beyond 16 KB fits few handshakes.
const extensionMax = 12 << 10

// takes refuses extensions that an order cannot bring.
func (p *Profile) takes(extensions []Extension) error {
	for i, e := range extensions {
		if !slices.Contains(p.Extensions, e.Id.String()) {
			return fault.New(fault.Denied, "extension_not_permitted", "profile %s takes no extension %s from an order", p.Name, e.Id)
		}
		if slices.ContainsFunc(extensions[:i], func(other Extension) bool { return other.Id.Equal(e.Id) }) {
			return fault.New(fault.Invalid, "extension_repeated", "the extension %s stands in the order twice", e.Id)
		}
		if len(e.Value) > extensionMax {
			return fault.New(fault.TooLarge, "extension_too_large", "the extension %s has %d octets; %d are allowed", e.Id, len(e.Value), extensionMax)
		}
	}
	return nil
}

// fits refuses a request that the profile does not take.
func (p *Profile) fits(r *Request) error {
	if err := p.keyRefused(r.Kind); err != nil {
		return err
	}
	if len(r.Names) < p.NamesMin {
		return fault.New(fault.Invalid, "names_too_few", "profile %s needs at least %d names of the kinds %v", p.Name, p.NamesMin, p.NameKinds)
	}
	if len(r.Names) > p.NamesMax {
		return fault.New(fault.Invalid, "names_too_many", "profile %s takes at most %d names", p.Name, p.NamesMax)
	}
	for _, n := range r.Names {
		if !p.allowsName(n.Kind) {
			return fault.New(fault.Invalid, "name_kind_refused", "profile %s does not take %s names, such as %s", p.Name, n.Kind, n.Text)
		}
	}
	return p.commonNameFits(r)
}

func (p *Profile) commonNameFits(r *Request) error {
	cn := r.Subject.CommonName
	switch {
	case p.CommonName == CommonNameRequired && cn == "":
		return fault.New(fault.Invalid, "common_name_missing", "profile %s needs a common name in the subject", p.Name)
	case p.CommonName == CommonNameIsName && cn != "" && !slices.ContainsFunc(r.Names, func(n name.Name) bool { return strings.EqualFold(n.Text, cn) }):
		return fault.New(fault.Invalid, "common_name_unproved", "the common name %.64q is none of the names that the certificate is for", cn).
			WithHint("leave the common name out, or add it to the names")
	}
	return r.Subject.check()
}
