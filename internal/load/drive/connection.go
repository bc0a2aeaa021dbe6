package drive

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

	"github.com/go-json-experiment/json"

	"chancery/api"
)

// A Connection is one client: HTTP/1.1 over one TLS connection that is kept alive, and dialled again where the server
// closed it. It does as little as it can, since client and server share the machine. One goroutine uses it.
type Connection struct {
	Address string      // host:port
	TLS     *tls.Config // nil: plain HTTP

	conn    net.Conn
	resumed bool
	forget  func() bool // of the context that cuts the connection
	ration  ration
	reader  *bufio.Reader
	head    []byte
	body    bytes.Buffer
}

const (
	requestTimeout = 30 * time.Second
	headBytesMax   = 64 << 10
	answerBytesMax = 16 << 20
	interimMax     = 16 // answers of status 1xx before the one that counts
	retryAfterMax  = 24 * time.Hour
)

var (
	errTooLong = errors.New("answer too long")
	errInterim = errors.New("no final answer")
)

// A ration lets so many bytes through and no more: net/http reads a header of any length.
type ration struct {
	from io.Reader
	left int
}

// Read reads what is left of the ration at most.
func (r *ration) Read(p []byte) (int, error) {
	if r.left <= 0 {
		return 0, errTooLong
	}
	n, err := r.from.Read(p[:min(len(p), r.left)])
	r.left -= n
	return n, err
}

// A Question is one request.
type Question struct {
	Method, Path       string
	Token, ContentType string // left out where empty
	Body               []byte
}

// An Answer is what came back. Its body is overwritten by the next question.
type Answer struct {
	Status     int
	RetryAfter time.Duration
	Body       []byte
	Handshake  time.Duration // dialling, TCP and TLS; 0 where the connection was open already
	Resumed    bool          // the handshake resumed a session
}

// Ask sends a question and reads the answer. An error means that nobody knows what became of it. The end of ctx cuts
// the connection.
func (c *Connection) Ask(ctx context.Context, q Question) (Answer, error) {
	shaken, err := c.dial(ctx)
	if err != nil {
		return Answer{}, err
	}
	err = c.conn.SetDeadline(time.Now().Add(requestTimeout))
	if err = errors.Join(err, ctx.Err()); err != nil { // the deadline may have replaced the cut
		c.Close()
		return Answer{}, err
	}
	a, err := c.exchange(q)
	if err != nil {
		c.Close()
		return Answer{}, err
	}
	a.Handshake = shaken
	a.Resumed = shaken > 0 && c.resumed
	return a, nil
}

// dial connects, unless it is connected, and gives the time that took.
func (c *Connection) dial(ctx context.Context) (time.Duration, error) {
	if c.conn != nil {
		return 0, nil
	}
	began := time.Now()
	conn, err := c.connect(ctx)
	if err != nil {
		return 0, err
	}
	c.conn, c.ration = conn, ration{from: conn}
	c.reader = bufio.NewReaderSize(&c.ration, 8<<10)
	c.forget = context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	return time.Since(began), nil
}

// dialTimeout bounds a handshake; a busy server is given time.
const dialTimeout = 10 * time.Second

func (c *Connection) connect(ctx context.Context) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	plain := &net.Dialer{}
	if c.TLS == nil {
		return plain.DialContext(ctx, "tcp", c.Address)
	}
	conn, err := (&tls.Dialer{NetDialer: plain, Config: c.TLS}).DialContext(ctx, "tcp", c.Address)
	if err != nil {
		return nil, err
	}
	c.resumed = conn.(*tls.Conn).ConnectionState().DidResume
	return conn, nil
}

func (c *Connection) exchange(q Question) (Answer, error) {
	c.head = fmt.Appendf(c.head[:0], "%s %s HTTP/1.1\r\nHost: %s\r\nContent-Length: %d\r\n", q.Method, q.Path, c.Address, len(q.Body))
	if q.ContentType != "" {
		c.head = fmt.Appendf(c.head, "Content-Type: %s\r\n", q.ContentType)
	}
	if q.Token != "" {
		c.head = fmt.Appendf(c.head, "Authorization: Bearer %s\r\n", q.Token)
	}
	c.head = append(append(c.head, "\r\n"...), q.Body...) // head and body leave in one TLS record
	if _, err := c.conn.Write(c.head); err != nil {
		return Answer{}, err
	}
	res, err := c.final()
	if err != nil {
		return Answer{}, err
	}
	defer res.Body.Close()
	c.body.Reset()
	c.ration.left = 2 * answerBytesMax // a body in chunks is longer on the wire
	n, err := c.body.ReadFrom(io.LimitReader(res.Body, answerBytesMax+1))
	if err != nil {
		return Answer{}, err
	}
	if n > answerBytesMax {
		return Answer{}, errTooLong
	}
	if res.Close {
		c.Close()
	}
	return Answer{Status: res.StatusCode, Body: c.body.Bytes(), RetryAfter: retryAfter(res.Header.Get("Retry-After"))}, nil
}

// final reads up to the body of the answer that counts, past interim ones (RFC 9110 section 15.2).
func (c *Connection) final() (*http.Response, error) {
	for range interimMax + 1 {
		c.ration.left = headBytesMax
		res, err := http.ReadResponse(c.reader, nil)
		switch {
		case err != nil && c.ration.left <= 0: // net/http may say something else of a line that was cut
			return nil, errTooLong
		case err != nil || res.StatusCode/100 != 1:
			return res, err
		}
		if res.StatusCode == http.StatusSwitchingProtocols { // to nothing that was asked for
			break
		}
	}
	return nil, errInterim
}

// retryAfter reads how long a server asks to wait; a longer time than the longest run counts as that, and what is no
// number of seconds as none.
func retryAfter(text string) time.Duration {
	seconds, err := strconv.ParseInt(text, 10, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return 0
	}
	return time.Duration(min(max(seconds, 0), int64(retryAfterMax/time.Second))) * time.Second
}

// Close cuts the connection; the next question dials anew.
func (c *Connection) Close() {
	if c.conn == nil {
		return
	}
	c.forget()
	raw := c.conn
	if secured, ok := raw.(*tls.Conn); ok {
		raw = secured.NetConn()
	}
	_ = raw.Close() // without the farewell: it would wait for a peer that may be gone
	c.conn = nil
}

// Busy says that the server refused for want of capacity and asks to come again.
func (a Answer) Busy() bool {
	return a.Status == http.StatusServiceUnavailable || a.Status == http.StatusTooManyRequests
}

// Refusal names an error that was answered: its status and, in a problem of RFC 9457, our code.
func (a Answer) Refusal() string {
	var p api.Problem
	if json.Unmarshal(a.Body, &p) != nil || p.Code == "" {
		return strconv.Itoa(a.Status)
	}
	return fmt.Sprintf("%d %s", a.Status, p.Code)
}

// persistFor bounds how long a server may ask for patience.
const persistFor = 2 * time.Minute

// Persist asks until there is an answer that is not a request for patience, for two minutes or so; three connections may
// break meanwhile.
func (c *Connection) Persist(ctx context.Context, q Question) (a Answer, err error) {
	end := time.Now().Add(persistFor)
	for broken := 0; broken < 3 && ctx.Err() == nil; {
		if a, err = c.Ask(ctx, q); err != nil {
			broken++
			Pause(ctx, 20*time.Millisecond)
			continue
		}
		left := time.Until(end)
		if !a.Busy() || left <= 0 {
			return a, nil
		}
		Pause(ctx, min(left, max(a.RetryAfter, 50*time.Millisecond)))
	}
	if err == nil {
		err = ctx.Err()
	}
	return a, err
}
