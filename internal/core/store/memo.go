package store

import (
	"context"
	"sync"
)

// missAge is how many milliseconds a Memo remembers that the store has no such value. Another instance may have made it since, and
// the feed brings the news within a second.
const missAge = 1000 // milliseconds

// A Memo remembers values of the store by key, on demand and within a bound, and forgets them when the change feed
// names them: what was changed here is seen changed before the change's answer leaves, elsewhere within a second. It
// is safe for concurrent use. Values are shared; callers must not change them.
type Memo[V any] struct {
	load func(ctx context.Context, key string) (V, bool, error)
	now  func() int64 // milliseconds
	half int

	mu         sync.Mutex
	young, old map[string]memory[V] // what was not asked for during a whole generation goes
	forgotten  uint64               // counts forgettings, so that a load that ran meanwhile is not kept
}

type memory[V any] struct {
	value V
	found bool
	until int64 // of a miss, in milliseconds
}

// NewMemo makes a memo of at most size values that follows the topic. load asks the store and says whether there is
// such a value.
func NewMemo[V any](s *Store, topic string, size int, load func(ctx context.Context, key string) (V, bool, error)) *Memo[V] {
	m := &Memo[V]{load: load, now: s.now, half: max(size/2, 1), young: map[string]memory[V]{}}
	s.Subscribe(topic, func(c Change) { m.forget(c.Key) })
	return m
}

// Get gives the value of key, from memory or from the store.
func (m *Memo[V]) Get(ctx context.Context, key string) (V, bool, error) {
	known, ok, before := m.recall(key)
	if ok {
		return known.value, known.found, nil
	}
	value, found, err := m.load(ctx, key)
	if err != nil {
		return value, false, err
	}
	m.keep(key, memory[V]{value, found, m.now() + missAge}, before)
	return value, found, nil
}

func (m *Memo[V]) recall(key string) (memory[V], bool, uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	known, ok := m.young[key]
	if !ok {
		if known, ok = m.old[key]; ok {
			m.insert(key, known)
		}
	}
	if ok && !known.found && m.now() > known.until {
		ok = false
	}
	return known, ok, m.forgotten
}

func (m *Memo[V]) keep(key string, v memory[V], before uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.forgotten == before {
		m.insert(key, v)
	}
}

func (m *Memo[V]) insert(key string, v memory[V]) {
	if len(m.young) >= m.half {
		m.old, m.young = m.young, make(map[string]memory[V], m.half)
	}
	m.young[key] = v
}

func (m *Memo[V]) forget(key string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.forgotten++
	if key == "" {
		m.young, m.old = map[string]memory[V]{}, nil
		return
	}
	delete(m.young, key)
	delete(m.old, key)
}
