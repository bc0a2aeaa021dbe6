package store

import (
	"sync"
)

// A Change says that something rare has changed: it names a topic ("revocation", "account", "token", "key", "agent",
// "delegation", "authority", "principal") and what changed within it. An empty Key, given to subscribers only, means
// that changes may have been missed: forget everything kept for the topic.
type Change struct{ Topic, Key string }

// Publish puts c into the change feed of this transaction. Subscribers of this process hear of it before Write returns,
// other instances within a second.
func (tx *Tx) Publish(c Change) error {
	if _, err := tx.Exec("INSERT INTO feed (at, topic, item, origin) VALUES (?, ?, ?, ?)", tx.now, c.Topic, c.Key, tx.origin); err != nil {
		return err
	}
	tx.changes = append(tx.changes, c)
	return nil
}

// Subscribe has fn called with each Change of topic after its commit: with the changes of this process before their
// Write returns, in commit order on SQLite, and with those of other instances within a second; one change may be told
// twice. fn is quick and calls no method of the Store. When cancel has returned, fn is not called any more.
func (s *Store) Subscribe(topic string, fn func(Change)) (cancel func()) {
	return s.feed.subscribe(topic, fn)
}

// feed tells changes to subscribers, one at a time. The zero value is ready.
type feed struct {
	telling sync.Mutex // held while subscribers run
	mu      sync.Mutex
	topics  map[string][]*subscriber
}

type subscriber struct {
	fn   func(Change)
	gone bool
}

func (f *feed) subscribe(topic string, fn func(Change)) (cancel func()) {
	sub := &subscriber{fn: fn}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.topics == nil {
		f.topics = map[string][]*subscriber{}
	}
	f.topics[topic] = append(f.topics[topic], sub)
	return func() {
		f.telling.Lock()
		defer f.telling.Unlock()
		f.mu.Lock()
		defer f.mu.Unlock()
		sub.gone = true
		kept := make([]*subscriber, 0, len(f.topics[topic]))
		for _, other := range f.topics[topic] {
			if !other.gone {
				kept = append(kept, other)
			}
		}
		f.topics[topic] = kept
	}
}

func (f *feed) tell(changes []Change) {
	if len(changes) == 0 {
		return
	}
	f.telling.Lock()
	defer f.telling.Unlock()
	for _, c := range changes {
		for _, sub := range f.of(c.Topic) {
			sub.fn(c)
		}
	}
}

// forget tells every subscriber that changes may have been missed.
func (f *feed) forget() {
	f.mu.Lock()
	var all []Change
	for topic := range f.topics {
		all = append(all, Change{Topic: topic})
	}
	f.mu.Unlock()
	f.tell(all)
}

// of gives the subscribers of a topic; the slice is never changed, only replaced or appended to.
func (f *feed) of(topic string) []*subscriber {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.topics[topic]
}
