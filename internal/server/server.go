// Package server wires the rooms together. New is the floor plan: the store at the bottom, keys on it, then the
// domains, which meet only through the small interfaces in wire.go, then the protocols, then the listeners.
package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"golang.org/x/sync/errgroup"

	"chancery/api"
	"chancery/internal/base/fault"
	"chancery/internal/core/keyring"
	"chancery/internal/core/store"
	"chancery/internal/domain/account"
	"chancery/internal/domain/agent"
	"chancery/internal/domain/ca"
	"chancery/internal/edge/adminapi"
	"chancery/internal/edge/agentapi"
	"chancery/internal/edge/front"
	"chancery/internal/edge/pkiapi"
	"chancery/internal/edge/rest"
)

// A Server is the whole program over one data directory. Its rooms are open to the commands that work without a
// listener, such as quickstart.
type Server struct {
	Config    Config
	Store     *store.Store
	Keys      *keyring.Ring
	Authority *ca.Hierarchy
	Accounts  *account.Directory
	Agents    *agent.Registry

	front *front.Front
	own   *ownCertificate
	log   *slog.Logger
}

// New opens everything from the ground up; nothing listens yet. Read it as the floor plan. The passphrase opens the
// keyring and is not kept.
func New(ctx context.Context, c Config, passphrase []byte, log *slog.Logger) (s *Server, err error) {
	s = &Server{Config: c, log: log}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close(ctx))
		}
	}()
	metrics := front.NewMetrics()
	s.Store, err = store.Open(ctx, store.Config{
		URL: c.storeURL(), Accept: c.Store.Accept, Cache: int64(c.Store.Cache), Log: log, Observe: phases(metrics.Observe), ObserveBatch: metrics.Committed,
	})
	if err != nil {
		return s, fmt.Errorf("open the store: %w", err)
	}
	if err = measure(metrics, s.Store); err != nil {
		return s, err
	}
	if s.Keys, err = keyring.Open(ctx, s.Store, passphrase); err != nil {
		return s, fmt.Errorf("open the keyring: %w", err)
	}
	if err = s.signAudit(ctx); err != nil {
		return s, err
	}
	s.Authority, err = ca.New(ctx, s.Store, s.Keys, ca.Config{
		BaseURL: c.Name.PublicURL, TrustDomain: c.Name.TrustDomain, CRLLifetime: time.Duration(c.Status.CRL), OCSPLifetime: time.Duration(c.Status.OCSP),
		Profiles: []ca.Profile{standingPrincipal()}, Observe: metrics.Observe,
	})
	if err != nil {
		return s, err
	}
	s.Accounts = account.New(s.Store, account.Config{})
	s.Agents = agent.New(s.Store, agentAuthority{s.Authority}, people{s.Accounts}, heldKeys{s.Keys, s.Store}, agent.Config{
		Realm: c.Name.TrustDomain, Lifetime: time.Duration(c.Agent.Lifetime), Skew: time.Duration(c.Agent.Skew), Invitation: time.Duration(c.Agent.Invitation),
		Observe: metrics.Observe,
	}, time.Now)

	routes := rest.New("Chancery", Version())
	pkiapi.Register(routes, s.Authority)
	agentapi.Register(routes, s.Agents, s.stopped)
	adminapi.Register(routes, s.Accounts, s.Store, Version(), func() []api.Refusal { return s.front.Recent() })
	hosts, err := c.Name.parse()
	if err != nil {
		return s, err
	}
	s.own = &ownCertificate{authority: s.Authority, hosts: hosts, log: log}
	s.front, err = front.New(c.front(s.own.get, log), routes, authenticator{s.Authority, s.Accounts, s.Agents, &signatures{}}, metrics)
	return s, err
}

func (s *Server) stopped(targets ...string) bool {
	_, revoked := s.Authority.Revoked(targets...)
	return revoked
}

// stopTimeout leaves Close two of the ten seconds that a service manager waits.
const stopTimeout = 8 * time.Second

// Run listens, calls ready once it does, and goes on until ctx ends. Then it stops within eight seconds: it accepts
// nothing more and finishes what it accepted.
func (s *Server) Run(ctx context.Context, ready func()) error {
	err := s.own.renew(ctx)
	if fault.CodeOf(err) == "authority_unknown" {
		return fault.New(fault.NotFound, "data_missing", "the database holds no authorities yet").WithHint("`chancery init` makes them")
	}
	if err != nil {
		return fmt.Errorf("certificate for the own listener: %w", err)
	}
	if err := s.front.Start(ctx); err != nil {
		return err
	}
	ready()
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return s.own.keepFresh(ctx) })
	group.Go(func() error {
		s.Authority.Run(ctx, func(err error) { s.log.Error("tending the authorities", "error", err) })
		return nil
	})
	group.Go(func() error { return s.sweep(ctx) })
	group.Go(func() error {
		select {
		case err := <-s.front.Failed():
			return err
		case <-ctx.Done():
			return nil
		}
	})
	err = group.Wait()
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	return errors.Join(err, s.front.Stop(stopping))
}

// sweep removes expired credentials every hour, on one instance at a time, until ctx ends.
func (s *Server) sweep(ctx context.Context) error {
	const every = time.Hour
	hour := time.NewTicker(every)
	defer hour.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-hour.C:
		}
		mine, err := s.Store.Lease(ctx, "credential retention", every)
		if err == nil && mine {
			err = errors.Join(s.Accounts.Retire(ctx), s.Agents.Retire(ctx))
		}
		if err != nil && ctx.Err() == nil {
			s.log.Error("removing expired credentials", "error", err)
		}
	}
}

// Close frees everything, in the reverse order of New. Queued writes are finished until ctx ends.
func (s *Server) Close(ctx context.Context) error {
	if s.Accounts != nil {
		s.Accounts.Close()
	}
	if s.Authority != nil {
		s.Authority.Close()
	}
	if s.Keys != nil {
		s.Keys.Close()
	}
	if s.Store == nil {
		return nil
	}
	return s.Store.Close(ctx)
}

// Version is the version of this build, as the Go toolchain recorded it.
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	version := info.Main.Version
	for _, setting := range info.Settings {
		if setting.Key == "vcs.revision" && (version == "" || version == "(devel)") {
			return setting.Value[:min(12, len(setting.Value))]
		}
	}
	return version
}
