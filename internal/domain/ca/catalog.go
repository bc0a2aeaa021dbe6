package ca

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"chancery/internal/base/fault"
	"chancery/internal/core/store"
)

// SaveProfile stores a profile, new or in place of one of the same name, after a sample certificate of it has passed
// the RFC lints. It is durable on return, in force here at once and on other instances within a second; certificates
// that were issued before keep what they have. A built-in profile can be narrowed, but goes on to serve its purpose.
//
// Faults: Invalid profile_invalid, profile_lint; Denied profile_built_in.
func (h *Hierarchy) SaveProfile(ctx context.Context, p Profile) error {
	if err := p.Validate(); err != nil {
		return err
	}
	if err := h.servesItsName(&p); err != nil {
		return err
	}
	if err := p.Lint(); err != nil {
		return fault.New(fault.Invalid, "profile_lint", "a certificate of profile %s would break the rules: %v", p.Name, err)
	}
	body, err := json.Marshal(p)
	if err != nil {
		return fmt.Errorf("encode profile %s: %w", p.Name, err)
	}
	return h.db.Write(ctx, func(tx *store.Tx) error {
		fresh, err := tx.InsertNew("INSERT INTO profile (name, body, changed_at) VALUES (?, ?, ?)", p.Name, string(body), tx.Now())
		if err == nil && !fresh {
			_, err = tx.Exec("UPDATE profile SET body = ?, changed_at = ? WHERE name = ?", string(body), tx.Now(), p.Name)
		}
		if err != nil {
			return err
		}
		if err := tx.Audit(line(tx, "profile.save", p.Name, string(body))); err != nil {
			return err
		}
		return tx.Publish(store.Change{Topic: topicProfile, Key: p.Name})
	})
}

// servesItsName keeps a replaced profile, built in or configured, what the rest of the program relies on: a policy says
// that a key is held here, and services look for it.
func (h *Hierarchy) servesItsName(p *Profile) error {
	for _, built := range slices.Concat(BuiltIn(), h.config.Profiles) {
		if built.Name != p.Name {
			continue
		}
		if built.Authority != p.Authority || !slices.Equal(built.Extensions, p.Extensions) || !slices.Equal(built.ExtKeyUsages, p.ExtKeyUsages) ||
			built.CommonName != p.CommonName || slices.ContainsFunc(built.Policies, func(oid string) bool { return !slices.Contains(p.Policies, oid) }) || p.Name == agentProfile && p.BackdateSec != 0 {
			return fault.New(fault.Denied, "profile_built_in", "the built-in profile %s keeps its purpose, extensions and subject", p.Name).
				WithHint("change its lifetimes, keys, names or policies, or save a profile of another name")
		}
	}
	return nil
}
