// Package pkix is what certificates, requests, revocation lists and status answers look like: the X.509 of RFC 5280,
// PKCS #10 and OCSP, read strictly and written octet by octet.
//
// Certificates of one profile share most of their octets. A Template holds those, encoded once; issuing patches in the
// rest and signs once. A Roll keeps the entries of a revocation list encoded, so that one more costs one entry. Nothing
// here is taken on trust: tests show every form to crypto/x509, to openssl and to the RFC lints of zlint.
//
// Invariants: what comes from outside is bounded before it is parsed, and refused with a fault that says why. Issuers
// and templates are immutable; everything but a Roll is safe for concurrent use.
//
// The room stores nothing and decides nothing: who may have a certificate, and what is revoked, is known above.
package pkix
