package pkix

import (
	"crypto/x509"
	"net/netip"
	"net/url"
	"strings"

	"golang.org/x/crypto/cryptobyte"
	tag "golang.org/x/crypto/cryptobyte/asn1"

	"chancery/internal/base/fault"
	"chancery/internal/base/name"
)

// Constraints say which names may stand in a certificate (RFC 5280 §4.2.1.10): of a kind with permitted subtrees a
// name has to lie in one of them, and no name may lie in an excluded one.
type constraints struct{ permitted, excluded []subtree }

// A subtree is all names of one kind below a base: a domain, an address range, a mailbox or a host.
type subtree struct {
	kind name.Kind
	base string       // lower case; of email and uri a leading dot means hosts below it
	net  netip.Prefix // of IP
}

func newConstraints(permitted, excluded []string) (constraints, error) {
	var c constraints
	var err error
	if c.permitted, err = parseSubtrees(permitted); err != nil {
		return c, err
	}
	c.excluded, err = parseSubtrees(excluded)
	return c, err
}

// constraintsOf reads the constraints of an authority's certificate.
func constraintsOf(cert *x509.Certificate) constraints {
	gather := func(dns, email, uri []string, ranges []netip.Prefix) (out []subtree) {
		for kind, bases := range map[name.Kind][]string{name.DNS: dns, name.Email: email, name.URI: uri} {
			for _, base := range bases {
				out = append(out, subtree{kind: kind, base: base})
			}
		}
		for _, r := range ranges {
			out = append(out, subtree{kind: name.IP, net: r})
		}
		return out
	}
	return constraints{
		permitted: gather(cert.PermittedDNSDomains, cert.PermittedEmailAddresses, cert.PermittedURIDomains, prefixes(cert, true)),
		excluded:  gather(cert.ExcludedDNSDomains, cert.ExcludedEmailAddresses, cert.ExcludedURIDomains, prefixes(cert, false)),
	}
}

func prefixes(cert *x509.Certificate, permitted bool) (out []netip.Prefix) {
	ranges := cert.ExcludedIPRanges
	if permitted {
		ranges = cert.PermittedIPRanges
	}
	for _, r := range ranges {
		address, _ := netip.AddrFromSlice(r.IP)
		ones, _ := r.Mask.Size()
		out = append(out, netip.PrefixFrom(address.Unmap(), ones))
	}
	return out
}

func parseSubtrees(texts []string) ([]subtree, error) {
	if len(texts) > namesCeiling {
		return nil, fault.New(fault.Invalid, "profile_invalid", "more than %d name constraints", namesCeiling)
	}
	var out []subtree
	for _, text := range texts {
		s, ok := parseSubtree(text)
		if !ok {
			return nil, fault.New(fault.Invalid, "profile_invalid", "%.80q is not a name constraint", text).
				WithHint("write dns:example.org, ip:10.0.0.0/8, email:example.org, email:a@example.org or uri:.example.org")
		}
		out = append(out, s)
	}
	return out, nil
}

func parseSubtree(text string) (subtree, bool) {
	kind, base, _ := strings.Cut(text, ":")
	base = strings.ToLower(base)
	switch kind {
	case "dns":
		n, err := name.Of(name.DNS, base)
		return subtree{kind: name.DNS, base: n.Text}, err == nil && !strings.Contains(base, "*")
	case "ip":
		net, err := netip.ParsePrefix(base)
		return subtree{kind: name.IP, net: net.Masked()}, err == nil && !net.Addr().Is4In6()
	case "email":
		if strings.Contains(base, "@") {
			n, err := name.Of(name.Email, base)
			return subtree{kind: name.Email, base: n.Text}, err == nil
		}
		return subtree{kind: name.Email, base: base}, hostOrBelow(base)
	case "uri":
		return subtree{kind: name.URI, base: base}, hostOrBelow(base)
	}
	return subtree{}, false
}

func hostOrBelow(base string) bool {
	n, err := name.Of(name.DNS, strings.TrimPrefix(base, "."))
	return err == nil && !strings.HasPrefix(n.Text, "*")
}

// check refuses a name that the constraints do not let through: Denied, code name_not_permitted.
func (c constraints) check(n name.Name) error {
	restricted, inside := false, false
	for _, s := range c.permitted {
		if s.kind == n.Kind {
			restricted = true
			inside = inside || s.holds(n)
		}
	}
	if restricted && !inside {
		return fault.New(fault.Denied, "name_not_permitted", "%s lies outside the names that are permitted here", n)
	}
	for _, s := range c.excluded {
		if s.kind == n.Kind && (s.holds(n) || s.touchesWildcard(n)) {
			return fault.New(fault.Denied, "name_not_permitted", "%s lies among the names that are excluded here", n)
		}
	}
	return nil
}

func (c constraints) checkAll(names []name.Name) error {
	for _, n := range names {
		if err := c.check(n); err != nil {
			return err
		}
	}
	return nil
}

func (s subtree) holds(n name.Name) bool {
	switch n.Kind {
	case name.DNS:
		host := strings.TrimPrefix(n.Text, "*.")
		return host == s.base || strings.HasSuffix(host, "."+s.base)
	case name.IP:
		address, err := netip.ParseAddr(n.Text)
		return err == nil && s.net.Contains(address)
	case name.Email:
		text := strings.ToLower(n.Text)
		return text == s.base || hostMatches(s.base, text[strings.LastIndexByte(text, '@')+1:])
	default:
		u, err := url.Parse(n.Text)
		return err == nil && hostMatches(s.base, strings.ToLower(u.Hostname()))
	}
}

func hostMatches(base, host string) bool {
	if strings.HasPrefix(base, ".") {
		return strings.HasSuffix(host, base)
	}
	return host == base
}

// touchesWildcard reports whether a wildcard name stands for a name of the subtree.
func (s subtree) touchesWildcard(n name.Name) bool {
	return n.Kind == name.DNS && n.Covers(name.Name{Kind: name.DNS, Text: s.base})
}

// encode writes the value of the extension: NameConstraints (RFC 5280 §4.2.1.10).
func (c constraints) encode(b *cryptobyte.Builder) {
	b.AddASN1(tag.SEQUENCE, func(b *cryptobyte.Builder) {
		for n, trees := range [][]subtree{c.permitted, c.excluded} {
			if len(trees) == 0 {
				continue
			}
			b.AddASN1(explicit(uint8(n)), func(b *cryptobyte.Builder) {
				for _, s := range trees {
					b.AddASN1(tag.SEQUENCE, s.encode)
				}
			})
		}
	})
}

func (s subtree) encode(b *cryptobyte.Builder) {
	value := []byte(s.base)
	if s.kind == name.IP { // address and mask, 8 or 32 octets
		value = s.net.Addr().AsSlice()
		mask := make([]byte, len(value))
		for i := range s.net.Bits() {
			mask[i/8] |= 0x80 >> (i % 8)
		}
		value = append(value, mask...)
	}
	b.AddASN1(nameTags[s.kind].ContextSpecific(), octets(value))
}
