package store

import (
	"context"
	"sync"
	"time"
)

const (
	missesMax   = 4096
	missLasts   = 1000            // milliseconds
	lookupLasts = 5 * time.Second // the deadline of one question to the store
)

// A Memo remembers values of the store by key, on demand and within a bound, and follows the change feed: what was
// changed here is seen changed before the change's answer leaves, elsewhere within a second. Many callers who miss the
// same key at once ask the store once. What the store does not have is remembered for a second, in room of its own, so
// that nobody drives good values out by asking for what is not there. Past its bound, one entry at random makes room.
//
// A change cannot be overtaken by an older answer: a question is entered before it is asked, a change removes it, and
// whoever comes after the change asks anew. Only callers who came before it can be given what held before it.
//
// A Memo is safe for concurrent use. Values are shared; callers must not change them.
type Memo[V any] struct {
	limit    int
	now      func() int64 // milliseconds
	ask      func(ctx context.Context, key string) (value V, found bool, err error)
	unfollow func()

	mu     sync.RWMutex
	cells  map[string]*cell[V]
	misses map[string]int64 // until when the absence is believed
}

// A cell is a question and, once done is closed, its answer.
type cell[V any] struct {
	done  chan struct{}
	value V
	found bool
	err   error
}

// NewMemo makes a memo of at most limit values that follows a topic, whose changes name keys. ask asks the store and
// says whether there is such a value; its context outlives the caller's.
func NewMemo[V any](s *Store, topic string, limit int, ask func(ctx context.Context, key string) (V, bool, error)) *Memo[V] {
	m := newMemo(limit, s.now, ask)
	m.unfollow = s.Subscribe(topic, func(c Change) { m.forget(c.Key) })
	return m
}

func newMemo[V any](limit int, now func() int64, ask func(context.Context, string) (V, bool, error)) *Memo[V] {
	return &Memo[V]{limit: limit, now: now, ask: ask, cells: map[string]*cell[V]{}, misses: map[string]int64{}}
}

// Close ends following the topic. The memo must not be used afterwards.
func (m *Memo[V]) Close() { m.unfollow() }

// Get gives the value of a key, from memory or from the store.
func (m *Memo[V]) Get(ctx context.Context, key string) (value V, found bool, err error) {
	c, missing := m.peek(key)
	if missing {
		return value, false, nil
	}
	if c == nil {
		c = m.enter(ctx, key)
	}
	select {
	case <-c.done:
		return c.value, c.found, c.err
	case <-ctx.Done():
		return value, false, ctx.Err()
	}
}

func (m *Memo[V]) peek(key string) (c *cell[V], missing bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if c, ok := m.cells[key]; ok {
		return c, false
	}
	until, ok := m.misses[key]
	return nil, ok && m.now() < until
}

// enter gives the standing question, or enters a new one and has it asked under a context that outlives the caller:
// others may wait for the same answer.
func (m *Memo[V]) enter(ctx context.Context, key string) *cell[V] {
	m.mu.Lock()
	defer m.mu.Unlock()
	if c, ok := m.cells[key]; ok {
		return c
	}
	makeRoom(m.cells, m.limit)
	c := &cell[V]{done: make(chan struct{})}
	m.cells[key] = c
	go m.answer(context.WithoutCancel(ctx), key, c)
	return c
}

func (m *Memo[V]) answer(ctx context.Context, key string, c *cell[V]) {
	ctx, cancel := context.WithTimeout(ctx, lookupLasts)
	defer cancel()
	c.value, c.found, c.err = m.ask(ctx, key)
	if c.err != nil || !c.found {
		m.settleMiss(key, c)
	}
	close(c.done)
}

// settleMiss takes a question without a value out again, and remembers the absence unless something changed meanwhile.
func (m *Memo[V]) settleMiss(key string, c *cell[V]) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.cells[key] != c {
		return
	}
	delete(m.cells, key)
	if c.err == nil {
		makeRoom(m.misses, missesMax)
		m.misses[key] = m.now() + missLasts
	}
}

// forget drops one key, or with an empty one everything.
func (m *Memo[V]) forget(key string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if key == "" {
		clear(m.cells)
		clear(m.misses)
		return
	}
	delete(m.cells, key)
	delete(m.misses, key)
}

// makeRoom drops one entry of a full map; the order of a map's entries is random enough.
func makeRoom[K comparable, V any](entries map[K]V, limit int) {
	if len(entries) < limit {
		return
	}
	for key := range entries {
		delete(entries, key)
		return
	}
}
