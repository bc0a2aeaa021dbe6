package cli

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"strconv"

	"github.com/spf13/cobra"

	"chancery/api"
	"chancery/client"
	"chancery/internal/base/fault"
	"chancery/internal/base/id"
	"chancery/internal/server"
)

// connect makes the client that a command speaks through: to --server with its credentials, or, where none is named,
// through the admin socket of the data directory.
func (t *terminal) connect() (*client.Client, error) {
	if t.server == "" {
		return t.connectSocket()
	}
	config := client.Config{URL: t.server}
	var err error
	if config.Token, err = t.apiToken(); err != nil {
		return nil, err
	}
	if config.Roots, err = t.roots(); err != nil {
		return nil, err
	}
	if config.Certificate, err = t.clientCertificate(); err != nil {
		return nil, err
	}
	return dial(config)
}

// remote makes the body of a command that speaks to a server.
func (t *terminal) remote(run func(ctx context.Context, c *client.Client, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		c, err := t.connect()
		if err != nil {
			return err
		}
		return run(cmd.Context(), c, args)
	}
}

func dial(config client.Config) (*client.Client, error) {
	c, err := client.New(config)
	if err != nil {
		return nil, usageError{err}
	}
	return c, nil
}

func (t *terminal) connectSocket() (*client.Client, error) {
	c, _, err := server.Configure(t.data, os.Environ(), nil)
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(c.SocketPath()); err != nil {
		return nil, errNotRunning(t.data)
	}
	config := client.Config{Socket: c.SocketPath()}
	if t.token != "" { // the person at the machine calls as somebody else
		if config.Token, err = t.apiToken(); err != nil {
			return nil, err
		}
	}
	return client.New(config)
}

func errNotRunning(data string) error {
	return fault.New(fault.Unavailable, "server_not_running", "no server runs on the data directory %s", data).
		WithHint("start one with `chancery serve --data %s`, name another data directory with --data, or a server with --server https://…", data)
}

// apiToken gives the token of --token-file, or of the environment; "" for none.
func (t *terminal) apiToken() (string, error) {
	if t.token == "" {
		return os.Getenv("CHANCERY_TOKEN"), nil
	}
	text, err := readSecret(t.token)
	return string(text), err
}

// roots gives what --root or the data directory says to trust; nil for what the system trusts.
func (t *terminal) roots() (*x509.CertPool, error) {
	certificates, err := readCertificates(t.trusted())
	if errors.Is(err, fs.ErrNotExist) && t.root == "" {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the root certificate: %w", err)
	}
	pool := x509.NewCertPool()
	for _, certificate := range certificates {
		pool.AddCert(certificate)
	}
	return pool, nil
}

func (t *terminal) clientCertificate() (*tls.Certificate, error) {
	switch {
	case t.cert == "" && t.key == "":
		return nil, nil
	case t.cert == "" || t.key == "":
		return nil, usageError{errors.New("--cert and --key go together")}
	}
	pair, err := tls.LoadX509KeyPair(t.cert, t.key)
	if err != nil {
		return nil, fault.New(fault.Invalid, "key_pair_invalid", "%s and %s are not a certificate and its key: %v", t.cert, t.key, err)
	}
	return &pair, nil
}

// A listing is how much of a list a command shows.
type listing struct {
	limit  int
	cursor string
}

func (l *listing) flags(c *cobra.Command) {
	c.Flags().IntVar(&l.limit, "limit", 100, "show this many at most")
	c.Flags().StringVar(&l.cursor, "cursor", "", "go on after an earlier list, which said where")
}

const pageMax = 1000

// collect asks for pages until the list is as long as wanted, or ends.
func collect[T any](ctx context.Context, c *client.Client, path string, query url.Values, l listing) (api.Page[T], error) {
	got := api.Page[T]{Items: []T{}, Next: l.cursor}
	for len(got.Items) < l.limit {
		query.Set("limit", strconv.Itoa(min(l.limit-len(got.Items), pageMax)))
		if got.Next != "" {
			query.Set("cursor", got.Next)
		}
		var page api.Page[T]
		if err := c.Call(ctx, "GET", path+"?"+query.Encode(), nil, &page); err != nil {
			return got, err
		}
		got.Items, got.Next = append(got.Items, page.Items...), page.Next
		if got.Next == "" {
			break
		}
	}
	return got, nil
}

// browse shows a list as a table, a row for each item, or in JSON.
func browse[T any](t *terminal, page api.Page[T], head []string, row func(T) []string) error {
	return t.show(page, func() {
		rows := make([][]string, len(page.Items))
		for i, item := range page.Items {
			rows[i] = row(item)
		}
		t.table(head, rows)
		if page.Next != "" {
			t.say("There is more: --cursor %s", page.Next)
		}
	})
}

// accountID gives the identifier of an account that is named by identifier or name; "" stays "".
func accountID(ctx context.Context, c *client.Client, text string) (string, error) {
	if text == "" || id.Is(id.Person, text) || id.Is(id.Service, text) {
		return text, nil
	}
	var found api.Account
	err := c.Call(ctx, "GET", "/api/v1/accounts/"+url.PathEscape(text), nil, &found)
	return found.ID, err
}

// agentID gives the identifier of an agent that is named by identifier or name.
func agentID(ctx context.Context, c *client.Client, text string) (string, error) {
	if id.Is(id.Agent, text) {
		return text, nil
	}
	page, err := collect[api.Agent](ctx, c, "/api/v1/agents", url.Values{}, listing{limit: 10 * pageMax})
	if err != nil {
		return "", err
	}
	var found string
	for _, a := range page.Items {
		if a.Name != text {
			continue
		}
		if found != "" {
			return "", fault.New(fault.Conflict, "agent_ambiguous", "several agents are named %q", text).WithHint("name it by its identifier; `chancery agent list` shows them")
		}
		found = a.ID
	}
	if found == "" {
		return "", fault.New(fault.NotFound, "agent_unknown", "there is no agent %q that you may see", text).WithHint("`chancery agent list` shows them")
	}
	return found, nil
}
