package web

import (
	"crypto/sha256"
	"net"
	"net/http"
	"sync"
	"time"
)

const (
	refusalPause   = time.Second      // before a wrong password is refused
	maxAttempts    = 16               // passwords that wait to be checked, or to be refused, at once
	maxPerSource   = 4                // of them, from one address
	firstInterval  = time.Second      // between the first two attempts for one name
	maxInterval    = 4 * time.Second  // between two attempts for one name, after several
	maxTurn        = 15 * time.Second // how long an attempt waits for its turn
	forgetAttempts = 5 * time.Minute  // after the last one for a name
	restFactor     = 3                // after a wrong password no other is checked for so many times as long as its check took
)

// attempts orders the checks of passwords. One is checked at a time, because a check costs a processor for a quarter of a second, and after
// a wrong one there is a rest: a flood of wrong ones takes a quarter of one processor from the work, and no more.
// Attempts for one name take turns, whatever address they come from: the first at once, the others further and further apart, up to
// maxInterval. So a name is guessed slowly, and who knows the password waits for seconds, never for minutes: nothing is locked.
// One address may have a few attempts at once and one for each name, so that it cannot take the turns of all others.
type attempts struct {
	pause    time.Duration
	checking chan struct{}

	mu      sync.Mutex
	waiting map[attempt]bool      // guarded by mu
	names   map[nameKey]nameTurns // guarded by mu
	swept   time.Time             // when names was last swept; guarded by mu
}

// attempt is one password that is being checked.
type attempt struct {
	source string
	name   nameKey
}

// nameKey is a digest of a name as it was given. The name itself is not kept: people type passwords there.
type nameKey [sha256.Size]byte

// nameTurns says when the next attempt for a name has its turn.
type nameTurns struct {
	tries uint
	next  time.Time
}

func newAttempts() *attempts {
	return &attempts{pause: refusalPause, checking: make(chan struct{}, 1), waiting: map[attempt]bool{}, names: map[nameKey]nameTurns{}}
}

// passwordResult says what came of the password of a request.
type passwordResult uint8

const (
	noPassword      passwordResult = iota // a password is asked and was not given
	wrongPassword                         // it was given, and is not the one
	tooManyAttempts                       // it was not looked at
	accessGranted
)

// checkInTurn waits for the turn of an attempt and calls verify. A "no" comes after a pause. When the client goes away, the attempt
// keeps its place until the end: else who connects and leaves at once could push the turns of others away. What is refused unseen waits too,
// so that a flood is no faster than its connections allow.
func (a *attempts) checkInTurn(source, name string, verify func() bool) passwordResult {
	key := attempt{source, sha256.Sum256([]byte(name))}
	turn, ok := a.takeTurn(key, time.Now())
	if !ok {
		<-time.After(a.pause)
		return tooManyAttempts
	}
	defer a.leave(key)
	<-time.After(time.Until(turn))
	a.checking <- struct{}{}
	begin := time.Now()
	good := verify()
	if !good {
		<-time.After(restFactor * time.Since(begin))
	}
	<-a.checking
	if good {
		a.forgetName(key.name)
		return accessGranted
	}
	<-time.After(a.pause)
	return wrongPassword
}

// takeTurn gives an attempt its turn; false: it has to be refused unseen.
func (a *attempts) takeTurn(key attempt, now time.Time) (turn time.Time, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.sweepNames(now)
	sameSource := 0
	for other := range a.waiting {
		if other.source == key.source {
			sameSource++
		}
	}
	turns := a.names[key.name]
	turn = now
	if turns.next.After(now) {
		turn = turns.next
	}
	if a.waiting[key] || sameSource >= maxPerSource || len(a.waiting) >= maxAttempts || turn.Sub(now) > maxTurn {
		return time.Time{}, false
	}
	a.waiting[key] = true
	a.names[key.name] = nameTurns{tries: turns.tries + 1, next: turn.Add(min(firstInterval<<min(turns.tries, 8), maxInterval))}
	return turn, true
}

func (a *attempts) leave(key attempt) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.waiting, key)
}

func (a *attempts) forgetName(name nameKey) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.names, name)
}

// sweepNames forgets names that nobody tried for a while. Each attempt takes at least the pause, so there are never many names.
func (a *attempts) sweepNames(now time.Time) {
	if now.Sub(a.swept) < forgetAttempts {
		return
	}
	a.swept = now
	for name, turns := range a.names {
		if now.Sub(turns.next) > forgetAttempts {
			delete(a.names, name)
		}
	}
}

// sourceOf gives the address that a request comes from, as far as one machine cannot have many: all loopback addresses are one, and so
// are the addresses of one network of IPv6.
func sourceOf(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	ip := net.ParseIP(host)
	switch {
	case err != nil || ip == nil:
		return "socket"
	case ip.IsLoopback():
		return "loopback"
	case ip.To4() == nil:
		return ip.Mask(net.CIDRMask(64, 128)).String()
	}
	return ip.String()
}
