package config

import (
	"crypto/tls"
	"errors"
	"fmt"
	"os"
)

const maxPEM = 256 << 10 // of a certificate with its chain, or a key

// PortSecrets is what the port needs to let other machines in.
type PortSecrets struct {
	Certificate *tls.Certificate // nil: no TLS
	Users       []PageUser       // empty: nobody can sign in
	ProxySecret Secret           // empty: no proxy sends one
}

// PortFault is what is wrong with one of the files of the port.
type PortFault struct {
	Key  string // below the section http, such as access.users_file
	Err  error
	Hint string // what to do
}

// ReadPortSecrets reads the certificate, its key and the users, as they are now.
func (h HTTP) ReadPortSecrets(env Env) (access PortSecrets, faults []PortFault) {
	refuse := func(key string, err error) { faults = append(faults, PortFault{key, err, secretHint(err)}) }
	if h.Access.UsersFile != "" {
		var err error
		if access.Users, err = readUsers(h.Access.UsersFile, env); err != nil {
			refuse("access.users_file", err)
			if hint := &faults[len(faults)-1].Hint; *hint == oneSecretHint {
				*hint = "each line is one user: " + userForm + "; vaultd hash-password prints such a line"
			}
		}
	}
	if h.Access.Proxy.SecretFile != "" {
		var err error
		if access.ProxySecret, err = h.Access.Proxy.readProxySecret(env); err != nil {
			refuse("access.proxy.secret_file", err)
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
