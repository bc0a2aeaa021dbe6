package agentcert

import (
	"crypto/sha256"
	"sync"
	"time"
)

const maxSessions = 100_000 // about 10 MB

// sessions keeps the obligations of decisions within this process. A session is the use of one agent certificate; the
// limit on concurrency is per agent, whichever of its certificates it uses. Memory is bounded: with too many sessions
// alive new ones are refused.
type sessions struct {
	mu            sync.Mutex
	most          int
	running       map[agentKey]int
	byCertificate map[[sha256.Size]byte]*session
	swept         time.Time
}

type agentKey struct{ agent, realm, identifier string }

type session struct {
	first, last, expires time.Time
	running              int
}

func newSessions(most int) *sessions {
	return &sessions{most: most, running: make(map[agentKey]int), byCertificate: make(map[[sha256.Size]byte]*session)}
}

// begin starts an operation. The function that it returns must be called when the operation has ended.
func (s *sessions) begin(d Decision, now func() time.Time) (end func(), refusal *Refusal) {
	o := d.Obligations
	if o.MaxConcurrent == 0 && o.IdleTimeout == 0 && o.HardTimeout == 0 {
		return func() {}, nil
	}
	key := agentKey{d.AgentID, d.Principal.Realm, d.Principal.Identifier}
	certificate := sha256.Sum256(d.verification.chain[0].Raw)
	s.mu.Lock()
	defer s.mu.Unlock()
	at := now()
	current, refusal := s.current(certificate, d.Expires, at)
	if refusal != nil {
		return nil, refusal
	}
	switch {
	case o.MaxConcurrent > 0 && s.running[key] >= o.MaxConcurrent:
		return nil, refuse(StepObligation, "too_many_concurrent", "the agent runs %d operations already, and no more are allowed at one time", o.MaxConcurrent)
	case o.IdleTimeout > 0 && current.running == 0 && at.Sub(current.last) > o.IdleTimeout:
		return nil, refuse(StepObligation, "session_idle", "the session ended after %s without an operation; a new certificate begins a new one", o.IdleTimeout)
	case o.HardTimeout > 0 && at.Sub(current.first) > o.HardTimeout:
		return nil, refuse(StepObligation, "session_over", "the session has lasted longer than %s; a new certificate begins a new one", o.HardTimeout)
	}
	s.running[key]++
	current.running++
	current.last = at
	return func() { s.end(key, current, now()) }, nil
}

func (s *sessions) end(key agentKey, current *session, at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	current.running--
	current.last = at
	if s.running[key]--; s.running[key] == 0 {
		delete(s.running, key)
	}
}

func (s *sessions) current(certificate [sha256.Size]byte, expires, at time.Time) (*session, *Refusal) {
	if known, found := s.byCertificate[certificate]; found {
		return known, nil
	}
	if len(s.byCertificate) >= s.most {
		s.sweep(at)
	}
	if len(s.byCertificate) >= s.most {
		return nil, refuse(StepObligation, "sessions_full", "this service keeps %d sessions already; try again later", s.most)
	}
	fresh := &session{first: at, last: at, expires: expires}
	s.byCertificate[certificate] = fresh
	return fresh, nil
}

// sweep forgets sessions whose certificate has expired, at most once a second.
func (s *sessions) sweep(at time.Time) {
	if at.Sub(s.swept) < time.Second {
		return
	}
	s.swept = at
	for certificate, known := range s.byCertificate {
		if at.After(known.expires) && known.running == 0 {
			delete(s.byCertificate, certificate)
		}
	}
}
