package web

import (
	"net"
	"sync"
	"time"
)

const (
	refusalPause   = time.Second      // before a wrong password is refused
	maxAttempts    = 16               // passwords that wait to be checked, or to be refused, at once
	maxPerSource   = 4                // of them, from one address
	maxSources     = 4096             // addresses whose failures are remembered
	firstInterval  = time.Second      // between an attempt from an address that failed once and the next one
	maxInterval    = 4 * time.Second  // the same, after several failures
	maxTurn        = 15 * time.Second // how long an attempt waits for its turn
	forgetAttempts = 5 * time.Minute  // after the last failure of an address
	restFactor     = 3                // after a wrong password no other is checked for so many times as long as its check took
)

// attempts orders the checks of passwords. One is checked at a time, because a
// check costs a processor for a quarter of a second, and after a wrong one
// there is a rest: a flood of wrong ones takes a quarter of one processor from
// the work, and passwords are guessed slowly, from however many addresses.
//
// Each limit is for an address and none for a name, so that guesses for a name
// delay only the address that guesses. After a failure the attempts of an
// address take turns, further and further apart, up to maxInterval. When all
// places are taken, an attempt gets the place of an address with more failures
// and attempts than its own, and the addresses with the fewest failures are
// checked first. Guesses from a few addresses therefore delay a sign-in from
// another one by seconds.
type attempts struct {
	pause time.Duration

	mu       sync.Mutex
	checking bool               // a password is being checked, or the rest after it lasts; guarded by mu
	arrived  uint64             // attempts so far; guarded by mu
	waiting  map[*attempt]bool  // guarded by mu
	sources  map[string]failure // addresses that failed of late; guarded by mu
	swept    time.Time          // when sources was last swept; guarded by mu
}

// attempt is one password that waits for its check or for its refusal. Its
// fields are guarded by attempts.mu.
type attempt struct {
	source  string
	order   uint64
	turn    time.Time
	isReady bool      // its turn has come, and it waits until no other is checked
	isOn    bool      // it is checked, or was
	decided chan bool // true: it is checked now; false: it lost its place
}

// failure says how often an address failed or lost a place, when it did last,
// and when its next attempt has its turn.
type failure struct {
	count      int
	last, next time.Time
}

func newAttempts() *attempts {
	return &attempts{pause: refusalPause, waiting: map[*attempt]bool{}, sources: map[string]failure{}}
}

// passwordResult says what came of the password of a request.
type passwordResult uint8

const (
	noPassword      passwordResult = iota // a password is asked and was not given
	wrongPassword                         // it was given, and is not the one
	tooManyAttempts                       // it was not looked at
	accessGranted
)

// checkInTurn waits for the turn of an attempt and calls verify. A "no" comes
// after a pause. When the client goes away, the attempt keeps its place until
// the end: else a client that connects and leaves at once could take the turns
// of others. An attempt that is refused unseen waits too, so that a flood is no
// faster than its connections allow.
func (a *attempts) checkInTurn(source string, verify func() bool) passwordResult {
	at := a.takePlace(source, time.Now())
	if at == nil || !a.awaitTurn(at) {
		<-time.After(a.pause)
		return tooManyAttempts
	}
	begin := time.Now()
	good := verify()
	if !good {
		<-time.After(restFactor * time.Since(begin))
	}
	a.endCheck(at, good)
	if good {
		return accessGranted
	}
	<-time.After(a.pause)
	a.leave(at)
	return wrongPassword
}

// takePlace gives an attempt its place and its turn; nil: it has to be refused
// unseen.
func (a *attempts) takePlace(source string, now time.Time) *attempt {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.sweep(now)
	f, failed := a.sources[source]
	turn := now
	if f.next.After(now) {
		turn = f.next
	}
	if a.countFrom(source) >= maxPerSource || turn.Sub(now) > maxTurn {
		return nil
	}
	if len(a.waiting) >= maxAttempts && !a.displace(a.burdenOf(source), now) {
		return nil
	}
	a.arrived++
	at := &attempt{source: source, order: a.arrived, turn: turn, decided: make(chan bool, 1)}
	a.waiting[at] = true
	if failed {
		f.next = turn.Add(min(firstInterval<<min(f.count-1, 8), maxInterval))
		a.sources[source] = f
	}
	return at
}

// awaitTurn waits until the attempt is the one that is checked; false: it lost
// its place.
func (a *attempts) awaitTurn(at *attempt) bool {
	select {
	case <-time.After(time.Until(at.turn)):
	case <-at.decided:
		return false
	}
	a.mu.Lock()
	at.isReady = a.waiting[at]
	a.checkNext()
	a.mu.Unlock()
	return <-at.decided
}

// checkNext chooses which attempt is checked next, if none is: of those whose
// turn has come one from the address with the fewest failures. mu is held.
func (a *attempts) checkNext() {
	if a.checking {
		return
	}
	var next *attempt
	var fewest int
	for at := range a.waiting {
		if n := a.sources[at.source].count; at.isReady && (next == nil || n < fewest || n == fewest && at.order < next.order) {
			next, fewest = at, n
		}
	}
	if next != nil {
		a.checking, next.isReady, next.isOn = true, false, true
		next.decided <- true
	}
}

// endCheck records the result of a check and lets the next one begin. A wrong
// password keeps its place until its refusal is given.
func (a *attempts) endCheck(at *attempt, good bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.checking = false
	if good {
		delete(a.waiting, at)
		delete(a.sources, at.source)
	} else {
		a.noteFailed(at.source, time.Now())
	}
	a.checkNext()
}

func (a *attempts) leave(at *attempt) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.waiting, at)
}

func (a *attempts) countFrom(source string) (n int) {
	for at := range a.waiting {
		if at.source == source {
			n++
		}
	}
	return n
}

// burdenOf counts the failures of an address and its attempts that wait. An
// address that cannot be remembered counts as one that failed.
func (a *attempts) burdenOf(source string) int {
	f, known := a.sources[source]
	if !known && len(a.sources) >= maxSources {
		f.count = 1
	}
	return f.count + a.countFrom(source)
}

// displace takes the place of the youngest attempt of the address with the
// greatest burden, if that is greater than the burden of the newcomer.
func (a *attempts) displace(burden int, now time.Time) bool {
	var last *attempt
	for at := range a.waiting {
		if n := a.burdenOf(at.source); !at.isOn && (n > burden || last != nil && n == burden && at.order > last.order) {
			last, burden = at, n
		}
	}
	if last == nil {
		return false
	}
	delete(a.waiting, last)
	a.noteFailed(last.source, now)
	last.decided <- false
	return true
}

func (a *attempts) noteFailed(source string, now time.Time) {
	f, known := a.sources[source]
	if !known && len(a.sources) >= maxSources {
		return
	}
	f.count++
	f.last = now
	if f.next.Before(now) {
		f.next = now.Add(firstInterval)
	}
	a.sources[source] = f
}

// sweep forgets addresses that have not failed for a while.
func (a *attempts) sweep(now time.Time) {
	if now.Sub(a.swept) < forgetAttempts {
		return
	}
	a.swept = now
	for source, f := range a.sources {
		if now.Sub(f.last) > forgetAttempts {
			delete(a.sources, source)
		}
	}
}

// addressOf gives the address of a peer, without its port.
func addressOf(peer string) string {
	if host, _, err := net.SplitHostPort(peer); err == nil && net.ParseIP(host) != nil {
		return host
	}
	return "socket"
}

// sourceOf gives the address of a peer, as far as one machine cannot have many:
// all loopback addresses are one, and so are the addresses of one network of
// IPv6.
func sourceOf(peer string) string {
	address := addressOf(peer)
	switch ip := net.ParseIP(address); {
	case ip == nil:
		return address
	case ip.IsLoopback():
		return "loopback"
	case ip.To4() == nil:
		return ip.Mask(net.CIDRMask(64, 128)).String()
	default:
		return ip.String()
	}
}
