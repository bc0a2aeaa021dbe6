package cli

import (
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/term"

	"chancery/internal/base/conf"
)

// A meter counts the bytes of long work and shows how far it is, on a terminal alone.
type meter struct {
	what  string
	total int64     // 0: not known
	to    io.Writer // nil: not shown
	bytes int64
	shown time.Time
}

const meterEvery = 200 * time.Millisecond

func (t *terminal) meter(what string, total int64) *meter {
	m := &meter{what: what, total: total}
	if out, isFile := t.err.(*os.File); isFile && term.IsTerminal(int(out.Fd())) && !t.json {
		m.to = out
	}
	return m
}

// Write counts the bytes of part.
func (m *meter) Write(part []byte) (int, error) {
	m.bytes += int64(len(part))
	if m.to != nil && time.Since(m.shown) >= meterEvery {
		m.shown = time.Now()
		m.draw()
	}
	return len(part), nil
}

func (m *meter) draw() {
	if m.total == 0 {
		fmt.Fprintf(m.to, "\r%s: %v ", m.what, conf.Size(m.bytes>>20<<20))
		return
	}
	const bar = "##############################"
	done := min(int(m.bytes*int64(len(bar))/m.total), len(bar))
	fmt.Fprintf(m.to, "\r%s: [%-*s] %d%% ", m.what, len(bar), bar[:done], m.bytes*100/m.total)
}

// end takes the line away.
func (m *meter) end() {
	if m.to != nil && !m.shown.IsZero() {
		fmt.Fprint(m.to, "\r\033[K")
	}
}
