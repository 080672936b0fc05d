package config

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// PageProxy is a proxy in front of the web port that says who asks. It proves itself by a secret, or by asking over a socket.
type PageProxy struct {
	UserHeader string              `json:"user_header"`
	Rights     map[string][]string `json:"rights"`      // by user name; "*" for all others that the proxy lets in
	SecretFile string              `json:"secret_file"` // for ReadSecret; empty: the proxy uses the socket
	Socket     string              `json:"socket"`      // path; empty: the proxy uses the port and the secret
	Group      string              `json:"group"`       // whose members may use the socket
}

// IsUsed reports whether there is a proxy.
func (p PageProxy) IsUsed() bool { return p.SecretFile != "" || p.Socket != "" }

// UserRights returns the rights by user name. The rules of the configuration found them good.
func (p PageProxy) UserRights() map[string]PageRights {
	rights := map[string]PageRights{}
	for name, words := range p.Rights {
		rights[name], _ = parseWords(words)
	}
	return rights
}

const (
	minProxySecret = 24  // characters: it is compared without a pause
	maxProxyName   = 128 // characters
	maxSocketPath  = 107 // the kernel's limit
)

// ownHeaders have a meaning already, so that no user name can stand in them.
var ownHeaders = []string{"Authorization", "Connection", "Content-Length", "Content-Type", "Cookie", "Host", "Origin", "Referer", "Transfer-Encoding", "X-Vaultd-Secret"}

// checkPageProxy holds the keys of the proxy against each other.
func (c *Config) checkPageProxy() {
	p, at := c.HTTP.Access.Proxy, func(key string) location { return locationOf("http.access.proxy." + key) }
	const example = `write rights: {"*": [read]}, or the names of users with their rights`
	isOwn := slices.ContainsFunc(ownHeaders, func(h string) bool { return strings.EqualFold(h, p.UserHeader) })
	c.applyRules(
		rule{isOwn, at("user_header"), "has another meaning", "write the header in which the proxy names the user, such as Remote-User", nil},
		rule{p.SecretFile != "" && p.Socket != "", at("socket"), "is set, and secret_file too", "keep one of them: the proxy proves itself in one way", []location{at("secret_file")}},
		rule{p.Socket != "" && p.Group == "", at("group"), "is missing, and socket is there", "write the group of the proxy's user, such as www-data", []location{at("socket")}},
		rule{p.Socket == "" && p.Group != "", at("group"), "is used with socket only", "remove group, or write socket", []location{at("socket")}},
		rule{len(p.Socket) > maxSocketPath, at("socket"), fmt.Sprintf("is longer than %d bytes", maxSocketPath), "write a shorter path, such as /run/vaultd/pages.sock", nil},
		rule{p.IsUsed() && len(p.Rights) == 0, at("rights"), "is empty, so that the proxy lets nobody in", example, []location{at("secret_file"), at("socket")}},
		rule{!p.IsUsed() && len(p.Rights) > 0, at("rights"), "is used with a proxy only", "write secret_file or socket, or remove rights", []location{at("secret_file"), at("socket")}})
	for _, name := range slices.Sorted(maps.Keys(p.Rights)) {
		_, err := parseWords(p.Rights[name])
		c.applyRules(
			rule{!isProxyName(name), at("rights"), "names a user who cannot be one", "write the name as the proxy gives it: 1 to 128 characters, without blanks around it and characters that nobody sees", nil},
			rule{err != nil, at("rights").child(name), "has fetch without read", "fetch needs read too: write [read, fetch]", nil})
	}
}

func isProxyName(name string) bool {
	return name != "" && utf8.ValidString(name) && utf8.RuneCountInString(name) <= maxProxyName && strings.TrimSpace(name) == name && !strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) })
}

// readProxySecret reads the secret that the proxy sends.
func (p PageProxy) readProxySecret(env Env) (Secret, error) {
	secret, err := ReadSecret(p.SecretFile, env)
	if err != nil {
		return "", err
	}
	if n := utf8.RuneCountInString(string(secret)); n < minProxySecret {
		return "", fmt.Errorf("the secret has %d characters; at least %d are needed, such as those of: openssl rand -base64 24", n, minProxySecret)
	}
	return secret, nil
}

// CheckSocketFolder says why others could put a socket of their own in the place of one at path: then the proxy would hand its users to
// them. A folder that is not there yet is fine here; whoever makes the socket needs it.
func CheckSocketFolder(path string) error {
	dir := filepath.Dir(path)
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("look at the folder of the socket: %w", err)
	case !info.IsDir():
		return fmt.Errorf("%s is not a folder", dir)
	}
	err = checkSecretFolders(path)
	if rights, ok := errors.AsType[*SecretRightsError](err); ok {
		return errors.New(rights.Why)
	}
	if err == nil && info.Mode()&fs.ModeSticky != 0 && info.Mode().Perm()&0o022 != 0 {
		err = fmt.Errorf("others could put another socket in its place, because the folder %s has rights %#o", dir, info.Mode().Perm())
	}
	return err
}
