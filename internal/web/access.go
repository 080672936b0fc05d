package web

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"time"
)

// Access says how the port may be used: with which certificate, by which users, and through which proxy. The zero value asks nobody for
// anything, which is fit for this machine's own address only.
type Access struct {
	certificate *tls.Certificate
	users       userList
	proxy       proxy
}

// NewAccess returns the access with a certificate, nil for none, the users who may sign in, and a proxy.
func NewAccess(certificate *tls.Certificate, users []User, p Proxy) Access {
	return Access{certificate: certificate, users: newUserList(users), proxy: newProxy(p)}
}

// HasTLS reports whether the port speaks TLS.
func (a Access) HasTLS() bool { return a.certificate != nil }

// HasUsers reports whether there are users who may sign in.
func (a Access) HasUsers() bool { return len(a.users.byName) > 0 }

// HasProxy reports whether there is a proxy that says who asks.
func (a Access) HasProxy() bool { return a.proxy.userHeader != "" }

// AsksWho reports whether the port wants to know who asks. Else everybody who reaches it is as good as another.
func (a Access) AsksWho() bool { return a.HasUsers() || a.HasProxy() }

// IsGuarded reports whether other machines may reach the port: what goes over the wire is encrypted, and a password or the secret of a
// proxy is asked.
func (a Access) IsGuarded() bool { return a.HasTLS() && (a.HasUsers() || a.proxy.hasSecret) }

// Format keeps certificate and hashes from being printed, whatever the verb.
func (Access) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, "[access]") }

// AccessGuard stands before the pages. Its access may be exchanged while it works: a renewed file of users or certificate counts
// from the next request or connection on. Whether TLS is spoken and who is asked stays as it was at first.
//
// What it keeps is in memory alone: after a crash or a restart everybody signs in again.
type AccessGuard struct {
	attempts *attempts
	log      *slog.Logger
	places   places
	key      [sha256.Size]byte // of this process; nothing that is made with it outlives the process

	mu       sync.Mutex
	access   Access                 // guarded by mu
	version  int                    // of access; guarded by mu
	verified map[pairKey]time.Time  // names with passwords that were right, and until when that is remembered; guarded by mu
	sessions map[sessionKey]session // of users of access; guarded by mu

	failedSince time.Time // the minute in which failures are counted; guarded by mu
	failed      int       // failures of this minute; guarded by mu
}

// Format keeps what the guard knows from being printed, whatever the verb.
func (*AccessGuard) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, "[access guard]") }

// NewAccessGuard returns a guard. Who signs in goes to log, and that wrong passwords come, without the names and passwords that came.
func NewAccessGuard(a Access, log *slog.Logger) *AccessGuard {
	g := &AccessGuard{attempts: newAttempts(), places: newPlaces(), log: log, access: a, verified: map[pairKey]time.Time{}, sessions: map[sessionKey]session{}}
	rand.Read(g.key[:])
	return g
}

// SetAccess exchanges the access. It ends the sessions of users that changed or are gone.
func (g *AccessGuard) SetAccess(a Access) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for key, s := range g.sessions {
		if now, before := a.users.byName[s.user], g.access.users.byName[s.user]; now != before {
			delete(g.sessions, key)
		}
	}
	g.access = a
	g.version++
	clear(g.verified)
}

func (g *AccessGuard) currentAccess() Access {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.access
}

func (g *AccessGuard) currentVersion() (Access, int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.access, g.version
}

// digestOf returns a digest of parts under the key of this process. what keeps digests for different uses apart.
func (g *AccessGuard) digestOf(what string, parts ...string) [sha256.Size]byte {
	h := hmac.New(sha256.New, g.key[:])
	for _, part := range append([]string{what}, parts...) {
		fmt.Fprintf(h, "%d:%s", len(part), part) // the length keeps "a","bc" apart from "ab","c"
	}
	return [sha256.Size]byte(h.Sum(nil))
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

// A name with its password that was right is remembered for a while after each use, so that a client that asks every few seconds does
// not cost a check by bcrypt each time.
const (
	rememberVerified = 5 * time.Minute
	maxVerified      = 64
)

// pairKey is a digest of a name and its password under the key of this process.
type pairKey [sha256.Size]byte

// checkPassword checks a name and a password, in its turn.
func (g *AccessGuard) checkPassword(r *http.Request, name, password string) (User, passwordResult) {
	access, version := g.currentVersion()
	result := g.attempts.checkInTurn(sourceOf(r.RemoteAddr), func() bool { return access.users.verifyPassword(name, password) })
	if _, now := g.currentVersion(); result == accessGranted && now != version { // the users changed meanwhile
		return User{}, wrongPassword
	}
	if result != accessGranted {
		g.noteFailure(r)
		return User{}, result
	}
	return access.users.byName[name], accessGranted
}

// failuresLogged bounds the lines for failed sign-ins in a minute.
const failuresLogged = 30

// noteFailure logs a failed sign-in with its address, in the form that
// docs/security.md gives to programs that ban addresses. Failures beyond
// failuresLogged in a minute are counted, and logged with the next one after
// it. What was given as a name may be a password that somebody typed into the
// wrong field: it is not logged.
func (g *AccessGuard) noteFailure(r *http.Request) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if now := time.Now(); now.Sub(g.failedSince) >= time.Minute {
		if more := g.failed - failuresLogged; more > 0 {
			g.log.Warn("more sign-ins on the web port failed", "times", more)
		}
		g.failed, g.failedSince = 0, now
	}
	if g.failed++; g.failed <= failuresLogged {
		g.log.Warn("a sign-in on the web port failed", "address", addressOf(r.RemoteAddr))
	}
}

// checkBasic checks the credentials in the header of a request.
func (g *AccessGuard) checkBasic(r *http.Request) (User, passwordResult) {
	name, password, given := r.BasicAuth()
	switch {
	case !given && r.Header.Get("Authorization") == "":
		return User{}, noPassword
	case !given:
		return User{}, wrongPassword
	}
	pair := pairKey(g.digestOf("verified", name, password))
	if u, ok := g.recallVerified(pair, name); ok {
		return u, accessGranted
	}
	u, result := g.checkPassword(r, name, password)
	if result == accessGranted {
		g.rememberVerified(pair, u)
	}
	return u, result
}

// recallVerified returns the user of a pair that was right before.
func (g *AccessGuard) recallVerified(pair pairKey, name string) (User, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	until, known := g.verified[pair]
	if now := time.Now(); known && now.Before(until) {
		g.verified[pair] = now.Add(rememberVerified)
		return g.access.users.byName[name], true
	}
	return User{}, false
}

func (g *AccessGuard) rememberVerified(pair pairKey, u User) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.access.users.byName[u.Name] != u { // the users changed meanwhile
		return
	}
	now := time.Now()
	for other, until := range g.verified {
		if now.After(until) || len(g.verified) >= maxVerified { // one that is still good costs a check again
			delete(g.verified, other)
		}
	}
	g.verified[pair] = now.Add(rememberVerified)
}
