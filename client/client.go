// Package client is the Go client of Chancery's HTTP API.
//
// A Client speaks to one server, over HTTPS with a token or a client certificate, or through the admin socket of a
// server on the same machine. Every request that changes something carries an idempotency key, and is repeated while the
// server asks for patience (503 or 429 with Retry-After); a refused request has changed nothing.
package client

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"chancery/api"
)

// Config says how to reach a server.
type Config struct {
	URL         string           // such as https://localhost:8443; may be empty with Socket
	Socket      string           // path of an admin socket; no token is needed there
	Token       string           // API token
	Certificate *tls.Certificate // client certificate, for the mTLS listener
	Roots       *x509.CertPool   // nil: the system's
	Timeout     time.Duration    // of one try; default 30s
	Patience    time.Duration    // how long a request is repeated when the server asks for patience; default 30s, negative for never
}

// A Client is safe for concurrent use.
type Client struct {
	base     string
	token    string
	http     *http.Client
	patience time.Duration
}

const answerBytesMax = 32 << 20

// New makes a client. It connects at the first request.
func New(c Config) (*Client, error) {
	base := strings.TrimSuffix(c.URL, "/")
	if c.Socket != "" {
		base = "http://admin.sock"
	}
	if u, err := url.Parse(base); err != nil || u.Host == "" {
		return nil, fmt.Errorf("server address %q: want a form such as https://localhost:8443", c.URL)
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = 64
	transport.TLSClientConfig = &tls.Config{RootCAs: c.Roots, MinVersion: tls.VersionTLS12}
	if c.Certificate != nil {
		transport.TLSClientConfig.Certificates = []tls.Certificate{*c.Certificate}
	}
	if c.Socket != "" {
		transport.Proxy = nil
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", c.Socket)
		}
	}
	return &Client{
		base: base, token: c.Token, patience: cmp.Or(c.Patience, 30*time.Second),
		http: &http.Client{Transport: transport, Timeout: cmp.Or(c.Timeout, 30*time.Second)},
	}, nil
}

// An Error is a refusal or a failure that the server answered with.
type Error struct {
	api.Problem
	RetryAfter time.Duration
}

// Error gives what happened, and why, on one line.
func (e *Error) Error() string {
	if e.Detail == "" {
		return fmt.Sprintf("the server answered %d %s", e.Status, e.Title)
	}
	return e.Detail
}

// CodeOf gives the code of the first Error in err's chain, or "".
func CodeOf(err error) string {
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

// Call sends one request with in as its JSON body and reads the answer into out; nil for neither. path starts below
// the server's address. The error is an *Error if the server answered.
func (c *Client) Call(ctx context.Context, method, path string, in, out any) error {
	var body []byte
	if in != nil {
		var err error
		if body, err = json.Marshal(in); err != nil {
			return fmt.Errorf("encode request: %w", err)
		}
	}
	answer, err := c.persist(ctx, method, path, "application/json", body)
	if err != nil || out == nil {
		return err
	}
	if err := json.Unmarshal(answer, out); err != nil {
		return fmt.Errorf("the answer of %s %s is not what this client knows: %w", method, path, err)
	}
	return nil
}

// Fetch gives the body of a GET, such as a CRL or a backup's chunk, as it is.
func (c *Client) Fetch(ctx context.Context, path string) ([]byte, error) {
	return c.persist(ctx, http.MethodGet, path, "", nil)
}

// Download writes the body of a GET to w as it arrives, however long that takes; only ctx bounds it. After an error, what
// w got is a part.
func (c *Client) Download(ctx context.Context, path string, w io.Writer) error {
	req, err := c.request(ctx, http.MethodGet, path, "", "", nil)
	if err != nil {
		return err
	}
	patient := *c.http
	patient.Timeout = 0
	res, err := patient.Do(req)
	if err != nil {
		return fmt.Errorf("GET %s: %w", path, err)
	}
	defer res.Body.Close()
	if res.StatusCode >= 300 {
		answer, err := io.ReadAll(io.LimitReader(res.Body, answerBytesMax))
		return errors.Join(err, problem(res, answer))
	}
	if _, err := io.Copy(w, res.Body); err != nil {
		return fmt.Errorf("read the answer of GET %s: %w", path, err)
	}
	return nil
}

// persist repeats a request as long as the server asks for patience. The idempotency key stays the same.
func (c *Client) persist(ctx context.Context, method, path, contentType string, body []byte) ([]byte, error) {
	deadline := time.Now().Add(c.patience)
	idempotency := rand.Text()
	for {
		answer, wait, err := c.try(ctx, method, path, contentType, idempotency, body)
		if err == nil || wait < 0 || time.Now().Add(wait).After(deadline) {
			return answer, err
		}
		if err := pause(ctx, wait); err != nil {
			return nil, err
		}
	}
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

func (c *Client) request(ctx context.Context, method, path, contentType, idempotency string, body []byte) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if len(body) > 0 {
		req.Header.Set("Content-Type", contentType)
	}
	if method != http.MethodGet {
		req.Header.Set("Idempotency-Key", idempotency)
	}
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	return req, nil
}

// try sends the request once. wait says when to try again; negative for never.
func (c *Client) try(ctx context.Context, method, path, contentType, idempotency string, body []byte) (answer []byte, wait time.Duration, err error) {
	req, err := c.request(ctx, method, path, contentType, idempotency, body)
	if err != nil {
		return nil, -1, err
	}
	res, err := c.http.Do(req)
	if err != nil {
		return nil, -1, fmt.Errorf("%s %s: %w", method, path, err)
	}
	defer res.Body.Close()
	answer, err = io.ReadAll(io.LimitReader(res.Body, answerBytesMax))
	if err != nil {
		return nil, -1, fmt.Errorf("read the answer of %s %s: %w", method, path, err)
	}
	if res.StatusCode < 300 {
		return answer, -1, nil
	}
	return nil, retryAfter(res), problem(res, answer)
}

// retryAfter reads how long a 503 or 429 asks to wait (RFC 9110 §10.2.3, seconds form).
func retryAfter(res *http.Response) time.Duration {
	if res.StatusCode != http.StatusServiceUnavailable && res.StatusCode != http.StatusTooManyRequests {
		return -1
	}
	seconds, err := strconv.Atoi(res.Header.Get("Retry-After"))
	if err != nil || seconds < 0 {
		return -1
	}
	return time.Duration(seconds) * time.Second
}

func problem(res *http.Response, answer []byte) error {
	e := &Error{RetryAfter: max(retryAfter(res), 0)}
	if json.Unmarshal(answer, &e.Problem) != nil || e.Status == 0 {
		e.Problem = api.Problem{Status: res.StatusCode, Title: http.StatusText(res.StatusCode)}
	}
	return e
}
