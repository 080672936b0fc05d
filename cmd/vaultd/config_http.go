package main

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"unicode/utf8"

	"vaultd/internal/web"
)

const (
	minPassword = 12        // characters of the port's password: nobody guesses it at four tries a second
	maxPEM      = 256 << 10 // of a certificate with its chain, or a key
)

// checkListen holds the port against what other machines could do on it. Whether the files are good is checkDisk's.
func (c *config) checkListen() {
	h := &c.HTTP
	at := func(key string) location { return location{"http", key} }
	c.cleanPath(&h.CertFile, at("cert_file")...)
	c.cleanSecretRef(&h.KeyFile)
	c.cleanSecretRef(&h.PasswordFile)
	if (h.CertFile == "") != (h.KeyFile == "") && c.doc.sound(at("cert_file"), at("key_file")) {
		missing, there := "key_file", "cert_file"
		if h.CertFile == "" {
			missing, there = there, missing
		}
		c.fault("is missing, and "+there+" is there", "TLS needs both: the certificate with its chain, and its key", at(missing)...)
	}
	if h.Listen == "" {
		return
	}
	host, port, err := net.SplitHostPort(h.Listen)
	n, portErr := strconv.ParseUint(port, 10, 16)
	switch {
	case err != nil || portErr != nil || strconv.FormatUint(n, 10) != port:
		c.fault("is not an address with a port", "write it as 127.0.0.1:8970, or empty for none", at("listen")...)
	case !web.Loopback(host) && !h.guarded() && c.doc.sound(at("cert_file"), at("key_file"), at("password_file")):
		c.fault("can be reached from other machines, and needs "+h.unguarded(),
			"set cert_file, key_file and password_file, or write 127.0.0.1:"+port, at("listen")...)
	}
}

func (h httpConfig) guarded() bool {
	return h.CertFile != "" && h.KeyFile != "" && h.PasswordFile != ""
}

// unguarded says what is missing before other machines may reach the port.
func (h httpConfig) unguarded() string {
	switch {
	case h.PasswordFile != "":
		return "TLS too"
	case h.CertFile != "" || h.KeyFile != "":
		return "a password too"
	}
	return "TLS and a password"
}

// httpFault is what is wrong with one of the files of the port.
type httpFault struct {
	key string // of the section http
	err error
}

// access reads the certificate, its key and the password, as they are now.
func (h httpConfig) access(env func(string) (string, bool)) (web.Access, []httpFault) {
	var faults []httpFault
	refuse := func(key string, err error) { faults = append(faults, httpFault{key, err}) }
	var password secret
	if h.PasswordFile != "" {
		var err error
		if password, err = readSecret(h.PasswordFile, env); err != nil {
			refuse("password_file", err)
		} else if n := utf8.RuneCountInString(string(password)); n < minPassword {
			refuse("password_file", fmt.Errorf("the password has %d characters; at least %d are needed", n, minPassword))
		}
	}
	var pair *tls.Certificate
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
			one, err := tls.X509KeyPair(chain, key)
			if err != nil {
				refuse("cert_file", fmt.Errorf("certificate and key are no pair: %w", err))
			}
			pair = &one
		}
	}
	if len(faults) > 0 {
		return web.Access{}, faults
	}
	return web.NewAccess(pair, string(password)), nil
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
