package front

import (
	"cmp"
	"crypto/tls"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestRushOfHandshakes has two thousand clients connect at once to a server that signs slowly. Each is served or closed
// while it still waits, and what was computed was computed for somebody.
func TestRushOfHandshakes(t *testing.T) {
	const clients, patience = 2000, 8 * time.Second
	var signed, most, now atomic.Int64
	h := open(t, func(c *Config) {
		c.Handshakes.Wait = time.Second
		given := c.Certificates
		c.Certificates = func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
			signed.Add(1)
			for n := now.Add(1); n > most.Load(); {
				most.Store(n)
			}
			<-time.After(4 * time.Millisecond) // a slow key
			now.Add(-1)
			return given(hello)
		}
	})
	var served, closed, left atomic.Int64
	var wait sync.WaitGroup
	for range clients {
		wait.Go(func() {
			c, err := net.Dial("tcp", h.Address(HTTPS).String())
			if err != nil {
				t.Error(err)
				return
			}
			defer c.Close()
			begin := time.Now()
			err = cmp.Or(c.SetDeadline(begin.Add(patience)), tls.Client(c, &tls.Config{RootCAs: h.authority.pool, ServerName: "localhost"}).Handshake())
			switch {
			case err == nil:
				served.Add(1)
			case time.Since(begin) < patience:
				closed.Add(1)
			default:
				left.Add(1)
			}
		})
	}
	wait.Wait()
	t.Logf("%d served, %d closed, %d left alone; %d signatures, %d at a time", served.Load(), closed.Load(), left.Load(), signed.Load(), most.Load())
	if left.Load() > 0 || served.Load() == 0 || closed.Load() == 0 { // how many of each is the machine's to say
		t.Errorf("of %d, %d were served, %d closed and %d left alone", clients, served.Load(), closed.Load(), left.Load())
	}
	if signed.Load() != served.Load() {
		t.Errorf("%d signatures for %d who were served", signed.Load(), served.Load())
	}
	if turns := int64(cap(h.hello.turn)); most.Load() > turns {
		t.Errorf("%d computed at a time, with %d turns", most.Load(), turns)
	}
	if inside, bytes, _ := h.hello.gate.Load(); inside != 0 || bytes != 0 || len(h.hello.turn) != 0 {
		t.Errorf("%d handshakes with %d bytes and %d turns are still counted", inside, bytes, len(h.hello.turn))
	}
}
