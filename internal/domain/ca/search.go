package ca

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"time"

	"chancery/internal/base/fault"
	"chancery/internal/base/id"
	"chancery/internal/base/name"
	"chancery/internal/core/store"
)

// A Query asks for certificates. All that is set has to hold; with nothing set it asks for all.
type Query struct {
	Authority string
	Serial    id.Serial
	Name      string // kind:text or a bare name, exact; an agent's is its SPIFFE identifier
	KeyHash   []byte // SHA-256 of the SubjectPublicKeyInfo; finds agent certificates together with Agent or Principal only
	Principal string // whom the certificate belongs to, or who answers for its agent
	Agent     string
	Cursor    string // Next of the page before
	Limit     int    // at most 1000; zero is 100
}

// Found is a stored certificate.
type Found struct {
	Serial              id.Serial
	Authority           string
	Profile             string
	Owner               string   // person or service account; of an agent certificate, the principal
	Agent, Delegation   string   // of an agent certificate
	Names               []string // kind:text
	KeyHash             []byte
	NotBefore, NotAfter time.Time
	DER                 []byte
	Status              Status

	principalCertificate string // of an agent certificate: a revocation target
}

// A Page is a part of an answer, in the order of serials, so roughly of time.
type Page struct {
	Certificates []Found
	Next         string // cursor of the next page; empty on the last
}

// Find searches ordinary and agent certificates. Pages follow the serial, which no two certificates share: each
// certificate that is there all the while comes exactly once, whatever comes and goes between pages. What was issued
// within the last seconds is found too. Faults: Invalid cursor_invalid, name_invalid.
func (h *Hierarchy) Find(ctx context.Context, q Query) (Page, error) {
	if q.Limit <= 0 {
		q.Limit = 100
	}
	q.Limit = min(q.Limit, 1000)
	var after id.Serial
	if q.Cursor != "" {
		var err error
		if after, err = id.ParseSerial(q.Cursor); err != nil {
			return Page{}, fault.New(fault.Invalid, "cursor_invalid", "%.64q is not the cursor of a page", q.Cursor)
		}
	}
	ordinary, agents, err := h.conditions(q, after)
	if err != nil {
		return Page{}, err
	}
	if err := h.revoked.catchUp(ctx, h.db); err != nil {
		return Page{}, err
	}
	var all []Found
	err = h.db.Read(ctx, func(tx *store.Tx) error {
		all = nil
		for _, c := range []*condition{ordinary, agents} {
			if err := c.read(tx, q.Limit+1, func(f Found) { all = append(all, f) }); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return Page{}, fmt.Errorf("searching certificates: %w", err)
	}
	return h.page(ctx, all, q.Limit)
}

// page orders what two tables gave, cuts it and derives the statuses.
func (h *Hierarchy) page(ctx context.Context, all []Found, limit int) (Page, error) {
	s, err := h.snapshot(ctx)
	if err != nil {
		return Page{}, err
	}
	slices.SortFunc(all, func(a, b Found) int { return cmp.Compare(string(a.Serial), string(b.Serial)) })
	var p Page
	if len(all) > limit {
		all = all[:limit]
		p.Next = all[limit-1].Serial.String()
	}
	for n := range all {
		f := &all[n]
		targets := append([]string{certificateTarget(f.Serial), f.Owner, f.Agent, f.Delegation}, s.above(f.Authority)...)
		principal, err := h.abovePrincipal(ctx, f.principalCertificate)
		if err != nil {
			return Page{}, err
		}
		targets = append(targets, principal...)
		f.Status = h.statusOf(targets)
		f.Authority = strings.TrimPrefix(f.Authority, "aut:")
	}
	p.Certificates = all
	return p, nil
}

// abovePrincipal gives what an agent's certificate hangs on through its principal's: that one, and what it hangs on
// itself. People have many agents, so it is from memory mostly.
func (h *Hierarchy) abovePrincipal(ctx context.Context, certificate string) ([]string, error) {
	if certificate == "" {
		return nil, nil
	}
	serial, err := id.ParseSerial(strings.TrimPrefix(certificate, "crt:"))
	if err != nil {
		return nil, err
	}
	r, found, err := h.records.Get(ctx, string(serial))
	if err != nil || !found {
		return []string{certificate}, err
	}
	return r.above, nil
}

// A condition is the part of a query that one table answers; nil answers with nothing.
type condition struct {
	from  string
	where []string
	args  []any
	scan  func(store.Row) (Found, error)
}

func (c *condition) and(where string, args ...any) {
	c.where = append(c.where, where)
	c.args = append(c.args, args...)
}

func (c *condition) read(tx *store.Tx, limit int, visit func(Found)) error {
	if c == nil {
		return nil
	}
	query := c.from + " WHERE " + strings.Join(c.where, " AND ") + " ORDER BY serial LIMIT ?"
	return tx.Each(query, append(slices.Clone(c.args), limit), func(r store.Row) error {
		f, err := c.scan(r)
		visit(f)
		return err
	})
}

// conditions splits a query over the tables.
func (h *Hierarchy) conditions(q Query, after id.Serial) (ordinary, agents *condition, err error) {
	ordinary = &condition{from: "SELECT serial, authority, profile, owner, names, key_hash, not_before, not_after, der FROM certificate", scan: scanOrdinary}
	agents = &condition{from: "SELECT serial, authority, agent, delegation, principal, principal_serial, key_hash, not_before, not_after, der FROM agent_certificate", scan: h.scanAgent}
	agent := q.Agent
	if q.Name != "" {
		n, err := name.Parse(q.Name)
		if err != nil {
			return nil, nil, err
		}
		h.whereName(ordinary, n)
		named, isAgent := strings.CutPrefix(n.Text, h.spiffe("").Text)
		if !isAgent || agent != "" && agent != named {
			agents = nil
		}
		agent = named
	}
	if q.Agent != "" {
		ordinary = nil
	}
	if q.KeyHash != nil && agent == "" && q.Principal == "" {
		agents = nil // no index leads there
	}
	ordinary.narrow(q, after)
	agents.narrow(q, after)
	if ordinary != nil && q.Principal != "" {
		ordinary.and("owner = ? AND owner <> ''", q.Principal)
	}
	if agents != nil && q.Principal != "" {
		agents.and("agent IN (SELECT agent FROM standing WHERE principal = ?) AND principal = ?", q.Principal, q.Principal)
	}
	if agents != nil && agent != "" {
		agents.and("agent = ?", agent)
	}
	return ordinary, agents, nil
}

// narrow adds what both tables know.
func (c *condition) narrow(q Query, after id.Serial) {
	if c == nil {
		return
	}
	c.and("serial > ?", []byte(after))
	if q.Serial != nil {
		c.and("serial = ?", []byte(q.Serial))
	}
	if q.Authority != "" {
		c.and("authority = ?", authorityTarget(q.Authority))
	}
	if q.KeyHash != nil {
		c.and("key_hash = ?", q.KeyHash)
	}
}

// whereName finds ordinary certificates by a name: through the index as far as it is filled, beyond by looking.
func (h *Hierarchy) whereName(c *condition, n name.Name) {
	digest := sha256.Sum256([]byte(n.String()))
	pattern := strings.NewReplacer("!", "!!", "%", "!%", "_", "!_").Replace(n.String())
	c.and("(serial IN (SELECT serial FROM certificate_name WHERE digest = ?) OR "+
		"serial > COALESCE((SELECT serial FROM name_mark WHERE id = 1), ?) AND (names = ? OR names LIKE ? ESCAPE '!' OR names LIKE ? ESCAPE '!' OR names LIKE ? ESCAPE '!'))",
		digest[:], []byte{}, n.String(), pattern+" %", "% "+pattern, "% "+pattern+" %")
}

func scanOrdinary(r store.Row) (f Found, err error) {
	var serial []byte
	var names string
	var from, to int64
	err = r.Scan(&serial, &f.Authority, &f.Profile, &f.Owner, &names, &f.KeyHash, &from, &to, &f.DER)
	f.Serial, f.Names, f.NotBefore, f.NotAfter = serial, strings.Fields(names), milli(from), milli(to)
	return f, err
}

func (h *Hierarchy) scanAgent(r store.Row) (f Found, err error) {
	var serial []byte
	var from, to int64
	err = r.Scan(&serial, &f.Authority, &f.Agent, &f.Delegation, &f.Owner, &f.principalCertificate, &f.KeyHash, &from, &to, &f.DER)
	f.Serial, f.Profile, f.NotBefore, f.NotAfter = serial, agentProfile, milli(from), milli(to)
	if h.config.TrustDomain != "" {
		f.Names = []string{h.spiffe(f.Agent).String()}
	}
	return f, err
}

// nameStep is how many certificates one transaction enters into the index of names: well below 20 ms.
const nameStep = 100

// indexNames enters the names of certificates that are older than settling, so that none can appear before the mark.
// It reports whether there is more to do. Two instances may do it at once.
func (h *Hierarchy) indexNames(ctx context.Context) (more bool, err error) {
	settled := binary.BigEndian.AppendUint64(nil, uint64(h.now().Add(-settling).UnixMilli())<<16)[:6]
	var batch []row
	var marked bool
	err = h.db.Read(ctx, func(tx *store.Tx) error {
		var mark []byte
		if marked, err = tx.One([]any{&mark}, "SELECT serial FROM name_mark WHERE id = 1"); err != nil {
			return err
		}
		batch, err = namesAfter(tx, mark, settled)
		return err
	})
	if err != nil || len(batch) == 0 {
		return false, err
	}
	return len(batch) == nameStep, h.db.Write(ctx, func(tx *store.Tx) error {
		for _, r := range batch {
			if err := r.indexNames(tx); err != nil {
				return err
			}
		}
		last := []byte(batch[len(batch)-1].serial)
		if !marked {
			_, err := tx.InsertNew("INSERT INTO name_mark (id, serial) VALUES (1, ?)", last)
			return err
		}
		_, err := tx.Exec("UPDATE name_mark SET serial = ? WHERE id = 1 AND serial < ?", last, last)
		return err
	})
}

func namesAfter(tx *store.Tx, mark, settled []byte) (batch []row, err error) {
	err = tx.Each("SELECT serial, names, not_after FROM certificate WHERE serial > ? AND serial < ? ORDER BY serial LIMIT ?",
		[]any{mark, settled, nameStep}, func(from store.Row) error {
			var r row
			var to int64
			err := from.Scan((*[]byte)(&r.serial), &r.names, &to)
			r.notAfter = milli(to)
			batch = append(batch, r)
			return err
		})
	return batch, err
}

func (r *row) indexNames(tx *store.Tx) error {
	for text := range strings.FieldsSeq(r.names) {
		digest := sha256.Sum256([]byte(text))
		if _, err := tx.InsertNew("INSERT INTO certificate_name (digest, serial, not_after) VALUES (?, ?, ?)",
			digest[:], []byte(r.serial), r.notAfter.UnixMilli()); err != nil {
			return err
		}
	}
	return nil
}
