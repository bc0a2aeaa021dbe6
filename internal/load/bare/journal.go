package bare

import (
	"os"
	"sync"
)

// A Journal is the least that durability costs: an append-only file whose writers share syncs. The zero value is not
// usable; see OpenJournal.
type Journal struct {
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

// OpenJournal opens or makes the file and starts its writer; Close ends it.
func OpenJournal(path string) (*Journal, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	j := &Journal{file: f, wake: make(chan struct{}, 1), done: make(chan struct{}), pending: newBatch()}
	go j.run()
	return j, nil
}

// Append returns when the record is on the disk. It is safe for concurrent use.
func (j *Journal) Append(record []byte) error {
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

func (j *Journal) run() {
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

// Close waits for what is being synced. Nobody may append any more.
func (j *Journal) Close() error {
	close(j.wake)
	<-j.done
	return j.file.Close()
}
