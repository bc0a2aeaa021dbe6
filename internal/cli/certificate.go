package cli

import (
	"cmp"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"chancery/api"
	"chancery/client"
	"chancery/internal/base/conf"
	"chancery/internal/base/fault"
	"chancery/internal/base/id"
	"chancery/internal/base/key"
	"chancery/internal/domain/ca"
)

func (t *terminal) issue() *cobra.Command {
	var order api.IssueRequest
	var out, csr, kind, commonName string
	var lifetime conf.Duration
	var p12 container
	c := &cobra.Command{
		Use: "issue [NAME...]", Short: "Issue a certificate for a machine or a service",
		Long:    "Issues a certificate for the given names: DNS names, addresses, URIs or e-mail addresses. The private key is made here, in\nOUT.key for this user alone, unless it is there already; only a certificate request leaves this machine. The certificate\nwith its chain goes into OUT.pem.",
		Example: "  chancery issue web.internal 10.0.0.7 --out web\n  chancery issue --profile tls-client --cn backup-job --out backup --p12 backup.p12",
		RunE: t.remote(func(ctx context.Context, server *client.Client, args []string) error {
			if err := p12.ready(t, pair(out)); err != nil {
				return err
			}
			request, err := pair(out).request(csr, key.Kind(kind), commonName)
			if err != nil {
				return err
			}
			order.Request, order.Names, order.LifetimeSec = request, args, seconds(lifetime)
			var issued api.Issued
			if err := server.Call(ctx, "POST", "/api/v1/certificates", order, &issued); err != nil {
				return err
			}
			return t.deliver(issued, pair(out), p12)
		}),
	}
	c.Flags().StringVar(&order.Authority, "authority", "machines", "authority that issues")
	c.Flags().StringVar(&order.Profile, "profile", "tls-server", "kind of certificate; see chancery profile list")
	c.Flags().StringVar(&commonName, "cn", "", "common name of the subject, where the profile wants one")
	c.Flags().StringVar(&out, "out", "", "OUT.key and OUT.pem are written")
	c.Flags().StringVar(&csr, "csr", "", "file with a certificate request, in place of a key made here")
	keyKind(c, &kind)
	durationFlag(c, &lifetime, "lifetime", "how long it is valid, at most what the profile allows; default: the profile's")
	p12.flags(c)
	return c
}

func keyKind(c *cobra.Command, kind *string) {
	c.Flags().StringVar(kind, "key-kind", string(key.P256), fmt.Sprintf("kind of a new key: %v", key.Kinds()))
}

func seconds(d conf.Duration) int { return int(time.Duration(d) / time.Second) }

// deliver writes an issued certificate to where it belongs and says what it is.
func (t *terminal) deliver(issued api.Issued, to pair, p12 container) error {
	if err := t.keep(to, bundle(issued)); err != nil {
		return err
	}
	if err := p12.pack(to); err != nil {
		return err
	}
	if to == "" && !t.json {
		return nil
	}
	return t.show(issued, func() {
		t.card("Serial", issued.Serial, "Valid until", stamp(issued.NotAfter), "Certificate", to.cert(),
			"Private key", presentFile(to.key()), "PKCS#12", p12.path)
	})
}

func presentFile(path string) string {
	if _, err := os.Stat(path); err != nil {
		return ""
	}
	return path
}

func (t *terminal) renew() *cobra.Command {
	var out, csr string
	var lifetime conf.Duration
	var p12 container
	c := &cobra.Command{
		Use: "renew NAME|SERIAL", Short: "Renew a certificate for a new time", Args: cobra.ExactArgs(1),
		Long: "Renews the certificate in NAME.pem, which is replaced in one step, or the one with the given serial. The key stays the\nsame unless a certificate request brings a new one.",
		RunE: t.remote(func(ctx context.Context, server *client.Client, args []string) error {
			serial, file, err := serialOf(args[0])
			if err != nil {
				return err
			}
			to := pair(cmp.Or(out, strings.TrimSuffix(file, ".pem")))
			if err := p12.ready(t, to); err != nil {
				return err
			}
			order := api.RenewRequest{LifetimeSec: seconds(lifetime)}
			if csr != "" {
				if order.Request, err = pair("").request(csr, "", ""); err != nil {
					return err
				}
			}
			var issued api.Issued
			if err := server.Call(ctx, "POST", "/api/v1/certificates/"+serial+"/renew", order, &issued); err != nil {
				return err
			}
			return t.deliver(issued, to, p12)
		}),
	}
	c.Flags().StringVar(&out, "out", "", "write OUT.pem instead")
	c.Flags().StringVar(&csr, "csr", "", "file with a certificate request for a new key")
	durationFlag(c, &lifetime, "lifetime", "how long it is valid; default: the profile's")
	p12.flags(c)
	return c
}

// serialOf gives the serial that an argument means: that of the certificate in a file, NAME or NAME.pem, or the argument
// itself. It also gives the file, if there is one.
func serialOf(arg string) (serial, file string, err error) {
	for _, path := range []string{arg, pair(arg).cert()} {
		certificates, err := readCertificates(path)
		if err == nil {
			return id.SerialOf(certificates[0].SerialNumber).String(), path, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return "", "", err
		}
	}
	parsed, err := id.ParseSerial(strings.ToLower(arg))
	if err != nil {
		return "", "", fault.New(fault.Invalid, "serial_invalid", "%q is neither the file of a certificate, with or without .pem, nor a serial", arg)
	}
	return parsed.String(), "", nil
}

func (t *terminal) revoke() *cobra.Command {
	var order api.RevokeRequest
	c := &cobra.Command{
		Use: "revoke NAME|SERIAL", Short: "Revoke a certificate", Args: cobra.ExactArgs(1),
		Long: "Revokes the certificate in NAME.pem, or the one with the given serial. OCSP and CRL say so within a second.",
		RunE: t.remote(func(ctx context.Context, server *client.Client, args []string) error {
			serial, _, err := serialOf(args[0])
			if err != nil {
				return err
			}
			if err := server.Call(ctx, "POST", "/api/v1/certificates/"+serial+"/revoke", order, nil); err != nil {
				return err
			}
			return t.show(map[string]string{"revoked": serial}, func() { t.say("Revoked: %s", serial) })
		}),
	}
	c.Flags().StringVar(&order.Reason, "reason", "unspecified", "why: keyCompromise, superseded, cessationOfOperation, certificateHold, …")
	c.Flags().StringVar(&order.Note, "note", "", "a remark for the audit")
	return c
}

func (t *terminal) list() *cobra.Command {
	var wanted search
	var l listing
	c := &cobra.Command{
		Use: "list", Short: "List certificates", Args: cobra.NoArgs,
		RunE: t.remote(func(ctx context.Context, server *client.Client, _ []string) error {
			query, err := wanted.query(ctx, server)
			if err != nil {
				return err
			}
			page, err := collect[api.Certificate](ctx, server, "/api/v1/certificates", query, l)
			if err != nil {
				return err
			}
			return browse(t, page, []string{"serial", "authority", "profile", "status", "valid until", "subject"}, func(c api.Certificate) []string {
				return []string{c.Serial, c.Authority, c.Profile, c.Status, stamp(c.NotAfter), cmp.Or(c.Subject, strings.Join(c.Names, " "))}
			})
		}),
	}
	c.Flags().StringVar(&wanted.authority, "authority", "", "of this authority")
	c.Flags().StringVar(&wanted.name, "name", "", "with this subject alternative name")
	c.Flags().StringVar(&wanted.keyHash, "key-hash", "", "of the key with this SHA-256, hexadecimal")
	c.Flags().StringVar(&wanted.person, "person", "", "of the agents that this person answers for, by name")
	c.Flags().StringVar(&wanted.agent, "agent", "", "of this agent, by identifier or name")
	l.flags(c)
	return c
}

// A search says which certificates are looked for. All that is given has to hold.
type search struct{ authority, name, keyHash, person, agent string }

// query writes the search as the route takes it.
func (s search) query(ctx context.Context, server *client.Client) (url.Values, error) {
	person, err := accountID(ctx, server, s.person)
	if err != nil {
		return nil, err
	}
	agent := ""
	if s.agent != "" {
		if agent, err = agentID(ctx, server, s.agent); err != nil {
			return nil, err
		}
	}
	query := url.Values{}
	for field, value := range map[string]string{"authority": s.authority, "name": s.name, "key_hash": s.keyHash, "principal": person, "agent": agent} {
		if value != "" {
			query.Set(field, value)
		}
	}
	return query, nil
}

func (t *terminal) showCertificate() *cobra.Command {
	return &cobra.Command{
		Use: "show NAME|SERIAL", Short: "Show what is known of a certificate", Args: cobra.ExactArgs(1),
		RunE: t.remote(func(ctx context.Context, server *client.Client, args []string) error {
			serial, _, err := serialOf(args[0])
			if err != nil {
				return err
			}
			var c api.Certificate
			if err := server.Call(ctx, "GET", "/api/v1/certificates/"+serial, nil, &c); err != nil {
				return err
			}
			return t.show(c, func() {
				t.card("Serial", c.Serial, "Subject", c.Subject, "Names", strings.Join(c.Names, " "),
					"Authority", c.Authority, "Profile", c.Profile, "Valid from", stamp(c.NotBefore),
					"Valid until", stamp(c.NotAfter), "Status", c.Status, "Revoked at", stamp(c.RevokedAt),
					"Reason", c.Reason, "Because of", c.RevokedBy, "Owner", c.Owner, "Agent", c.Agent,
					"Delegation", c.Delegation, "Principal", c.Principal, "Key hash", c.KeyHash)
				fmt.Fprint(t.out, c.PEM)
			})
		}),
	}
}

func (t *terminal) crl() *cobra.Command {
	var out string
	c := &cobra.Command{
		Use: "crl AUTHORITY", Short: "Fetch an authority's certificate revocation list", Args: cobra.ExactArgs(1),
		RunE: t.remote(func(ctx context.Context, server *client.Client, args []string) error {
			der, err := server.Fetch(ctx, "/pki/"+url.PathEscape(args[0])+".crl")
			if err != nil {
				return err
			}
			if out != "" {
				if err := replace(out, der, 0o644); err != nil {
					return err
				}
			}
			list, err := x509.ParseRevocationList(der)
			if err != nil {
				return fmt.Errorf("the server's list cannot be read: %w", err)
			}
			return t.showCRL(list)
		}),
	}
	c.Flags().StringVar(&out, "out", "", "write it in DER into this file")
	return c
}

// A revocationList is the answer of `chancery crl --json`.
type revocationList struct {
	Issuer     string         `json:"issuer"`
	Number     string         `json:"number"`
	ThisUpdate time.Time      `json:"this_update"`
	NextUpdate time.Time      `json:"next_update"`
	Revoked    []revokedEntry `json:"revoked"`
}

type revokedEntry struct {
	Serial string    `json:"serial"`
	At     time.Time `json:"at"`
	Reason int       `json:"reason"` // CRLReason (RFC 5280 §5.3.1)
}

func (t *terminal) showCRL(list *x509.RevocationList) error {
	answer := revocationList{Issuer: list.Issuer.String(), Number: list.Number.String(), ThisUpdate: list.ThisUpdate, NextUpdate: list.NextUpdate, Revoked: []revokedEntry{}}
	rows := [][]string{}
	for _, e := range list.RevokedCertificateEntries {
		serial := id.SerialOf(e.SerialNumber).String()
		answer.Revoked = append(answer.Revoked, revokedEntry{serial, e.RevocationTime, e.ReasonCode})
		rows = append(rows, []string{serial, stamp(e.RevocationTime), ca.Reason(e.ReasonCode).String()})
	}
	return t.show(answer, func() {
		t.card("Issuer", answer.Issuer, "Number", answer.Number, "Next update", stamp(answer.NextUpdate),
			"Revoked", fmt.Sprint(len(rows)))
		if len(rows) > 0 {
			t.table([]string{"serial", "revoked at", "reason"}, rows)
		}
	})
}
