package pkix

import (
	"encoding/asn1"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/crypto/cryptobyte"
	tag "golang.org/x/crypto/cryptobyte/asn1"

	"chancery/internal/base/fault"
	"chancery/internal/base/id"
	"chancery/internal/base/name"
)

// Object identifiers that the room writes or reads.
var (
	oidCountry      = asn1.ObjectIdentifier{2, 5, 4, 6}
	oidOrganization = asn1.ObjectIdentifier{2, 5, 4, 10}
	oidUnit         = asn1.ObjectIdentifier{2, 5, 4, 11}
	oidCommonName   = asn1.ObjectIdentifier{2, 5, 4, 3}

	oidSubjectKeyID     = asn1.ObjectIdentifier{2, 5, 29, 14}
	oidKeyUsage         = asn1.ObjectIdentifier{2, 5, 29, 15}
	oidSubjectAltName   = asn1.ObjectIdentifier{2, 5, 29, 17}
	oidBasicConstraints = asn1.ObjectIdentifier{2, 5, 29, 19}
	oidCRLNumber        = asn1.ObjectIdentifier{2, 5, 29, 20}
	oidReasonCode       = asn1.ObjectIdentifier{2, 5, 29, 21}
	oidNameConstraints  = asn1.ObjectIdentifier{2, 5, 29, 30}
	oidCRLPoints        = asn1.ObjectIdentifier{2, 5, 29, 31}
	oidPolicies         = asn1.ObjectIdentifier{2, 5, 29, 32}
	oidAuthorityKeyID   = asn1.ObjectIdentifier{2, 5, 29, 35}
	oidExtKeyUsage      = asn1.ObjectIdentifier{2, 5, 29, 37}
	oidAuthorityInfo    = asn1.ObjectIdentifier{1, 3, 6, 1, 5, 5, 7, 1, 1}

	oidOCSP      = asn1.ObjectIdentifier{1, 3, 6, 1, 5, 5, 7, 48, 1}
	oidOCSPBasic = asn1.ObjectIdentifier{1, 3, 6, 1, 5, 5, 7, 48, 1, 1}
	oidOCSPNonce = asn1.ObjectIdentifier{1, 3, 6, 1, 5, 5, 7, 48, 1, 2}
	oidNoCheck   = asn1.ObjectIdentifier{1, 3, 6, 1, 5, 5, 7, 48, 1, 5}
	oidCAIssuers = asn1.ObjectIdentifier{1, 3, 6, 1, 5, 5, 7, 48, 2}
)

// explicit is the tag of a field that ASN.1 writes as [n] EXPLICIT.
func explicit(n uint8) tag.Tag { return tag.Tag(n).ContextSpecific().Constructed() }

// nameTags are the tags of GeneralName by kind (RFC 5280 §4.2.1.6).
var nameTags = [...]tag.Tag{name.DNS: 2, name.IP: 7, name.Email: 1, name.URI: 6}

func parseOID(dotted string) (asn1.ObjectIdentifier, error) {
	var oid asn1.ObjectIdentifier
	for part := range strings.SplitSeq(dotted, ".") {
		n, err := strconv.Atoi(part)
		if err != nil || n < 0 || strconv.Itoa(n) != part || len(oid) == 20 {
			return nil, fmt.Errorf("%.80q is not an object identifier", dotted)
		}
		oid = append(oid, n)
	}
	var b cryptobyte.Builder
	b.AddASN1ObjectIdentifier(oid)
	if _, err := b.Bytes(); err != nil {
		return nil, fmt.Errorf("%.80q is not an object identifier", dotted)
	}
	return oid, nil
}

// addOID writes an object identifier given in dotted form or as the name of an extended key usage.
func addOID(b *cryptobyte.Builder, text string) {
	oid, err := extKeyUsageOID(text)
	if err != nil {
		b.SetError(err)
		return
	}
	b.AddASN1ObjectIdentifier(oid)
}

func extKeyUsageOID(usage string) (asn1.ObjectIdentifier, error) {
	if dotted, ok := extKeyUsageOIDs[usage]; ok {
		usage = dotted
	}
	oid, err := parseOID(usage)
	if err == nil && usage == "2.5.29.37.0" {
		return nil, fmt.Errorf("anyExtendedKeyUsage says nothing; name the usages")
	}
	return oid, err
}

// addExtension writes one Extension (RFC 5280 §4.1); criticality FALSE is the default and so is left out.
func addExtension(b *cryptobyte.Builder, oid asn1.ObjectIdentifier, critical bool, value cryptobyte.BuilderContinuation) {
	b.AddASN1(tag.SEQUENCE, func(b *cryptobyte.Builder) {
		b.AddASN1ObjectIdentifier(oid)
		if critical {
			b.AddASN1Boolean(true)
		}
		b.AddASN1(tag.OCTET_STRING, value)
	})
}

// octets writes what is encoded already.
func octets(der []byte) cryptobyte.BuilderContinuation {
	return func(b *cryptobyte.Builder) { b.AddBytes(der) }
}

// sequence writes a SEQUENCE of what fn writes.
func sequence(fn cryptobyte.BuilderContinuation) cryptobyte.BuilderContinuation {
	return func(b *cryptobyte.Builder) { b.AddASN1(tag.SEQUENCE, fn) }
}

// addSerial writes a serial as INTEGER: shortest form, positive.
func addSerial(b *cryptobyte.Builder, s id.Serial) {
	for len(s) > 1 && s[0] == 0 {
		s = s[1:]
	}
	b.AddASN1(tag.INTEGER, func(b *cryptobyte.Builder) {
		if len(s) == 0 || s[0] >= 0x80 {
			b.AddUint8(0)
		}
		b.AddBytes(s)
	})
}

// addTime writes a Time: UTCTime through 2049, GeneralizedTime from 2050 on (RFC 5280 §4.1.2.5).
func addTime(b *cryptobyte.Builder, t time.Time) {
	if t.Year() < 2050 {
		b.AddASN1UTCTime(t)
		return
	}
	b.AddASN1GeneralizedTime(t)
}

// A Subject is the part of a distinguished name that Chancery writes (RFC 5280 §4.1.2.6). Empty fields are left out.
type Subject struct {
	CommonName   string `json:"common_name,omitempty"`  // at most 64 characters
	Organization string `json:"organization,omitempty"` // at most 64 characters
	Unit         string `json:"unit,omitempty"`         // organizational unit, at most 64 characters
	Country      string `json:"country,omitempty"`      // two capital letters (ISO 3166)
}

// check holds the upper bounds of RFC 5280 appendix A. Faults are Invalid, code subject_invalid.
func (s Subject) check() error {
	for _, text := range []string{s.CommonName, s.Organization, s.Unit} {
		if utf8.RuneCountInString(text) > 64 || !utf8.ValidString(text) || strings.ContainsFunc(text, unicode.IsControl) ||
			strings.TrimSpace(text) != text {
			return fault.New(fault.Invalid, "subject_invalid", "%.80q cannot stand in a subject", text).
				WithHint("use at most 64 printable characters, without space around them")
		}
	}
	if c := s.Country; c != "" && (len(c) != 2 || strings.Trim(c, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") != "") {
		return fault.New(fault.Invalid, "subject_invalid", "%.20q is not a country code of two capital letters", c)
	}
	return nil
}

// encode writes the Name, one attribute to a relative distinguished name, the widest first.
func (s Subject) encode() ([]byte, error) {
	var b cryptobyte.Builder
	b.AddASN1(tag.SEQUENCE, func(b *cryptobyte.Builder) {
		addAttribute(b, oidCountry, tag.PrintableString, s.Country)
		addAttribute(b, oidOrganization, tag.UTF8String, s.Organization)
		addAttribute(b, oidUnit, tag.UTF8String, s.Unit)
		addAttribute(b, oidCommonName, tag.UTF8String, s.CommonName)
	})
	return b.Bytes()
}

func addAttribute(b *cryptobyte.Builder, oid asn1.ObjectIdentifier, kind tag.Tag, text string) {
	if text == "" {
		return
	}
	b.AddASN1(tag.SET, func(b *cryptobyte.Builder) {
		b.AddASN1(tag.SEQUENCE, func(b *cryptobyte.Builder) {
			b.AddASN1ObjectIdentifier(oid)
			b.AddASN1(kind, octets([]byte(text)))
		})
	})
}

// encodeNames writes GeneralNames (RFC 5280 §4.2.1.6); without names it gives nil.
func encodeNames(names []name.Name) ([]byte, error) {
	if len(names) == 0 {
		return nil, nil
	}
	var b cryptobyte.Builder
	b.AddASN1(tag.SEQUENCE, func(b *cryptobyte.Builder) {
		for _, n := range names {
			value := []byte(n.Text)
			if n.Kind == name.IP {
				address, err := netip.ParseAddr(n.Text)
				if err != nil {
					b.SetError(fmt.Errorf("encode name %s: %w", n, err))
					return
				}
				value = address.AsSlice()
			}
			b.AddASN1(nameTags[n.Kind].ContextSpecific(), octets(value))
		}
	})
	return b.Bytes()
}
