package web

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"
)

// Access says how the port may be used: with which certificate, and with which password. It keeps a digest of the
// password alone. The zero value asks for neither, which is fit for this machine's own address only.
type Access struct {
	certificate *tls.Certificate
	digest      [sha256.Size]byte
	asks        bool // for a password
}

// NewAccess returns the access with a certificate, nil for none, and a password, empty for none.
func NewAccess(certificate *tls.Certificate, password string) Access {
	return Access{certificate: certificate, digest: sha256.Sum256([]byte(password)), asks: password != ""}
}

// HasTLS reports whether the port speaks TLS.
func (a Access) HasTLS() bool { return a.certificate != nil }

// IsGuarded reports whether other machines may reach the port: what goes over the wire is sealed, and a password is asked.
func (a Access) IsGuarded() bool { return a.HasTLS() && a.asks }

// Format keeps certificate and digest from being printed, whatever the verb.
func (Access) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, "[access]") }

const (
	refusalPause = time.Second // before a wrong password is refused
	maxRefusals  = 4           // that wait so at once: more than four guesses in a second are turned away unread
)

// AccessGuard stands before the pages. Its access may be exchanged while it works: a renewed password or certificate counts
// from the next request or connection on. Whether TLS is spoken and a password asked stays as it was at first.
type AccessGuard struct {
	pause    time.Duration
	refusals chan struct{}

	mu     sync.Mutex
	access Access // guarded by mu
}

// NewAccessGuard returns a guard.
func NewAccessGuard(a Access) *AccessGuard {
	return &AccessGuard{pause: refusalPause, refusals: make(chan struct{}, maxRefusals), access: a}
}

// SetAccess exchanges the access.
func (g *AccessGuard) SetAccess(a Access) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.access = a
}

func (g *AccessGuard) currentAccess() Access {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.access
}

// tlsConfig gives the newest certificate to each connection; nil where none is set.
func (g *AccessGuard) tlsConfig() *tls.Config {
	if !g.currentAccess().HasTLS() {
		return nil
	}
	return &tls.Config{
		MinVersion:     tls.VersionTLS12,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return g.currentAccess().certificate, nil },
	}
}

// passwordResult says what came of the password of a request.
type passwordResult uint8

const (
	noPassword    passwordResult = iota // a password is asked and was not given
	wrongPassword                       // it was given, and is not the one
	accessGranted
)

// checkPassword compares a request's password. Any user name is accepted, so that there is none to guess.
func (g *AccessGuard) checkPassword(r *http.Request) passwordResult {
	a := g.currentAccess()
	if !a.asks {
		return accessGranted
	}
	_, password, given := r.BasicAuth()
	sum := sha256.Sum256([]byte(password))
	switch {
	case !given && r.Header.Get("Authorization") == "":
		return noPassword
	case given && subtle.ConstantTimeCompare(sum[:], a.digest[:]) == 1:
		return accessGranted
	}
	return wrongPassword
}

// refuseRequest answers 401: at once to who gave no password, and after a pause to who gave a wrong one.
func (g *AccessGuard) refuseRequest(w http.ResponseWriter, r *http.Request, t passwordResult) {
	if t == wrongPassword {
		select {
		case g.refusals <- struct{}{}:
			defer func() { <-g.refusals }()
			waitFor(r.Context(), g.pause)
		default:
			http.Error(w, "too many wrong passwords at once", http.StatusTooManyRequests)
			return
		}
	}
	w.Header().Set("WWW-Authenticate", `Basic realm="vaultd", charset="UTF-8"`)
	http.Error(w, "the password is missing or wrong", http.StatusUnauthorized)
}

func waitFor(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}

// maxConnections bounds the open connections, so that a client cannot use up the descriptors that the work needs. A
// connection without a request is closed after headerTime.
const maxConnections = 128
