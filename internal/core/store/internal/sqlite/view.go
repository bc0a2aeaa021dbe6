package sqlite

import (
	"context"
	"runtime"
	"strings"
	"sync"
	"time"

	"chancery/internal/core/store/internal/engine"
)

// views knows the reads that are open, so that those which hold the log open can be ended. The zero value is ready.
type views struct {
	entry sync.RWMutex // held by the writer while no read may begin
	mu    sync.Mutex
	open  map[*view]struct{}
}

// A view is an open read. A nil one is of no age.
type view struct {
	since  time.Time
	end    context.CancelCauseFunc
	caller [6]uintptr // program counters, from the caller of Engine.Read on
}

func (v *views) begin(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	one := &view{since: time.Now(), end: cancel}
	runtime.Callers(3, one.caller[:])
	v.entry.RLock()
	defer v.entry.RUnlock()
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.open == nil {
		v.open = map[*view]struct{}{}
	}
	v.open[one] = struct{}{}
	return ctx, func() {
		v.mu.Lock()
		delete(v.open, one)
		v.mu.Unlock()
		cancel(nil)
	}
}

// end ends the reads that are open for longer than grace, and gives their number and the oldest of them.
func (v *views) end(grace time.Duration) (ended int, oldest *view) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for one := range v.open {
		if time.Since(one.since) < grace {
			continue
		}
		one.end(engine.Stale)
		ended++
		if oldest == nil || one.since.Before(oldest.since) {
			oldest = one
		}
	}
	return ended, oldest
}

// oldest gives the oldest open read, nil for none.
func (v *views) oldest() (oldest *view) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for one := range v.open {
		if oldest == nil || one.since.Before(oldest.since) {
			oldest = one
		}
	}
	return oldest
}

func (v *view) age() time.Duration {
	if v == nil {
		return 0
	}
	return time.Since(v.since)
}

// room is how the names of this room's functions begin; what follows is a dot or a slash.
const room = "chancery/internal/core/store"

// operation names the function that reads: the nearest one outside of this room, such as "ca.(*Hierarchy).Search".
func (v *view) operation() (name string) {
	frames := runtime.CallersFrames(v.caller[:])
	for more := true; more; {
		var f runtime.Frame
		f, more = frames.Next()
		if f.Function == "" {
			break
		}
		name = f.Function[strings.LastIndexByte(f.Function, '/')+1:]
		rest, own := strings.CutPrefix(f.Function, room)
		if !own || rest == "" || rest[0] != '.' && rest[0] != '/' {
			break
		}
	}
	return name
}
