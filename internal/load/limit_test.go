package load

import (
	"os"
	"testing"
	"time"
)

func TestLimits(t *testing.T) {
	c := LimitConfig{Dir: t.TempDir(), Sample: time.Millisecond, Duration: 200 * time.Millisecond, Warmup: 50 * time.Millisecond, Clients: 4, Log: t.Logf}
	if testing.Verbose() && os.Getenv("LOAD_FULL") != "" {
		c = LimitConfig{Dir: t.TempDir(), Log: t.Logf}
	}
	r, err := Limits(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"p256_sign", "csr", "issue", "fsync", "journal", "sqlite", "http", "bare_renewal", "bare_bearer", "bare_one_time"} {
		if l := r.Find(key); l == nil || l.Both.PerSecond <= 0 {
			t.Errorf("limit %s is missing: %+v", key, l)
		}
	}
	r.Write(os.Stdout)
}
