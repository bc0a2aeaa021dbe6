package server

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"chancery/internal/base/fault"
	"chancery/internal/base/who"
	"chancery/internal/domain/ca"
)

// The authorities that every installation starts with.
const (
	Root     = "root"
	People   = "people"
	Agents   = "agents"
	Machines = "machines"
)

// AsOperator gives a context in which the person at the machine acts.
func AsOperator(ctx context.Context) context.Context {
	return who.With(ctx, who.Caller{Kind: who.Operator, ID: "operator", Name: "operator", Permissions: who.Permissions(), AllAuthorities: true, Credential: "data directory"})
}

// Prepare makes the root and the issuing authorities that are not there yet, durable on return.
func (s *Server) Prepare(ctx context.Context) error {
	ctx = AsOperator(ctx)
	domain := s.Config.Name.TrustDomain
	for _, spec := range []ca.Spec{
		{Name: Root, Subject: ca.Subject{CommonName: "Chancery root of " + domain}},
		{Name: People, Parent: Root, Subject: ca.Subject{CommonName: "People of " + domain}},
		{Name: Agents, Parent: Root, Subject: ca.Subject{CommonName: "Agents of " + domain}},
		{Name: Machines, Parent: Root, Subject: ca.Subject{CommonName: "Machines of " + domain}},
	} {
		if _, err := s.Authority.Create(ctx, spec); err != nil && fault.CodeOf(err) != "authority_exists" {
			return fmt.Errorf("make authority %s: %w", spec.Name, err)
		}
	}
	return nil
}

// FindPassphrase finds the passphrase of the keyring: as configured, or in the data directory's file. With invent, and
// where there is neither a database nor a passphrase, it makes one and writes that file for this user alone.
func (c Config) FindPassphrase(invent bool) ([]byte, error) {
	if !c.Keys.Passphrase.IsZero() {
		return []byte(c.Keys.Passphrase.Reveal()), nil
	}
	text, err := os.ReadFile(c.PassphrasePath())
	switch {
	case err == nil:
		return trimLine(text), nil
	case !errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("read the passphrase: %w", err)
	case !invent:
		return nil, fault.New(fault.Invalid, "passphrase_missing", "there is no passphrase to open the keyring with").
			WithHint("set CHANCERY_KEYS_PASSPHRASE, name a file in keys.passphrase_file, or answer the prompt on a terminal")
	}
	var random [24]byte
	rand.Read(random[:])
	invented := base64.RawURLEncoding.EncodeToString(random[:])
	return []byte(invented), writePrivate(c.PassphrasePath(), []byte(invented+"\n"))
}

func trimLine(text []byte) []byte {
	for len(text) > 0 && (text[len(text)-1] == '\n' || text[len(text)-1] == '\r') {
		text = text[:len(text)-1]
	}
	return text
}

func writePrivate(path string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return os.WriteFile(path, content, 0o600)
}
