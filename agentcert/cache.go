package agentcert

import "sync"

// A cache is a map with a bound. Only what was verified goes in, so an outsider cannot push entries out; which one
// leaves when it is full does not matter, because it is verified again at its next use.
type cache[V any] struct {
	mu    sync.RWMutex
	most  int
	byKey map[string]V
}

func newCache[V any](most int) *cache[V] { return &cache[V]{most: most, byKey: make(map[string]V)} }

func (c *cache[V]) get(key []byte) (V, bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	v, found := c.byKey[string(key)]
	return v, found
}

func (c *cache[V]) put(key []byte, v V) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, found := c.byKey[string(key)]; !found && len(c.byKey) >= c.most {
		for other := range c.byKey {
			delete(c.byKey, other)
			break
		}
	}
	c.byKey[string(key)] = v
}
