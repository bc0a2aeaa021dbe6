package ca

import (
	"fmt"
	"slices"
	"strings"

	"github.com/zmap/zcrypto/x509"
	"github.com/zmap/zlint/v3"
	"github.com/zmap/zlint/v3/lint"
)

// lintSources are the RFC rules of zlint. The rules of browsers and of the CA/Browser Forum refuse private names, which
// are our daily bread.
var lintSources = lint.SourceList{
	lint.RFC3279, lint.RFC5280, lint.RFC5480, lint.RFC5891, lint.RFC6960, lint.RFC6962, lint.RFC8813,
}

// lintCertificate says what the RFC lints find wrong with a certificate in DER: warnings and errors, none means nil.
// It takes milliseconds and so runs when a profile is saved, not when a certificate is issued.
func lintCertificate(der []byte) error {
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return fmt.Errorf("parse for lint: %w", err)
	}
	rules, err := lint.GlobalRegistry().Filter(lint.FilterOptions{IncludeSources: lintSources})
	if err != nil {
		return fmt.Errorf("choose lints: %w", err)
	}
	return complaints(zlint.LintCertificateEx(cert, rules))
}

func complaints(results *zlint.ResultSet) error {
	var found []string
	for rule, r := range results.Results {
		if r.Status >= lint.Warn {
			found = append(found, strings.TrimSpace(rule+" "+r.Details))
		}
	}
	if len(found) == 0 {
		return nil
	}
	slices.Sort(found)
	return fmt.Errorf("lints: %s", strings.Join(found, "; "))
}
