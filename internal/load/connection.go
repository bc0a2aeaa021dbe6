package load

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"
)

// A connection is one client: HTTP/1.1 over one TLS connection that is kept alive, and dialled again where the server
// closed it. It does as little as it can, since client and server share the machine. One goroutine uses it.
type connection struct {
	address string // host:port
	tls     *tls.Config

	conn   *tls.Conn
	forget func() bool // of the context that cuts the connection
	reader *bufio.Reader
	head   []byte
	body   bytes.Buffer
}

const (
	requestTimeout = 30 * time.Second
	answerBytesMax = 4 << 20
)

// A question is one request.
type question struct {
	method, path, token, contentType string
	body                             []byte
}

// An answer is what came back. Its body is overwritten by the next question.
type answer struct {
	status     int
	retryAfter time.Duration
	body       []byte
	took       time.Duration // from the first octet sent to the last one read, without dialling
}

// ask sends a question and reads the answer. An error means that nobody knows what became of it. The end of ctx cuts
// the connection.
func (c *connection) ask(ctx context.Context, q question) (answer, error) {
	if err := c.dial(ctx); err != nil {
		return answer{}, err
	}
	began := time.Now()
	err := c.conn.SetDeadline(began.Add(requestTimeout))
	if err = errors.Join(err, ctx.Err()); err != nil { // the deadline may have replaced the cut
		c.close()
		return answer{}, err
	}
	a, err := c.exchange(q)
	if err != nil {
		c.close()
		return answer{}, err
	}
	a.took = time.Since(began)
	return a, nil
}

func (c *connection) dial(ctx context.Context) error {
	if c.conn != nil {
		return nil
	}
	dialer := tls.Dialer{NetDialer: &net.Dialer{Timeout: 5 * time.Second}, Config: c.tls}
	raw, err := dialer.DialContext(ctx, "tcp", c.address)
	if err != nil {
		return err
	}
	conn := raw.(*tls.Conn)
	c.conn, c.reader = conn, bufio.NewReaderSize(conn, 8<<10)
	c.forget = context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	return nil
}

func (c *connection) exchange(q question) (answer, error) {
	c.head = fmt.Appendf(c.head[:0], "%s %s HTTP/1.1\r\nHost: %s\r\nContent-Length: %d\r\n", q.method, q.path, c.address, len(q.body))
	if q.contentType != "" {
		c.head = fmt.Appendf(c.head, "Content-Type: %s\r\n", q.contentType)
	}
	if q.token != "" {
		c.head = fmt.Appendf(c.head, "Authorization: Bearer %s\r\n", q.token)
	}
	c.head = append(append(c.head, "\r\n"...), q.body...) // head and body leave in one TLS record
	if _, err := c.conn.Write(c.head); err != nil {
		return answer{}, err
	}
	res, err := http.ReadResponse(c.reader, nil)
	if err != nil {
		return answer{}, err
	}
	defer res.Body.Close()
	c.body.Reset()
	if _, err := c.body.ReadFrom(io.LimitReader(res.Body, answerBytesMax)); err != nil {
		return answer{}, err
	}
	if res.Close {
		c.close()
	}
	a := answer{status: res.StatusCode, body: c.body.Bytes()}
	if seconds, err := strconv.Atoi(res.Header.Get("Retry-After")); err == nil && seconds >= 0 {
		a.retryAfter = time.Duration(seconds) * time.Second
	}
	return a, nil
}

func (c *connection) close() {
	if c.conn == nil {
		return
	}
	c.forget()
	_ = c.conn.NetConn().Close() // without the farewell: it would wait for a peer that may be gone
	c.conn = nil
}
