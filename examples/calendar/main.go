// Command calendar is a service that AI agents use on behalf of people: it shows how few lines protect operations with
// agent certificates, and what the service knows about who acts for whom.
//
// It keeps events in memory. Reading them takes the capability calendar:read:events, adding one calendar:write:events;
// the service asks nobody and needs only the root certificate of the authority.
//
//	chancery quickstart &
//	chancery issue localhost --out server
//	go run ./examples/calendar -root chancery-data/root.pem -cert server.pem -key server.key &
//	cd chancery-data && curl --cacert root.pem --cert quickstart/agent.pem --key quickstart/agent.key https://localhost:9443/events
//
// The agent's file, as chancery writes it, holds its certificate, those of the authorities below the root, and its
// principal's.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"chancery/agentcert"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		slog.Error("the calendar has stopped", "error", err)
		os.Exit(1)
	}
}

// run serves until ctx ends.
func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("calendar", flag.ContinueOnError)
	listen := flags.String("listen", "localhost:9443", "address to listen on")
	rootFile := flags.String("root", "root.pem", "root certificates that are trusted for agents and principals")
	certFile := flags.String("cert", "server.pem", "this service's certificate chain")
	keyFile := flags.String("key", "server.key", "this service's private key")
	if err := flags.Parse(args); err != nil {
		return err
	}
	roots, err := readCertificates(*rootFile)
	if err != nil {
		return fmt.Errorf("reading the roots: %w", err)
	}
	verifier := agentcert.NewVerifier(roots, agentcert.Policy{})
	server := &http.Server{
		Addr:    *listen,
		Handler: newCalendar(verifier),
		// The middleware verifies the client's certificates, so that a refusal can say why.
		TLSConfig:         &tls.Config{ClientAuth: tls.RequestClientCert, MinVersion: tls.VersionTLS13},
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      10 * time.Second,
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    16 << 10,
	}
	return serve(ctx, server, *certFile, *keyFile)
}

func serve(ctx context.Context, server *http.Server, certFile, keyFile string) error {
	failed := make(chan error, 1)
	go func() { failed <- server.ListenAndServeTLS(certFile, keyFile) }()
	slog.Info("the calendar is open", "address", server.Addr)
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	return server.Shutdown(ctx)
}

func readCertificates(file string) ([]*x509.Certificate, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var list []*x509.Certificate
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, err
		}
		list = append(list, cert)
	}
	if len(list) == 0 {
		return nil, errors.New("no certificate in the file")
	}
	return list, nil
}
