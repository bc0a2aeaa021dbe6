// Package name parses and normalises the names that certificates are issued for: DNS names, IP addresses, e-mail
// addresses and URIs. A parsed name is in its one canonical form, so equal names are equal strings.
package name

import (
	"net/netip"
	"net/url"
	"strings"

	"chancery/internal/base/fault"
)

// A Kind is a kind of subject alternative name (RFC 5280 §4.2.1.6).
type Kind uint8

// The kinds of names.
const (
	DNS Kind = iota
	IP
	Email
	URI
)

var kindNames = [...]string{"dns", "ip", "email", "uri"}

// String gives the kind in lower case.
func (k Kind) String() string { return kindNames[min(int(k), len(kindNames)-1)] }

// A Name is a parsed name in canonical form: DNS in lower case without a final dot, IP as netip writes it, e-mail
// with its domain in lower case, URI as given.
type Name struct {
	Kind Kind
	Text string
}

// String gives the name with its kind, such as dns:example.org, the form in which Parse reads it.
func (n Name) String() string { return n.Kind.String() + ":" + n.Text }

// Parse reads a name written as kind:text. Without a known kind it guesses: an address is an IP, what has "://" is a
// URI, what has "@" is an e-mail address, all else is a DNS name. Faults are Invalid, code name_invalid.
func Parse(s string) (Name, error) {
	for i, prefix := range kindNames {
		if text, ok := strings.CutPrefix(s, prefix+":"); ok {
			return Of(Kind(i), text)
		}
	}
	return Of(guess(s), s)
}

func guess(s string) Kind {
	if _, err := netip.ParseAddr(s); err == nil {
		return IP
	}
	switch {
	case strings.Contains(s, "://"):
		return URI
	case strings.Contains(s, "@"):
		return Email
	default:
		return DNS
	}
}

// Of parses text as a name of the given kind. Faults are Invalid, code name_invalid.
func Of(k Kind, text string) (Name, error) {
	parse := [...]func(string) (string, string){parseDNS, parseIP, parseEmail, parseURI}[min(int(k), int(URI))]
	canonical, problem := parse(text)
	if problem != "" {
		return Name{}, fault.New(fault.Invalid, "name_invalid", "%.80q is not a %s name: %s", text, k, problem)
	}
	return Name{k, canonical}, nil
}

// parseDNS takes a host name in preferred syntax, with "*" allowed as the whole first label (RFC 5280 §4.2.1.6,
// RFC 1034 §3.5, RFC 6125 §6.4.3). Internationalised names come in their A-label form.
func parseDNS(s string) (canonical, problem string) {
	s = strings.ToLower(strings.TrimSuffix(s, "."))
	if len(s) == 0 || len(s) > 253 {
		return "", "a DNS name has 1 to 253 characters"
	}
	labels := strings.Split(s, ".")
	for i, label := range labels {
		if label == "*" && i == 0 && len(labels) > 2 {
			continue
		}
		if problem := labelProblem(label); problem != "" {
			return "", problem
		}
	}
	if last := labels[len(labels)-1]; strings.Trim(last, "0123456789") == "" {
		return "", "its last label is a number, as of an IP address"
	}
	return s, ""
}

func labelProblem(label string) string {
	switch {
	case label == "" || len(label) > 63:
		return "each label has 1 to 63 characters"
	case label[0] == '-' || label[len(label)-1] == '-':
		return "a label neither starts nor ends with a hyphen"
	case strings.Trim(label, "abcdefghijklmnopqrstuvwxyz0123456789-") != "":
		return "only letters, digits, hyphens and one leading * are allowed"
	}
	return ""
}

func parseIP(s string) (canonical, problem string) {
	address, err := netip.ParseAddr(s)
	if err != nil || address.Zone() != "" {
		return "", "it is not an IPv4 or IPv6 address"
	}
	return address.Unmap().String(), ""
}

// parseEmail takes a dot-atom local part and a DNS domain (RFC 5321 §4.1.2 without quoting); certificates carry
// nothing else that software agrees on.
func parseEmail(s string) (canonical, problem string) {
	at := strings.LastIndexByte(s, '@')
	if at < 1 || at > 64 {
		return "", "it has no local part of 1 to 64 characters before @"
	}
	const atom = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789!#$%&'*+-/=?^_`{|}~."
	local := s[:at]
	if strings.Trim(local, atom) != "" || strings.Contains(local, "..") || local[0] == '.' || local[at-1] == '.' {
		return "", "its local part has characters that are not allowed"
	}
	domain, problem := parseDNS(s[at+1:])
	if problem != "" || strings.HasPrefix(domain, "*") {
		return "", "its domain is not a host name"
	}
	return local + "@" + domain, ""
}

// parseURI takes an absolute URI with a scheme and, where it has one, a host name or address (RFC 5280 §4.2.1.6).
func parseURI(s string) (canonical, problem string) {
	if len(s) > 2048 || strings.Trim(s, printable) != "" {
		return "", "a URI has at most 2048 characters, all printable ASCII"
	}
	u, err := url.Parse(s)
	if err != nil || u.Scheme == "" || (u.Host == "" && u.Opaque == "" && u.Path == "") {
		return "", "it is not an absolute URI"
	}
	return s, ""
}

const printable = "!\"#$%&'()*+,-./0123456789:;<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_`abcdefghijklmnopqrstuvwxyz{|}~"

// Covers reports whether a certificate for n is good for other: equal names, or a wildcard that stands for exactly
// one label (RFC 6125 §6.4.3).
func (n Name) Covers(other Name) bool {
	if n == other {
		return true
	}
	suffix, wild := strings.CutPrefix(n.Text, "*.")
	if n.Kind != DNS || other.Kind != DNS || !wild {
		return false
	}
	_, rest, found := strings.Cut(other.Text, ".")
	return found && rest == suffix
}
