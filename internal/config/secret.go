package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"vaultd/internal/sanitize"
)

// Secret is a password or client secret. However it is printed, logged or encoded, the text is "[secret]". Only string(s)
// returns the secret; use it where a request is made and nowhere else.
type Secret string

const secretShown = "[secret]"

func (Secret) String() string               { return secretShown }
func (Secret) GoString() string             { return secretShown }
func (Secret) LogValue() slog.Value         { return slog.StringValue(secretShown) }
func (Secret) MarshalText() ([]byte, error) { return []byte(secretShown), nil }

// Format covers the verbs that would show the bytes, such as %x.
func (Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, secretShown) }

// SecretRightsError reports that others can read a secret file or replace it. The secret counts as known to
// others until it is changed.
type SecretRightsError struct {
	Path string
	Mode fs.FileMode
	Why  string // empty: the rights of the file itself are too wide
}

func (e *SecretRightsError) Error() string {
	if e.Why != "" {
		return fmt.Sprintf("secret file %s: %s", e.Path, e.Why)
	}
	return fmt.Sprintf("secret file %s has rights %#o; 0640 or stricter is needed", e.Path, e.Mode.Perm())
}

const (
	credentialPrefix = "credential:"
	maxSecretSize    = 8 << 10
	secretRights     = 0o640
)

// errNoCredentials reports that the configuration names a systemd credential and systemd passed none.
var errNoCredentials = errors.New("CREDENTIALS_DIRECTORY is not set")

// IsOfTheUnit reports whether an error says that a file is a credential of the
// unit, which systemd gives to the daemon alone. A command outside the unit
// cannot tell whether that file is good.
func IsOfTheUnit(err error) bool { return errors.Is(err, errNoCredentials) }

// isSecretRef reports whether a text has the form of a secret_file. Any other text may be a secret, written there by mistake.
func isSecretRef(s string) bool {
	return strings.HasPrefix(s, "/") || strings.HasPrefix(s, credentialPrefix)
}

// ReadSecret reads what secret_file refers to: a file, or credential:NAME in $CREDENTIALS_DIRECTORY. It must be as
// private as readPrivate requires and hold one line of text; the final line break is not part of the secret. Each call reads the
// file again, so a renewed secret counts at the next sign-in.
func ReadSecret(ref string, env Env) (Secret, error) {
	raw, err := readPrivate(ref, env, maxSecretSize)
	if err != nil {
		return "", err
	}
	return trimSecret(ref, raw)
}

// readPrivate reads a private file of at most limit bytes. It must be a regular file and no link, with rights 0640 or stricter, owned by
// root or this user, in a folder where nobody else can replace it (else *SecretRightsError).
func readPrivate(ref string, env Env, limit int64) ([]byte, error) {
	path, err := secretPath(ref, env)
	if err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0) // a FIFO must not block the start
	switch {
	case errors.Is(err, syscall.ELOOP):
		return nil, fmt.Errorf("secret file %s is a link; name the file itself", path)
	case err != nil:
		return nil, fmt.Errorf("open secret file: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, fmt.Errorf("look at secret file: %w", err)
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("secret file %s is not a regular file", path)
	case info.Mode().Perm()&^secretRights != 0:
		return nil, &SecretRightsError{Path: path, Mode: info.Mode()}
	case !isOwnedByUs(info):
		return nil, &SecretRightsError{Path: path, Mode: info.Mode(), Why: fmt.Sprintf("it belongs to %s; it must be root's or this user's", userName(statOwner(info).Uid))}
	}
	if err := checkSecretFolders(path); err != nil {
		return nil, err
	}
	raw, err := io.ReadAll(io.LimitReader(f, limit+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read secret file: %w", err)
	case int64(len(raw)) > limit:
		return nil, fmt.Errorf("secret file %s is larger than %d bytes", path, limit)
	}
	return raw, nil
}

func statOwner(info fs.FileInfo) *syscall.Stat_t {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		panic("a file of Linux without its numbers")
	}
	return st
}

// isOwnedByUs reports whether root or this user owns a file. The owner of a file can change it.
func isOwnedByUs(info fs.FileInfo) bool {
	uid := statOwner(info).Uid
	return uid == 0 || int(uid) == os.Geteuid()
}

// checkSecretFolders checks all folders above the file at path, as the path is written and after its links are resolved: nobody else may
// be able to replace the file.
func checkSecretFolders(path string) error {
	real, err := filepath.EvalSymlinks(filepath.Dir(path))
	if err != nil {
		return fmt.Errorf("look at the folder of secret file %s: %w", path, err)
	}
	for _, dir := range []string{filepath.Dir(path), real} {
		info, why, err := describeReplacers(dir, nil)
		switch {
		case err != nil:
			return fmt.Errorf("look at the folder of secret file %s: %w", path, err)
		case why != "":
			return &SecretRightsError{Path: path, Mode: info.Mode(), Why: why}
		}
	}
	return nil
}

// describeReplacers returns why others could put another file in the place of
// one in a folder, and the folder whose rights let them; empty: they could not.
func describeReplacers(dir string, clerks []uint32) (fs.FileInfo, string, error) {
	for ; ; dir = filepath.Dir(dir) {
		info, err := os.Stat(dir)
		if err != nil {
			return nil, "", err
		}
		if why := describeForeignWriters(info, clerks); why != "" {
			return info, fmt.Sprintf("others could put another file in its place, because the folder %s %s", dir, why), nil
		}
		if dir == "/" || dir == "." {
			return info, "", nil
		}
	}
}

// describeForeignWriters says why others may change a file, or rename files in
// a folder; empty: they may not. The sticky bit of a folder prevents it. Our
// own group counts as ours, unless it is one of those of the clerks.
func describeForeignWriters(at fs.FileInfo, clerks []uint32) string {
	st := statOwner(at)
	isOurs := st.Gid == 0 || int(st.Gid) == os.Getegid() && !slices.Contains(clerks, st.Gid)
	switch mode := at.Mode(); {
	case !isOwnedByUs(at):
		return "belongs to " + userName(st.Uid)
	case mode.IsDir() && mode&fs.ModeSticky != 0:
		return ""
	case mode.Perm()&0o002 != 0, mode.Perm()&0o020 != 0 && !isOurs:
		return fmt.Sprintf("has rights %#o, with which others may write it", mode.Perm())
	}
	return ""
}

func secretPath(ref string, env Env) (string, error) {
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

func trimSecret(path string, raw []byte) (Secret, error) {
	line := bytes.TrimSuffix(bytes.TrimSuffix(raw, []byte("\n")), []byte("\r"))
	switch {
	case len(line) == 0:
		return "", fmt.Errorf("secret file %s is empty", path)
	case bytes.HasPrefix(line, []byte("\ufeff")):
		return "", fmt.Errorf("secret file %s begins with a byte order mark; save it without", path)
	case bytes.ContainsFunc(line, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return "", fmt.Errorf("secret file %s holds more than one line of text", path)
	}
	return Secret(line), nil
}

func groupName(gid uint32) string {
	id := strconv.FormatUint(uint64(gid), 10)
	if g, err := user.LookupGroupId(id); err == nil && g.Name != "" {
		return sanitize.Text(g.Name)
	}
	return "gid " + id
}

// userName names a user of this machine.
func userName(uid uint32) string {
	id := strconv.FormatUint(uint64(uid), 10)
	u, err := user.LookupId(id)
	if err != nil || u.Username == "" {
		return "uid " + id
	}
	return sanitize.Text(u.Username) + " (uid " + id + ")"
}
