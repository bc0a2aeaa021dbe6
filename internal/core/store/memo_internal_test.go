package store

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func wallClock() int64 { return time.Now().UnixMilli() }

func TestManyMissesAskOnce(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	release := make(chan struct{})
	m := newMemo(10, wallClock, func(context.Context, string) (int, bool, error) {
		asked.Add(1)
		<-release
		return 7, true, nil
	})
	var callers sync.WaitGroup
	for range 50 {
		callers.Go(func() {
			if v, found, err := m.Get(context.Background(), "a"); v != 7 || !found || err != nil {
				t.Errorf("got %d, %v, %v", v, found, err)
			}
		})
	}
	close(release)
	callers.Wait()
	if got := asked.Load(); got != 1 {
		t.Errorf("the store was asked %d times, want once", got)
	}
}

func TestACallerWhoLeavesHarmsNobody(t *testing.T) {
	t.Parallel()
	release, started := make(chan struct{}), make(chan struct{})
	m := newMemo(10, wallClock, func(ctx context.Context, _ string) (int, bool, error) {
		close(started)
		<-release
		return 7, true, ctx.Err()
	})
	impatient, leave := context.WithCancel(t.Context())
	left := make(chan error)
	go func() {
		_, _, err := m.Get(impatient, "a")
		left <- err
	}()
	<-started
	leave()
	if err := <-left; !errors.Is(err, context.Canceled) {
		t.Errorf("the caller who left got %v", err)
	}
	close(release)
	if v, found, err := m.Get(t.Context(), "a"); v != 7 || !found || err != nil {
		t.Errorf("the caller who stayed got %d, %v, %v", v, found, err)
	}
}

func TestAnAnswerIsNotKeptPastAChange(t *testing.T) {
	t.Parallel()
	var state atomic.Int64
	asked, release := make(chan struct{}, 2), make(chan struct{}, 2)
	m := newMemo(10, wallClock, func(context.Context, string) (int64, bool, error) {
		seen := state.Load()
		asked <- struct{}{}
		<-release
		return seen, true, nil
	})
	early := make(chan int64)
	go func() {
		v, _, _ := m.Get(context.Background(), "a")
		early <- v
	}()
	<-asked // the question has seen the old state and is still under way
	state.Store(1)
	m.forget("a")
	late := make(chan int64)
	go func() {
		v, _, _ := m.Get(context.Background(), "a")
		late <- v
	}()
	<-asked
	release <- struct{}{}
	release <- struct{}{}
	if v := <-late; v != 1 {
		t.Errorf("who came after the change got %d", v)
	}
	<-early
	if v, _, _ := m.Get(t.Context(), "a"); v != 1 {
		t.Errorf("after both answers the memory holds %d", v)
	}
}

func TestAnAbsenceIsNotKeptPastAChange(t *testing.T) {
	t.Parallel()
	var there atomic.Bool
	asked, release := make(chan struct{}, 2), make(chan struct{}, 2)
	m := newMemo(10, wallClock, func(context.Context, string) (int, bool, error) {
		seen := there.Load()
		asked <- struct{}{}
		<-release
		return 1, seen, nil
	})
	early := make(chan bool)
	go func() {
		_, found, _ := m.Get(context.Background(), "a")
		early <- found
	}()
	<-asked
	there.Store(true)
	m.forget("a")
	release <- struct{}{}
	<-early
	release <- struct{}{}
	if _, found, err := m.Get(t.Context(), "a"); !found || err != nil {
		t.Errorf("what was made meanwhile is not found (%v)", err)
	}
}

func TestAbsenceIsRememberedBriefly(t *testing.T) {
	t.Parallel()
	now := int64(0)
	asked := 0
	m := newMemo(10, func() int64 { return now }, func(context.Context, string) (int, bool, error) {
		asked++
		return 0, false, nil
	})
	ask := func(want int) {
		t.Helper()
		if _, found, err := m.Get(t.Context(), "a"); found || err != nil || asked != want {
			t.Errorf("found %v, %v, asked %d times, want %d", found, err, asked, want)
		}
	}
	ask(1)
	ask(1)
	m.forget("a")
	ask(2)
	m.forget("")
	ask(3)
	now += missLasts
	ask(4)
}

func TestErrorsAreNotRemembered(t *testing.T) {
	t.Parallel()
	broken := errors.New("database gone")
	m := newMemo(10, wallClock, func(context.Context, string) (int, bool, error) {
		err := broken
		broken = nil
		return 1, true, err
	})
	if _, _, err := m.Get(t.Context(), "a"); err == nil {
		t.Error("the error is lost")
	}
	if v, found, err := m.Get(t.Context(), "a"); v != 1 || !found || err != nil {
		t.Errorf("after recovery: %d, %v, %v", v, found, err)
	}
}

func TestMemoKeepsItsBounds(t *testing.T) {
	t.Parallel()
	m := newMemo(10, wallClock, func(_ context.Context, key string) (int, bool, error) { return len(key), key[len(key)-1]%2 == 0, nil })
	for n := range 3 * missesMax {
		if _, _, err := m.Get(t.Context(), strconv.Itoa(n)); err != nil {
			t.Fatal(err)
		}
	}
	if len(m.cells) > 10 || len(m.misses) > missesMax {
		t.Errorf("%d values and %d misses are kept", len(m.cells), len(m.misses))
	}
}
