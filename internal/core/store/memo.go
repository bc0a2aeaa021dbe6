package store

import (
	"context"
	"sync"
)

// missAge is how many milliseconds a Memo remembers that the store has no such value. Another instance may have made it
// since, and the feed brings the news within a second.
const missAge = 1000

// A Memo remembers values of the store by key, on demand and within a bound, and forgets them when the change feed
// names them: what was changed here is seen changed before the change's answer leaves, elsewhere within a second.
// Misses have a bound of their own, so that nobody drives good values out by asking for what is not there. It is safe
// for concurrent use. Values are shared; callers must not change them.
type Memo[V any] struct {
	load func(ctx context.Context, key string) (V, bool, error)
	now  func() int64 // milliseconds

	mu        sync.Mutex
	hits      generations[V]
	misses    generations[int64] // until when, in milliseconds
	forgotten uint64             // counts forgettings, so that a load that ran meanwhile is not kept
}

// NewMemo makes a memo of at most size values that follows the topic. load asks the store and says whether there is
// such a value.
func NewMemo[V any](s *Store, topic string, size int, load func(ctx context.Context, key string) (V, bool, error)) *Memo[V] {
	m := &Memo[V]{load: load, now: s.now, hits: generations[V]{half: max(size/2, 1)}, misses: generations[int64]{half: max(size/16, 1)}}
	s.Subscribe(topic, func(c Change) { m.forget(c.Key) })
	return m
}

// Get gives the value of key, from memory or from the store.
func (m *Memo[V]) Get(ctx context.Context, key string) (value V, found bool, err error) {
	value, found, known, before := m.recall(key)
	if known {
		return value, found, nil
	}
	if value, found, err = m.load(ctx, key); err != nil {
		return value, false, err
	}
	m.keep(key, value, found, before)
	return value, found, nil
}

func (m *Memo[V]) recall(key string) (value V, found, known bool, before uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if value, found = m.hits.get(key); found {
		return value, true, true, m.forgotten
	}
	until, missed := m.misses.get(key)
	return value, false, missed && m.now() <= until, m.forgotten
}

func (m *Memo[V]) keep(key string, value V, found bool, before uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.forgotten != before:
	case found:
		m.hits.put(key, value)
	default:
		m.misses.put(key, m.now()+missAge)
	}
}

func (m *Memo[V]) forget(key string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.forgotten++
	m.hits.forget(key)
	m.misses.forget(key)
}

// generations is a map with a bound: a young half and an old one, and what was not asked for during a whole generation
// goes with the old.
type generations[V any] struct {
	half       int
	young, old map[string]V
}

func (g *generations[V]) get(key string) (V, bool) {
	v, ok := g.young[key]
	if !ok {
		if v, ok = g.old[key]; ok {
			g.put(key, v)
		}
	}
	return v, ok
}

func (g *generations[V]) put(key string, v V) {
	if g.young == nil || len(g.young) >= g.half {
		g.old, g.young = g.young, make(map[string]V)
	}
	g.young[key] = v
}

// forget drops one key, or with an empty one everything.
func (g *generations[V]) forget(key string) {
	if key == "" {
		g.young, g.old = nil, nil
		return
	}
	delete(g.young, key)
	delete(g.old, key)
}
