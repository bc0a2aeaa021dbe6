package sqlite

import (
	"context"
	"fmt"
	"sync"
	"time"
)

const (
	aheadPages = 1000                  // from so many unfolded pages on, 4 MB, the log is folded in beside the writer
	aheadEvery = 50 * time.Millisecond // between two looks at the log
	aheadTries = 4                     // passes at one look, each for what the writer wrote during the one before
	aheadRest  = aheadPages / 4        // pages that such a pass is for
	aheadNear  = logPages - aheadPages // from a log of so many pages on every look is followed by a pass
)

// ahead folds the log in on a connection of its own while the writer goes on, so that no commit waits for pages to be
// written to the file and synced. Where the writer pauses for as long as a pass takes, the whole log is folded in and
// the next commit starts it anew; under full load that is left to SQLite's automatic checkpoint in the writer, which
// then finds little to do.
type ahead struct {
	e       *Engine
	session *session
	wake    chan struct{} // the writer has committed
	turn    sync.Mutex    // held during a pass, and while the writer folds in: two checkpoints exclude each other
	told    time.Time     // of the last report: a full disk fails every pass
	stopped chan struct{} // closed: the goroutine has ended, and the connection is closed
}

// newAhead takes a second writing connection.
func newAhead(ctx context.Context, e *Engine) (*ahead, error) {
	e.write.SetMaxOpenConns(2)
	conn, err := e.write.Conn(ctx)
	if err != nil {
		return nil, fmt.Errorf("taking the connection that folds the log in: %w", err)
	}
	return &ahead{e: e, session: newSession(conn, e.Probe.Traced), wake: make(chan struct{}, 1), stopped: make(chan struct{})}, nil
}

// notice tells that there was a commit. It does not wait.
func (a *ahead) notice() {
	select {
	case a.wake <- struct{}{}:
	default:
	}
}

// run looks at the log after commits, at most once each aheadEvery, until the writer has ended.
func (a *ahead) run(until <-chan struct{}) {
	defer close(a.stopped)
	defer a.end()
	for {
		select {
		case <-a.wake:
		case <-until:
			return
		}
		a.fold()
		select {
		case <-time.After(aheadEvery):
		case <-until:
			return
		}
	}
}

// fold runs passes until the log is folded in, or the writer is too fast for them.
func (a *ahead) fold() {
	log, rest, err := a.look()
	if err == nil && (rest >= aheadPages || rest > 0 && log >= aheadNear) {
		for range aheadTries {
			if err = a.pass(); err != nil {
				break
			}
			if _, rest, err = a.look(); err != nil || rest == 0 || rest > aheadRest {
				break
			}
		}
	}
	if err != nil {
		a.report(err)
	}
}

func (a *ahead) report(err error) {
	a.e.failed(err)
	if time.Since(a.told) >= foldAgain {
		a.told = time.Now()
		a.e.Log.Warn("folding in the write-ahead log beside the writer", "error", err)
	}
}

// look gives the pages of the log, and those of them that are not in the file yet. It writes and syncs nothing.
func (a *ahead) look() (log, rest int64, err error) {
	_, log, folded, err := a.session.checkpoint("NOOP")
	return log, log - folded, err
}

func (a *ahead) pass() error {
	a.turn.Lock()
	defer a.turn.Unlock()
	_, _, _, err := a.session.checkpoint("PASSIVE")
	return err
}

func (a *ahead) end() {
	if err := a.session.end(); err != nil {
		a.e.Log.Warn("closing the connection that folds the log in", "error", err)
	}
}
