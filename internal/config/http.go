package config

import (
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"unicode/utf8"
)

const (
	minPassword = 12        // characters of the port's password: nobody guesses it at four tries a second
	maxPEM      = 256 << 10 // of a certificate with its chain, or a key
)

// PortSecrets is what the port needs to let other machines in.
type PortSecrets struct {
	Certificate *tls.Certificate // nil: no TLS
	Password    Secret           // empty: none is asked
}

// PortFault is what is wrong with one of the files of the port.
type PortFault struct {
	Key string // of the section http
	Err error
}

// ReadPortSecrets reads the certificate, its key and the password, as they are now.
func (h HTTP) ReadPortSecrets(env Env) (access PortSecrets, faults []PortFault) {
	refuse := func(key string, err error) { faults = append(faults, PortFault{key, err}) }
	if h.PasswordFile != "" {
		var err error
		if access.Password, err = ReadSecret(h.PasswordFile, env); err != nil {
			refuse("password_file", err)
		} else if n := utf8.RuneCountInString(string(access.Password)); n < minPassword {
			refuse("password_file", fmt.Errorf("the password has %d characters; at least %d are needed", n, minPassword))
		}
	}
	if h.CertFile != "" && h.KeyFile != "" {
		chain, err := readPEM(h.CertFile)
		if err != nil {
			refuse("cert_file", err)
		}
		key, keyErr := readPrivate(h.KeyFile, env, maxPEM)
		if keyErr != nil {
			refuse("key_file", keyErr)
		}
		if err == nil && keyErr == nil {
			pair, err := tls.X509KeyPair(chain, key)
			if err != nil {
				refuse("cert_file", fmt.Errorf("certificate and key are no pair: %w", err))
			}
			access.Certificate = &pair
		}
	}
	return access, faults
}

// readPEM reads a file that is no secret.
func readPEM(path string) ([]byte, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular() || info.Size() > maxPEM:
		return nil, errors.New("is not a file with a certificate")
	}
	return os.ReadFile(path)
}
