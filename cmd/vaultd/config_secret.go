package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// secret is a password or client secret. However it is printed, logged or encoded, it says "[secret]"; string(s)
// alone gives it, and belongs where it is put into a request.
type secret string

const secretShown = "[secret]"

func (secret) String() string               { return secretShown }
func (secret) GoString() string             { return secretShown }
func (secret) LogValue() slog.Value         { return slog.StringValue(secretShown) }
func (secret) MarshalText() ([]byte, error) { return []byte(secretShown), nil }

// Format covers the verbs that would show the bytes, such as %x.
func (secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, secretShown) }

// secretRightsError says that others may read a secret file: the secret counts as known until it is changed.
type secretRightsError struct {
	Path string
	Mode fs.FileMode
}

func (e *secretRightsError) Error() string {
	return fmt.Sprintf("secret file %s has rights %#o; 0640 or stricter is needed", e.Path, e.Mode.Perm())
}

const (
	credentialPrefix = "credential:"
	maxSecretSize    = 8 << 10
	secretRights     = 0o640
)

// errNoCredentials says that a systemd credential is asked for where systemd gave none.
var errNoCredentials = errors.New("CREDENTIALS_DIRECTORY is not set")

// isSecretRef says whether a text has the form of a secret_file, as against being a secret by mistake.
func isSecretRef(s string) bool {
	return strings.HasPrefix(s, "/") || strings.HasPrefix(s, credentialPrefix)
}

// readSecret reads what secret_file refers to: a file, or credential:NAME in $CREDENTIALS_DIRECTORY. The file must be
// a regular one with rights 0640 or stricter (else *secretRightsError) and hold one line of text; its final line break
// is not part of the secret. It is read again at each call, so that a renewed secret counts after a reload.
func readSecret(ref string, env func(string) (string, bool)) (secret, error) {
	path, err := secretPath(ref, env)
	if err != nil {
		return "", err
	}
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a FIFO must not block the start
	if err != nil {
		return "", fmt.Errorf("open secret file: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return "", fmt.Errorf("look at secret file: %w", err)
	case !info.Mode().IsRegular():
		return "", fmt.Errorf("secret file %s is not a regular file", path)
	case info.Mode().Perm()&^secretRights != 0:
		return "", &secretRightsError{Path: path, Mode: info.Mode()}
	}
	raw, err := io.ReadAll(io.LimitReader(f, maxSecretSize+1))
	if err != nil {
		return "", fmt.Errorf("read secret file: %w", err)
	}
	return trimSecret(path, raw)
}

func secretPath(ref string, env func(string) (string, bool)) (string, error) {
	name, isCredential := strings.CutPrefix(ref, credentialPrefix)
	if !isCredential {
		return ref, nil
	}
	dir, ok := env("CREDENTIALS_DIRECTORY")
	if !ok || dir == "" {
		return "", fmt.Errorf("find credential %s: %w", name, errNoCredentials)
	}
	if !filepath.IsLocal(name) || strings.Contains(name, "/") {
		return "", fmt.Errorf("find credential %q: not a plain name", name)
	}
	return filepath.Join(dir, name), nil
}

func trimSecret(path string, raw []byte) (secret, error) {
	line := bytes.TrimSuffix(bytes.TrimSuffix(raw, []byte("\n")), []byte("\r"))
	switch {
	case len(raw) > maxSecretSize:
		return "", fmt.Errorf("secret file %s is too large to hold one secret", path)
	case len(line) == 0:
		return "", fmt.Errorf("secret file %s is empty", path)
	case bytes.HasPrefix(line, []byte("\ufeff")):
		return "", fmt.Errorf("secret file %s begins with a byte order mark; save it without", path)
	case bytes.ContainsFunc(line, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return "", fmt.Errorf("secret file %s holds more than one line of text", path)
	}
	return secret(line), nil
}
