package agent

import (
	"context"

	"chancery/internal/base/who"
	"chancery/internal/core/store"
)

// A Page is a part of a list, in the order of identifiers. Next is where the following page starts, empty at the end;
// a row that stays is given exactly once, whatever comes and goes meanwhile.
type Page[T any] struct {
	Items []T
	Next  string
	last  string // identifier of the last item
}

// Agents lists the agents of owner, or of everybody if owner is empty, after the identifier after.
func (r *Registry) Agents(ctx context.Context, owner, after string, limit int) (Page[Agent], error) {
	if err := mayActFor(ctx, owner, who.AgentRead, who.AgentOwn); err != nil {
		return Page[Agent]{}, err
	}
	where, args := owned("owner", owner, after, limit)
	var page Page[Agent]
	err := r.db.Read(ctx, func(tx *store.Tx) error {
		page = Page[Agent]{}
		return tx.Each("SELECT "+agentColumns+" FROM agent"+where, args, func(row store.Row) error {
			a, err := scanAgent(row.Scan)
			if err != nil {
				return err
			}
			page.add(a, a.ID, limit)
			return nil
		})
	})
	return page, err
}

// Delegations lists the delegations of principal, or of everybody if it is empty, after the identifier after.
func (r *Registry) Delegations(ctx context.Context, principal, after string, limit int) (Page[Delegation], error) {
	if err := mayActFor(ctx, principal, who.AgentRead, who.DelegationOwn); err != nil {
		return Page[Delegation]{}, err
	}
	return r.delegationsOf(ctx, principal, after, limit)
}

func (r *Registry) delegationsOf(ctx context.Context, principal, after string, limit int) (page Page[Delegation], err error) {
	where, args := owned("principal", principal, after, limit)
	err = r.db.Read(ctx, func(tx *store.Tx) error {
		page = Page[Delegation]{}
		return tx.Each("SELECT "+delegationColumns+" FROM delegation"+where, args, func(row store.Row) error {
			d, err := scanDelegation(row.Scan)
			if err != nil {
				return err
			}
			page.add(d, d.ID, limit)
			return nil
		})
	})
	return page, err
}

// owned selects by owner, if there is one, the rows after an identifier: one more than limit, to know whether more follow.
func owned(column, owner, after string, limit int) (where string, args []any) {
	if owner == "" {
		return " WHERE id > ? ORDER BY id LIMIT ?", []any{after, limit + 1}
	}
	return " WHERE " + column + " = ? AND id > ? ORDER BY id LIMIT ?", []any{owner, after, limit + 1}
}

func (p *Page[T]) add(item T, id string, limit int) {
	if len(p.Items) < limit {
		p.Items = append(p.Items, item)
		p.last = id
		return
	}
	p.Next = p.last
}
