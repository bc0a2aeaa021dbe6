package server

import (
	"context"
	"crypto"
	"crypto/tls"
	"crypto/x509/pkix"
	"errors"
	"log/slog"
	"slices"
	"time"

	"chancery/agentcert"
	"chancery/internal/base/fault"
	"chancery/internal/base/id"
	"chancery/internal/base/key"
	"chancery/internal/base/who"
	"chancery/internal/core/keyring"
	"chancery/internal/core/store"
	"chancery/internal/domain/account"
	"chancery/internal/domain/agent"
	"chancery/internal/domain/ca"
	"chancery/internal/edge/front"
)

// agentAuthority lets the agent room order certificates of the authorities for people and for agents.
type agentAuthority struct{ *ca.Hierarchy }

func (a agentAuthority) CertifyPrincipal(ctx context.Context, o agent.PrincipalOrder) (agent.Certificate, error) {
	profile := "principal"
	if o.Standing {
		profile = standingProfile
	}
	issued, err := a.Issue(ctx, ca.Order{
		Authority: People, Profile: profile, SPKI: o.SPKI, Subject: &ca.Subject{CommonName: o.Name}, Owner: o.Person, Lifetime: time.Until(o.NotAfter), NotAfter: o.NotAfter,
		Extensions: []pkix.Extension{{Id: agentcert.OIDPrincipalAuthorization, Value: o.Authorization}},
	})
	return a.certificate(ctx, People, issued, err)
}

// standingProfile is the profile of principal certificates whose key is held here; a policy marks them.
const standingProfile = "principal-standing"

func standingPrincipal() ca.Profile {
	profiles := ca.BuiltIn()
	p := profiles[slices.IndexFunc(profiles, func(p ca.Profile) bool { return p.Name == "principal" })]
	p.Name, p.Description = standingProfile, "a person's key that the keyring holds for standing approvals"
	p.Policies = append(p.Policies, agentcert.OIDStandingApproval.String())
	return p
}

func (a agentAuthority) CertifyAgent(ctx context.Context, o agent.Order) (agent.Certificate, error) {
	serial, err := id.ParseSerial(o.PrincipalSerial)
	if err != nil {
		return agent.Certificate{}, err
	}
	issued, err := a.IssueAgent(ctx, ca.AgentOrder{
		Authority: Agents, SPKI: o.SPKI, AgentID: o.Agent, Name: o.Name, AIC: o.AIC, Lifetime: o.Lifetime, NotAfterMax: o.NotAfterMax,
		SignedAt: o.SignedAt.Unix(), Nonce: [32]byte(o.Nonce), Request: o.Request, Principal: o.Principal, PrincipalSerial: serial, Delegation: o.Delegation,
	})
	return a.certificate(ctx, Agents, issued, err)
}

func (a agentAuthority) FindByEvidence(ctx context.Context, signedAt time.Time, nonce []byte) (agent.Certificate, [32]byte, bool, error) {
	issued, keyHash, found, err := a.Hierarchy.FindByEvidence(ctx, signedAt.Unix(), [32]byte(nonce))
	if err != nil || !found {
		return agent.Certificate{}, keyHash, false, err
	}
	c, err := a.certificate(ctx, Agents, issued, nil)
	return c, keyHash, true, err
}

func (a agentAuthority) certificate(ctx context.Context, authority string, issued ca.Issued, err error) (agent.Certificate, error) {
	if err != nil {
		return agent.Certificate{}, err
	}
	issuer, err := a.Authority(ctx, authority)
	if err != nil {
		return agent.Certificate{}, err
	}
	above, err := a.Authority(ctx, People)
	return agent.Certificate{
		Serial: issued.Serial.String(), DER: issued.DER, Issuer: issuer.Certificate, PrincipalIssuer: above.Certificate,
		NotBefore: issued.NotBefore, NotAfter: issued.NotAfter, Again: issued.Again,
	}, err
}

func (a agentAuthority) Revoke(ctx context.Context, target, reason string) error {
	t, err := ca.ParseTarget(target)
	if err != nil {
		return err
	}
	r, err := ca.ParseReason(reason)
	if err != nil {
		return err
	}
	return a.Hierarchy.Revoke(ctx, t, r, "")
}

// people tells the agent room who may answer for agents.
type people struct{ *account.Directory }

func (p people) Person(ctx context.Context, person string) (string, error) {
	holder, err := p.Holder(ctx, person)
	if err == nil && holder.Kind != who.Person {
		err = fault.New(fault.Denied, "account_disabled", "%s is not a person's account", holder.Name)
	}
	return holder.Name, err
}

// heldKeys keeps the keys for standing approvals in the keyring.
type heldKeys struct {
	ring *keyring.Ring
	db   *store.Store
}

func (k heldKeys) Signer(ctx context.Context, name string) (crypto.Signer, error) {
	return k.ring.Signer(ctx, name)
}

func (k heldKeys) Create(ctx context.Context, name string) (crypto.PublicKey, error) {
	fresh, err := keyring.Prepare(key.P256)
	if err != nil {
		return nil, err
	}
	err = k.db.Write(ctx, func(tx *store.Tx) error { return k.ring.Keep(tx, name, fresh) })
	if err != nil && fault.CodeOf(err) != "key_exists" {
		return nil, err
	}
	signer, err := k.Signer(ctx, name)
	if err != nil {
		return nil, err
	}
	return signer.Public(), nil
}

// phases tells the metrics of the store's phases by their names.
func phases(observe func(phase string, d time.Duration)) func(store.Phase, time.Duration) {
	return func(p store.Phase, d time.Duration) { observe(p.String(), d) }
}

// measure adds the gauges of a store. Those of SQLite's log are 0 on a database server.
func measure(m *front.Metrics, db *store.Store) error {
	return errors.Join(
		m.Gauge("chancery_writes_waiting", "Writes that wait for their commit.", func() float64 { n, _ := db.Backlog(); return float64(n) }),
		m.Gauge("chancery_log_bytes", "Size of SQLite's write-ahead log.", func() float64 { return float64(db.Stats().LogBytes) }),
		m.Gauge("chancery_log_held_seconds", "For how long a reader has kept the write-ahead log from being folded in, past 32 MB.",
			func() float64 { return db.Stats().LogHeld.Seconds() }),
		m.Gauge("chancery_oldest_read_seconds", "Age of the oldest read of this process on SQLite.", func() float64 { return db.Stats().OldestRead.Seconds() }),
	)
}

func (c Config) front(certificates func(*tls.ClientHelloInfo) (*tls.Certificate, error), log *slog.Logger) front.Config {
	listen := map[front.Listener]string{front.Socket: c.SocketPath()}
	for listener, address := range map[front.Listener]string{
		front.HTTPS: c.Listen.HTTPS, front.MTLS: c.Listen.MTLS, front.Loopback: c.Listen.Loopback, front.Public: c.Listen.Public, front.Private: c.Listen.Private,
	} {
		if address != "" {
			listen[listener] = address
		}
	}
	connections := within(c.Limit.Connections, openFiles())
	if connections < c.Limit.Connections {
		log.Warn("fewer files may be open than limit.connections needs; raise the limit of open files (ulimit -n, LimitNOFILE)",
			"limit.connections", c.Limit.Connections, "connections", connections)
	}
	return front.Config{
		Listen: listen, Certificates: certificates, Connections: connections, Rate: float64(c.Limit.Anonymous), Profiles: c.Listen.Profiles, Log: log,
		Gate: front.Capacity{Bytes: int64(c.Limit.Memory), Wait: time.Duration(c.Limit.Wait), Rate: float64(c.Limit.Rate)},
	}
}

// ownFiles is how many files the process needs beside its connections: databases, listeners, logs.
const ownFiles = 128

// within gives how many connections fit into so many open files; 0 files is no bound.
func within(connections, files int) int {
	if files == 0 {
		return connections
	}
	return min(connections, max(files-ownFiles, 1))
}
