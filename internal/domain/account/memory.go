package account

import (
	"context"
	"sync"
	"time"
)

const (
	missesMax   = 4096
	missLasts   = time.Second
	lookupLasts = 5 * time.Second // the deadline of one question to the store
)

// A memory keeps what was looked up in the store. Many callers who miss the same key at once ask the store once; what
// the store does not have is remembered for a second. Past its limit, one entry at random makes room.
//
// A change cannot be overtaken by an older answer: a question is entered before it is asked, forget removes it, and
// whoever comes after forget asks anew. Only callers who came before the change can be given what held before it.
type memory[K comparable, V any] struct {
	limit int
	now   func() time.Time
	ask   func(context.Context, K) (value V, found bool, err error)

	mu     sync.RWMutex
	cells  map[K]*cell[V]
	misses map[K]time.Time // until when the absence is believed
}

// A cell is a question and, once done is closed, its answer.
type cell[V any] struct {
	done  chan struct{}
	value V
	found bool
	err   error
}

func newMemory[K comparable, V any](limit int, now func() time.Time, ask func(context.Context, K) (V, bool, error)) *memory[K, V] {
	return &memory[K, V]{limit: limit, now: now, ask: ask, cells: map[K]*cell[V]{}, misses: map[K]time.Time{}}
}

// get gives the value of a key, from memory or from the store.
func (m *memory[K, V]) get(ctx context.Context, key K) (value V, found bool, err error) {
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

func (m *memory[K, V]) peek(key K) (c *cell[V], missing bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if c, ok := m.cells[key]; ok {
		return c, false
	}
	until, ok := m.misses[key]
	return nil, ok && m.now().Before(until)
}

// enter gives the standing question, or enters a new one and has it asked under a context that outlives the caller:
// others may wait for the same answer.
func (m *memory[K, V]) enter(ctx context.Context, key K) *cell[V] {
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

func (m *memory[K, V]) answer(ctx context.Context, key K, c *cell[V]) {
	ctx, cancel := context.WithTimeout(ctx, lookupLasts)
	defer cancel()
	c.value, c.found, c.err = m.ask(ctx, key)
	if c.err != nil || !c.found {
		m.settleMiss(key, c)
	}
	close(c.done)
}

// settleMiss takes a question without a value out again, and remembers the absence unless something changed meanwhile.
func (m *memory[K, V]) settleMiss(key K, c *cell[V]) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.cells[key] != c {
		return
	}
	delete(m.cells, key)
	if c.err == nil {
		makeRoom(m.misses, missesMax)
		m.misses[key] = m.now().Add(missLasts)
	}
}

// forget drops one key, or everything.
func (m *memory[K, V]) forget(key K, everything bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if everything {
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
