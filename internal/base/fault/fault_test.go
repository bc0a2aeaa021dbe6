package fault

import (
	"errors"
	"fmt"
	"io"
	"testing"
	"time"
)

func TestIsComparesKindAndCode(t *testing.T) {
	stale := New(Denied, "da_stale", "signed 40 s ago")
	other := New(Denied, "da_replayed", "used before")
	occurrence := fmt.Errorf("issue: %w", New(Denied, "da_stale", "signed 90 s ago").Because(io.EOF))
	if !errors.Is(occurrence, stale) {
		t.Error("an occurrence with another text is not recognised by its sentinel")
	}
	if errors.Is(occurrence, other) {
		t.Error("another code was taken for the same refusal")
	}
	if !errors.Is(occurrence, io.EOF) {
		t.Error("the cause is lost")
	}
}

func TestUnmarkedErrorsAreInternal(t *testing.T) {
	if got := KindOf(errors.New("disk on fire")); got != Internal {
		t.Errorf("KindOf(plain error) = %v, want %v", got, Internal)
	}
	if got := CodeOf(errors.New("disk on fire")); got != "" {
		t.Errorf("CodeOf(plain error) = %q, want none", got)
	}
}

func TestCopiesLeaveTheSentinelAlone(t *testing.T) {
	full := New(Unavailable, "overloaded", "the queue is full")
	full.After(time.Second).WithHint("ask again").Because(io.EOF)
	if full.RetryAfter != 0 || full.Hint != "" || full.Cause != nil {
		t.Errorf("a shared sentinel was changed: %+v", full)
	}
}
