// Package ca is the certificate authority: it says what certificates look like, issues and renews them, revokes them,
// and answers for their status.
//
// Two ideas carry it. Certificates of one profile share most of their octets, so those are encoded once and each
// certificate is patched, signed once and stored once. And a certificate's status is derived: revoking an agent, a
// delegation, a person or an authority is one row, and whatever stands below it is dead in the same moment, in OCSP,
// CRL and search alike, even if it is stored a moment later.
//
// Invariants: a certificate leaves only after its row is durable. Serials and CRL numbers never go back, whatever the
// clock does. Where two instances share a store, the store decides what was issued, replayed or revoked; memory only
// saves work.
//
// The room knows nothing of who may ask (the edge), of what an agent may do or how a delegation is proved (the
// agent room hands over encoded extensions), or of HTTP.
package ca
