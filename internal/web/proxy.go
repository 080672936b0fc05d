package web

import (
	"crypto/sha256"
	"crypto/subtle"
	"net"
	"net/http"
	"strings"
	"unicode"
	"unicode/utf8"
)

// secretHeader is the header in which a proxy proves itself.
const secretHeader = "X-Vaultd-Secret"

// maxProxyName bounds a user's name, in characters.
const maxProxyName = 128

// Proxy is a proxy in front of the port that says who asks. The zero value is none. A request is the proxy's when it brings the secret, or
// when it comes over a Unix socket: Serve leaves it to its caller who may connect there.
type Proxy struct {
	UserHeader string            // in which it names the user
	Rights     map[string]Rights // by user name; "*" for all others
	Secret     string            // empty: the proxy asks over a socket
}

// proxy is a Proxy with the digest of its secret.
type proxy struct {
	userHeader string // empty: there is no proxy
	rights     map[string]Rights
	hasSecret  bool
	digest     [sha256.Size]byte
}

func newProxy(p Proxy) proxy {
	return proxy{p.UserHeader, p.Rights, p.Secret != "", sha256.Sum256([]byte(p.Secret))}
}

// proxied says what a proxy says of a request.
type proxied struct {
	isProxys bool   // the request comes through the proxy
	name     string // of the user; empty: the proxy named none
	rights   Rights
	refused  string // why the request gets nothing; empty: it is not refused
}

// examineProxy finds out whether a request comes through the proxy, and who asks. It takes the proxy's headers out of the request: what they
// say counts here alone. The name of a user from anybody but the proxy counts for nothing: an address alone proves nothing, because each
// program on this machine has the same one.
func (g *AccessGuard) examineProxy(r *http.Request) proxied {
	p := g.currentAccess().proxy
	secrets, names := r.Header.Values(secretHeader), r.Header.Values(p.userHeader)
	r.Header.Del(secretHeader)
	if p.userHeader == "" {
		return proxied{}
	}
	r.Header.Del(p.userHeader)
	switch {
	case isOverSocket(r):
	case !p.hasSecret || len(secrets) == 0:
		return proxied{}
	case len(secrets) > 1 || !p.isSecret(secrets[0]):
		g.noteFailure(r)
		return proxied{refused: "the secret of the proxy is wrong; compare what it sends in " + secretHeader + " with the file of http.access.proxy.secret_file"}
	}
	switch {
	case len(names) > 1:
		return proxied{isProxys: true, refused: "the proxy sends " + p.userHeader + " more than once; it must replace what a client sends in it"}
	case len(names) == 0 || names[0] == "":
		return proxied{isProxys: true}
	case !isUserName(names[0]):
		return proxied{isProxys: true, refused: "the user name in " + p.userHeader + " is none: it is too long, or has characters that nobody sees"}
	}
	rights, known := p.rights[names[0]]
	if !known {
		rights, known = p.rights["*"]
	}
	if !known {
		return proxied{isProxys: true, refused: "this user may not see the pages; http.access.proxy.rights in the configuration says who may"}
	}
	return proxied{isProxys: true, name: names[0], rights: rights}
}

func (p proxy) isSecret(given string) bool {
	sum := sha256.Sum256([]byte(given))
	return subtle.ConstantTimeCompare(sum[:], p.digest[:]) == 1
}

func isUserName(name string) bool {
	return name != "*" && utf8.ValidString(name) && utf8.RuneCountInString(name) <= maxProxyName && strings.TrimSpace(name) == name && !strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) })
}

// isOverSocket reports whether a request came over a Unix socket.
func isOverSocket(r *http.Request) bool {
	at, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	return ok && at.Network() == "unix"
}
