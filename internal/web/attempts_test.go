package web

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/crypto/bcrypt"
	"golang.org/x/sys/unix"

	"vaultd/internal/test/kit"
)

// scrape asks for the metrics as a program does.
func scrape(h http.Handler, from, user, password string) int {
	r := httptest.NewRequest(http.MethodGet, "/metrics", nil)
	r.RemoteAddr = from + ":1234"
	r.SetBasicAuth(user, password)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Code
}

// An address guesses at most once in four seconds, over however many
// connections. The right password from another address is checked at once
// meanwhile.
func TestAttempts_I21_GuessingIsSlowAndKeepsNobodyOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		guard := NewAccessGuard(NewAccess(nil, scraper(t, canary), Proxy{}), silent)
		h := Handler(guard, sample, nil)
		begin, guesses := time.Now(), map[int]int{}
		var mu sync.Mutex
		var storm sync.WaitGroup
		for source := range 3 {
			for range 10 { // connections of one address
				storm.Go(func() {
					for time.Since(begin) < 10*time.Minute {
						code := scrape(h, fmt.Sprintf("192.0.2.%d", source), "prometheus", "wrong")
						mu.Lock()
						guesses[code]++
						mu.Unlock()
						time.Sleep(500 * time.Millisecond)
					}
				})
			}
		}
		time.Sleep(5 * time.Minute)
		asked := time.Now()
		if code := scrape(h, "192.0.2.200", "prometheus", canary); code != http.StatusOK || time.Since(asked) > 3*time.Second {
			t.Errorf("the right password in the storm: %d after %v, want %d within 3 s", code, time.Since(asked), http.StatusOK)
		}
		storm.Wait()
		if n := guesses[http.StatusUnauthorized]; n > 3*(10*60/4+10) || n < 50 || guesses[http.StatusOK] > 0 || guesses[http.StatusTooManyRequests] == 0 {
			t.Errorf("answers in ten minutes = %v, want 50 to %d guesses that were checked", guesses, 3*(10*60/4+10))
		}
	})
}

// Guesses from one address hold back nobody at another one, and a client that
// was let in before is not checked again.
func TestAttempts_I21_OtherAddressesAndKnownClientsGoOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := Handler(NewAccessGuard(NewAccess(nil, append(scraper(t, canary), userWith(t, "second", canary, Rights{Metrics: true})), Proxy{}), silent), sample, nil)
		code := scrape(h, "192.0.2.9", "prometheus", canary)
		kit.Need(t, code == http.StatusOK, "code = %v, want code = http.StatusOK", code)
		begin := time.Now()
		var storm sync.WaitGroup
		for i := range 100 {
			storm.Go(func() {
				for n := 0; time.Since(begin) < time.Minute; n++ {
					scrape(h, "127.0.0."+fmt.Sprint(i+1), fmt.Sprintf("name-%d-%d", i, n), "wrong") // all of this machine
					time.Sleep(200 * time.Millisecond)
				}
			})
		}
		for range 4 {
			time.Sleep(14 * time.Second)
			asked := time.Now()
			code := scrape(h, "192.0.2.9", "prometheus", canary)
			kit.Check(t, code == http.StatusOK && time.Since(asked) <= 0, "a known client: %d after %v", code, time.Since(asked))
			kit.Want(t, "a known pair from the busy address", scrape(h, "127.0.0.77", "prometheus", canary), http.StatusOK)
		}
		kit.Want(t, "another name", scrape(h, "192.0.2.9", "second", canary), http.StatusOK)
		storm.Wait()
	})
}

// However many addresses and names come, what is kept of them stays small.
func TestAttempts_I21_NothingGrows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAttempts()
		var storm sync.WaitGroup
		for i := range 20_000 {
			storm.Go(func() {
				a.checkInTurn(fmt.Sprint("source ", i%5000), func() bool { return false })
			})
			if i%10 == 0 {
				time.Sleep(100 * time.Millisecond)
			}
			a.mu.Lock()
			if waiting, sources := len(a.waiting), len(a.sources); waiting > maxAttempts || sources > maxSources {
				t.Errorf("%d wait, %d addresses are kept, want at most %d and %d", waiting, sources, maxAttempts, maxSources)
			}
			a.mu.Unlock()
		}
		storm.Wait()
		time.Sleep(2 * forgetAttempts)
		kit.Check(t, a.checkInTurn("s", func() bool { return true }) == accessGranted && len(a.waiting)+len(a.sources) == 0,
			"kept are %d attempts and %d addresses, want none", len(a.waiting), len(a.sources))
	})
}

// Four addresses take all places with wrong passwords. A sign-in from another
// address gets one of them and is checked within seconds.
func TestAttempts_I21_FewAddressesKeepNobodyOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAttempts()
		const check = 250 * time.Millisecond
		wrong := func() bool { time.Sleep(check); return false }
		right := func() bool { time.Sleep(check); return true }
		begin := time.Now()
		var storm sync.WaitGroup
		for source := range 4 {
			for range 8 {
				storm.Go(func() {
					for time.Since(begin) < 5*time.Minute {
						a.checkInTurn(fmt.Sprint("attacker ", source), wrong)
					}
				})
			}
		}
		for i := range 20 {
			time.Sleep(10 * time.Second)
			asked := time.Now()
			got := a.checkInTurn(fmt.Sprint("desk ", i), right)
			a.mu.Lock()
			n := a.countFrom("attacker 0")
			kit.Check(t, n <= maxPerSource, "%d attempts of one address wait, want at most %d", n, maxPerSource)
			a.mu.Unlock()
			took := time.Since(asked)
			kit.Check(t, got == accessGranted && took <= 3*time.Second, "sign-in %d = %v after %v, want %v within 3 s", i, got, took, accessGranted)
		}
		// A typing mistake of the same address is no reason to keep it out.
		kit.Want(t, "a wrong password of the desk", a.checkInTurn("desk", wrong), wrongPassword)
		kit.Want(t, "the right one after it", a.checkInTurn("desk", right), accessGranted)
		storm.Wait()
	})
}

// A flood of wrong passwords from everywhere takes a quarter of one processor, and its refusals are few.
func TestAttempts_I21_FloodLeavesTheProcessor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAttempts()
		const check, connections = 200 * time.Millisecond, 100
		last := 10 * time.Minute
		if kit.Race { // the detector ends a process in which a goroutine syncs too often
			last = 2 * time.Minute
		}
		begin, busy := time.Now(), time.Duration(0)
		var mu sync.Mutex
		results := map[passwordResult]int{}
		var flood sync.WaitGroup
		for i := range connections {
			flood.Go(func() {
				for time.Since(begin) < last {
					r := a.checkInTurn(fmt.Sprint("source ", i), func() bool {
						time.Sleep(check)
						busy += check
						return false
					})
					mu.Lock()
					results[r]++
					mu.Unlock()
				}
			})
		}
		flood.Wait()
		share := float64(busy) / float64(time.Since(begin))
		kit.Check(t, share <= 0.26 && share >= 0.2, "a share of %.2f of a processor", share)
		if n := results[tooManyAttempts]; n == 0 || n > connections*int(last/refusalPause) {
			t.Errorf("results = %v, want n other than 0, n <= %v", results, connections*int(last/refusalPause))
		}
	})
}

// One is checked at a time, whoever asks.
func TestAttempts_I21_OneCheckAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAttempts()
		running, most := 0, 0
		var all sync.WaitGroup
		for i := range maxAttempts {
			all.Go(func() {
				a.checkInTurn(fmt.Sprint(i), func() bool {
					running++ // not guarded: the race detector would tell of two at once
					most = max(most, running)
					time.Sleep(time.Second)
					running--
					return i%2 == 0
				})
			})
		}
		all.Wait()
		kit.Check(t, most == 1, "%v at once", most)
	})
}

// Loopback addresses, and the addresses of one network of IPv6, are one source.
func TestSourceOf(t *testing.T) {
	for address, want := range map[string]string{
		"127.0.0.1:5": "loopback", "127.9.8.7:5": "loopback", "[::1]:5": "loopback", "[::ffff:127.0.0.1]:5": "loopback", "192.0.2.7:5": "192.0.2.7", "[::ffff:192.0.2.7]:5": "192.0.2.7",
		"[2001:db8:1:2:3:4:5:6]:5": "2001:db8:1:2::", "[2001:db8:1:2::9]:80": "2001:db8:1:2::", "@": "socket", "": "socket",
	} {
		kit.Want(t, address, sourceOf(address), want)
	}
}

// An unknown name, and a hash that is cheaper than others, cost as many rounds as the dearest hash: the time tells no names.
func TestVerifyPassword_I7_TimeTellsNoNames(t *testing.T) {
	hash := func(cost int) string {
		h := kit.Value(bcrypt.GenerateFromPassword([]byte(canary), cost))(t)
		return string(h)
	}
	users := newUserList([]User{{Name: "cheap", Hash: hash(4)}, {Name: "middle", Hash: hash(7)}, {Name: "dear", Hash: hash(10)}})
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	took := map[string]time.Duration{} // of a processor, however busy the machine is
	for _, name := range []string{"cheap", "middle", "dear", "unknown", ""} {
		hash, fillers := users.hashesFor(name)
		rounds := 1 << costOf(hash)
		for _, filler := range fillers {
			rounds += 1 << costOf(filler)
		}
		kit.Want(t, name+": rounds", rounds, 1<<10)
		took[name] = time.Hour
		for range 3 {
			begin := threadTime(t)
			kit.Check(t, !users.verifyPassword(name, "wrong"), "%v with a wrong password", name)
			took[name] = min(took[name], threadTime(t)-begin)
		}
	}
	for name, d := range took {
		kit.Check(t, d >= took["dear"]/4, "a wrong password of %q took %v, of the dearest %v", name, d, took["dear"])
	}
	for _, name := range []string{"cheap", "middle", "dear"} {
		kit.Check(t, users.verifyPassword(name, canary), "a right password is refused: %v", name)
	}
}

// threadTime is the time that a processor worked for this thread.
func threadTime(t *testing.T) time.Duration {
	var r unix.Rusage
	kit.Must(t, unix.Getrusage(unix.RUSAGE_THREAD, &r))
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// bcrypt looks at 72 bytes; what is longer is never let in, and a new password of that kind is refused.
func TestHashPassword_Bounds(t *testing.T) {
	long := strings.Repeat("xyz12345", 9)
	hash := kit.Value(HashPassword(long))(t)
	users := newUserList([]User{{Name: "anna", Hash: hash}})
	kit.Check(t, users.verifyPassword("anna", long) && !users.verifyPassword("anna", long+"y") && !users.verifyPassword("anna", long[:71]),
		"72 bytes")
	for password, says := range map[string]string{
		long + "y": "73 bytes", strings.Repeat("ü", 37): "74 bytes", "CANARY-shor": "11 characters", "": "0 characters", "CANARY\x00-password": "control character", "CANARY-pass\xffword": "UTF-8",
		strings.Repeat("x", 12): "characters: 1;", strings.Repeat(" ", 20): "characters: 1;", "aAbBaAbBaAbBaAbB": "characters: 2;", strings.Repeat("1234", 18): "characters: 4;",
	} {
		if _, err := HashPassword(password); err == nil || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "CANARY") {
			t.Errorf(`%q: %v, want an error, err with %q, err without "CANARY"`, password, err, says)
		}
	}
}

// holdChecks keeps the next checks waiting, or lets them begin. It reports
// whether one was under way.
func holdChecks(guard *AccessGuard, held bool) (before bool) {
	guard.attempts.mu.Lock()
	defer guard.attempts.mu.Unlock()
	before, guard.attempts.checking = guard.attempts.checking, held
	guard.attempts.checkNext()
	return before
}

// A remembered pair is forgotten after a while without use, and at once when the users change.
func TestCheckBasic_RemembersForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		users := scraper(t, canary)
		guard := NewAccessGuard(NewAccess(nil, users, Proxy{}), silent)
		h := Handler(guard, sample, nil)
		ask := func(password string) (code int, checked bool) {
			before := holdChecks(guard, true)
			done := make(chan int, 1)
			go func() { done <- scrape(h, "192.0.2.9", "prometheus", password) }()
			synctest.Wait()
			select {
			case code = <-done:
			default:
				checked = true
			}
			holdChecks(guard, false)
			if checked {
				code = <-done
			}
			kit.Want(t, "a check under way before", before, false)
			return code, checked
		}
		told := func(step string, wantCode int, wantChecked bool, password string) {
			code, checked := ask(password)
			kit.Check(t, code == wantCode && checked == wantChecked, "%s: %d, checked by bcrypt %v", step, code, checked)
		}
		told("first", 200, true, canary)
		for range 100 {
			time.Sleep(15 * time.Second)
			told("each 15 seconds", 200, false, canary)
		}
		told("another password", 401, true, canary+"x")
		time.Sleep(rememberVerified + time.Second)
		told("after a while", 200, true, canary)
		guard.SetAccess(NewAccess(nil, users, Proxy{}))
		told("after a reload", 200, true, canary)
		guard.SetAccess(NewAccess(nil, scraper(t, "another password"), Proxy{}))
		told("after its password changed", 401, true, canary)
	})
}

// A check that a reload overtakes lets nobody in by the users before.
func TestCheckBasic_ReloadDuringACheck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		guard := NewAccessGuard(NewAccess(nil, scraper(t, canary), Proxy{}), silent)
		h := Handler(guard, sample, nil)
		holdChecks(guard, true)
		done := make(chan int, 1)
		go func() { done <- scrape(h, "192.0.2.9", "prometheus", canary) }()
		synctest.Wait()
		guard.SetAccess(NewAccess(nil, scraper(t, "another password"), Proxy{}))
		holdChecks(guard, false)
		if code := <-done; code != http.StatusUnauthorized || len(guard.verified) != 0 {
			t.Errorf("code = %v, len(guard.verified) = %v, want code = http.StatusUnauthorized, len(guard.verified) = 0", code, len(guard.verified))
		}
	})
}

// However many pairs are right, few are remembered.
func TestRememberVerified_I21_Bounded(t *testing.T) {
	var users []User
	u := userWith(t, "", canary, Rights{Metrics: true})
	for i := range 3 * maxVerified {
		u.Name = fmt.Sprint("user", i)
		users = append(users, u)
	}
	guard := NewAccessGuard(NewAccess(nil, users, Proxy{}), silent)
	h := Handler(guard, sample, nil)
	for _, u := range users {
		if code := scrape(h, "192.0.2.9", u.Name, canary); code != http.StatusOK || len(guard.verified) > maxVerified {
			t.Fatalf("code = %v, len(guard.verified) = %v, want code = http.StatusOK, len(guard.verified) <= %v", code, len(guard.verified), maxVerified)
		}
	}
}
