package load

import (
	"os"
	"sync"
)

// A journal is the least that durability costs: an append-only file whose writers share syncs. A record is on the disk
// when append returns. The zero value is not usable; see openJournal.
type journal struct {
	file *os.File
	wake chan struct{}
	done chan struct{}

	mu      sync.Mutex
	pending *batch
}

// A batch is the records that one sync makes durable.
type batch struct {
	bytes  []byte
	synced chan struct{} // closed when err is known
	err    error
}

func newBatch() *batch { return &batch{synced: make(chan struct{})} }

func openJournal(path string) (*journal, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	j := &journal{file: f, wake: make(chan struct{}, 1), done: make(chan struct{}), pending: newBatch()}
	go j.run()
	return j, nil
}

func (j *journal) append(record []byte) error {
	j.mu.Lock()
	b := j.pending
	b.bytes = append(b.bytes, record...)
	j.mu.Unlock()
	select {
	case j.wake <- struct{}{}:
	default: // it will run anyway
	}
	<-b.synced
	return b.err
}

func (j *journal) run() {
	defer close(j.done)
	for range j.wake {
		j.mu.Lock()
		b := j.pending
		j.pending = newBatch()
		j.mu.Unlock()
		if len(b.bytes) > 0 {
			if _, b.err = j.file.Write(b.bytes); b.err == nil {
				b.err = j.file.Sync()
			}
		}
		close(b.synced)
	}
}

// close waits for what is being synced. Nobody may append any more.
func (j *journal) close() error {
	close(j.wake)
	<-j.done
	return j.file.Close()
}
