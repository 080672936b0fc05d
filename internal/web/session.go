package web

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"time"
)

const (
	sessionIdle        = 30 * time.Minute // without a request of its person
	sessionLife        = 12 * time.Hour   // at most
	maxSessionsPerUser = 16
)

// sessionKey is the digest of a session's id. The id itself is known to the browser alone.
type sessionKey [sha256.Size]byte

// session is a person who signed in.
type session struct {
	user        string
	begun, used time.Time
}

func (s session) isOver(now time.Time) bool {
	return now.Sub(s.used) >= sessionIdle || now.Sub(s.begun) >= sessionLife
}

// beginSession makes a session with a new id for u; false: u changed or is gone since the password was checked.
func (g *AccessGuard) beginSession(u User) (id string, ok bool) {
	var random [32]byte
	rand.Read(random[:])
	id = base64.RawURLEncoding.EncodeToString(random[:])
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.access.users.byName[u.Name] != u {
		return "", false
	}
	now := time.Now()
	count, oldest := 0, sessionKey{}
	for key, s := range g.sessions {
		switch {
		case s.isOver(now):
			delete(g.sessions, key)
		case s.user == u.Name:
			if count++; count == 1 || s.used.Before(g.sessions[oldest].used) {
				oldest = key
			}
		}
	}
	if count >= maxSessionsPerUser {
		delete(g.sessions, oldest)
	}
	g.sessions[sha256.Sum256([]byte(id))] = session{u.Name, now, now}
	return id, true
}

// findSession returns who has the session with this id. renews says that a person asks: else the session does not live longer for it.
func (g *AccessGuard) findSession(id string, renews bool) (u User, found bool) {
	key, now := sessionKey(sha256.Sum256([]byte(id))), time.Now()
	g.mu.Lock()
	defer g.mu.Unlock()
	s, found := g.sessions[key]
	if !found {
		return User{}, false
	}
	if s.isOver(now) {
		delete(g.sessions, key)
		return User{}, false
	}
	if renews {
		s.used = now
		g.sessions[key] = s
	}
	return g.access.users.byName[s.user], true
}

func (g *AccessGuard) endSession(id string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.sessions, sha256.Sum256([]byte(id)))
}

// cookieName is the name of the cookie that holds the id of a session. With TLS, browsers take a cookie of this prefix from this host
// alone.
func cookieName(r *http.Request) string {
	if r.TLS != nil {
		return "__Host-vaultd"
	}
	return "vaultd"
}

// sessionID returns the id that a request brings. Of several nobody can tell which one is ours: another program on this host may set
// cookies too. Then there is none.
func sessionID(r *http.Request) string {
	if all := r.CookiesNamed(cookieName(r)); len(all) == 1 {
		return all[0].Value
	}
	return ""
}

// setSessionCookie hands an id to the browser; the empty one takes it away.
func setSessionCookie(w http.ResponseWriter, r *http.Request, id string) {
	c := &http.Cookie{Name: cookieName(r), Value: id, Path: "/", HttpOnly: true, Secure: r.TLS != nil, SameSite: http.SameSiteStrictMode}
	if id == "" {
		c.MaxAge = -1
	}
	http.SetCookie(w, c)
}
