package cli

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"software.sslmate.com/src/go-pkcs12"

	"chancery/internal/base/key"
)

// A container is a PKCS#12 file to write, for programs that want key and chain in one. It is made here: the server never
// sees the key.
type container struct{ path, passwordFile, password string }

func (p *container) flags(c *cobra.Command) {
	c.Flags().StringVar(&p.path, "p12", "", "also write key and chain into this PKCS#12 file")
	c.Flags().StringVar(&p.passwordFile, "p12-password-file", "", "file with its password; otherwise CHANCERY_P12_PASSWORD, or it is asked for")
}

// ready finds the password, if a container is wanted, before anything is issued.
func (p *container) ready(t *terminal, from pair) (err error) {
	if p.path == "" {
		return nil
	}
	if from == "" {
		return usageError{errors.New("--p12 needs --out: key and certificate are read from there")}
	}
	p.password, err = t.secret("password of the PKCS#12 file", p.passwordFile, "CHANCERY_P12_PASSWORD")
	return err
}

// pack writes the container from the files of a pair, if one is wanted.
func (p *container) pack(from pair) error {
	if p.path == "" {
		return nil
	}
	text, err := os.ReadFile(from.key())
	if err != nil {
		return fmt.Errorf("read the key for the PKCS#12 file: %w", err)
	}
	private, err := key.ParsePrivate(text)
	if err != nil {
		return err
	}
	chain, err := readCertificates(from.cert())
	if err != nil {
		return err
	}
	der, err := pkcs12.Modern2023.Encode(private, chain[0], chain[1:], p.password)
	if err != nil {
		return fmt.Errorf("make the PKCS#12 file: %w", err)
	}
	return replace(p.path, der, 0o600)
}
