package hinder

import (
	"cmp"
	"errors"
	"net"
	"net/url"
	"path/filepath"
	"strings"
)

// errAddress repeats nothing of the address, which has a password in it.
var errAddress = errors.New("the address of the store is no postgres:// or mysql:// URL of one server")

// databaseServer reads a store address and gives it with the port that its server listens on by default.
func databaseServer(storeURL string) (u *url.URL, port string, err error) {
	u, err = url.Parse(storeURL)
	if err != nil || u.Opaque != "" || strings.Contains(u.Host+u.Query().Get("host"), ",") {
		return nil, "", errAddress
	}
	switch u.Scheme {
	case "postgres", "postgresql":
		return u, "5432", nil
	case "mysql", "mariadb":
		return u, "3306", nil
	}
	return nil, "", errAddress
}

// Target gives the server that a store address names in the form that NewProxy takes.
func Target(storeURL string) (string, error) {
	u, port, err := databaseServer(storeURL)
	if err != nil {
		return "", err
	}
	host := u.Hostname()
	if u.Port() != "" {
		port = u.Port()
	}
	if strings.HasPrefix(u.Scheme, "postgres") { // libpq lets the query name them
		host = cmp.Or(u.Query().Get("host"), host)
		port = cmp.Or(u.Query().Get("port"), port)
		if filepath.IsAbs(host) {
			return filepath.Join(host, ".s.PGSQL."+port), nil
		}
	}
	if host == "" {
		return "", errAddress
	}
	return net.JoinHostPort(host, port), nil
}

// URL gives a store address with the proxy in the server's place. Where the address demands the server's certificate for
// its name (sslmode=verify-full), the connection fails: the name is now 127.0.0.1.
func (p *Proxy) URL(storeURL string) (string, error) {
	u, _, err := databaseServer(storeURL)
	if err != nil {
		return "", err
	}
	u.Host = p.Address()
	if query := u.Query(); strings.HasPrefix(u.Scheme, "postgres") {
		query.Del("host")
		query.Del("port")
		u.RawQuery = query.Encode()
	}
	return u.String(), nil
}
