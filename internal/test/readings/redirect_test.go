package readings

import (
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"vaultd/internal/apicall"
	"vaultd/internal/daemon"
	"vaultd/internal/emulator"
	"vaultd/internal/ledger"
	"vaultd/internal/test/kit"
)

func allows(hosts ...string) func(*apicall.Config) {
	return func(c *apicall.Config) { c.AllowedHosts = hosts }
}

// Redirects that are followed. The same host and a listed one get everything again, credentials included; the object
// store never does.
func TestReading_I20_RedirectsFollowed(t *testing.T) {
	type row struct {
		setup
		host       string // must have been sent to
		authorized bool   // with credentials
	}
	kit.Rows(t, map[string]row{
		"SameHost":   {setup{readings: emulator.Readings{RedirectTo: "same"}}, apiHost, true},
		"ListedHost": {setup{readings: emulator.Readings{RedirectTo: "https://eu.example"}, client: allows("eu.example", storeHost)}, "eu.example", true},
		"ListedHostTokens": {setup{readings: emulator.Readings{RedirectTo: "https://eu.example"}, service: tokensOnly,
			client: func(c *apicall.Config) { withTokens(c); allows("eu.example", storeHost)(c) }}, "eu.example", true},
		"OtherStore":            {setup{readings: emulator.Readings{StoreRedirectTo: "https://store-2.example"}}, "store-2.example", false},
		"OtherStoreWithHeaders": {setup{readings: emulator.Readings{StoreRedirectTo: "https://store-2.example", URLForm: "headers"}}, "store-2.example", false},
		"OtherStoreListed": {setup{readings: emulator.Readings{StoreRedirectTo: "https://store-2.example"},
			client: allows(storeHost, "store-2.example")}, "store-2.example", false},
	}, func(t *testing.T, row row) {
		virtual(t, row.setup, func(t *testing.T, w *world) {
			w.archives(hour)
			there := w.sentTo(row.host)
			kit.Check(t, len(there) != 0, "nothing went to %s", row.host)
			for _, c := range there {
				kit.Want(t, fmt.Sprintf("%s %s: credentials", c.method, c.path), c.authorized, row.authorized)
			}
		})
	})
}

// Redirects that are not followed: the host is named, nothing reaches it, and all goes on when the service's side is
// put right.
func TestReading_I20_RedirectsRefused(t *testing.T) {
	type row struct {
		setup
		says []string
		host string // nothing may have reached it
	}
	kit.Rows(t, map[string]row{
		"OtherHost": {setup{readings: emulator.Readings{RedirectTo: "https://eu.example"}},
			[]string{"host eu.example refused: it is not the service's host; if the redirect is right, add the host to service.redirect_hosts", "vault ACME", "vault BETA"}, "eu.example"},
		"OtherHostNotInTheList": {setup{readings: emulator.Readings{RedirectTo: "https://eu.example"}, client: allows(storeHost)},
			[]string{"host eu.example refused: it is not the service's host; if the redirect is right, add the host to service.redirect_hosts"}, "eu.example"},
		"OtherPort": {setup{readings: emulator.Readings{RedirectTo: "https://" + apiHost + ":8443"}},
			[]string{"host " + apiHost + ":8443 refused"}, apiHost + ":8443"},
		"ToPlainHTTP": {setup{readings: emulator.Readings{RedirectTo: "http://eu.example"}, client: allows(storeHost, "eu.example")},
			[]string{"host eu.example refused: the redirect leads from https to http"}, "eu.example"},
		"StoreToPlainHTTP": {setup{readings: emulator.Readings{StoreRedirectTo: "http://store-2.example"}},
			[]string{"host store-2.example refused: the redirect leads from https to http", "store of vault"}, "store-2.example"},
		"StoreNotInTheList": {setup{readings: emulator.Readings{StoreRedirectTo: "https://store-2.example"}, client: allows(storeHost)},
			[]string{"host store-2.example refused: it is not in service.allowed_hosts", "store of vault"}, "store-2.example"},
		"StoreIsThisMachine": {setup{readings: emulator.Readings{StoreRedirectTo: "https://localhost"}},
			[]string{"host localhost refused: it is this machine"}, "localhost"},
	}, func(t *testing.T, row row) {
		virtual(t, row.setup, func(t *testing.T, w *world) {
			w.pass(20*time.Minute, time.Second, never)
			w.waits()
			w.says(append(row.says, "route paused")...)
			got := w.sentTo(row.host)
			kit.Check(t, len(got) <= 0, "reached %s: %+v", row.host, got)
			kit.Must(w.t, w.service.SetReadings(emulator.Readings{}))
			w.archives(2 * hour)
		})
	})
}

// A POST that is moved by 301 or 302 stays the POST that it is: each document is archived once.
func TestReading_I2_I11_MovedPostStaysAPost(t *testing.T) {
	for _, status := range []int{301, 302, 308} {
		t.Run(http.StatusText(status), func(t *testing.T) {
			virtual(t, setup{readings: emulator.Readings{RedirectTo: "same", RedirectStatus: status}}, func(t *testing.T, w *world) { w.archives(hour) })
		})
	}
}

// The status that turns a POST into a GET: its 200 would look like success.
func TestReading_I12_RedirectThatWouldLoseTheBody(t *testing.T) {
	kit.Rows(t, map[string]int{"303": 303}, func(t *testing.T, status int) {
		var broken atomic.Bool
		broken.Store(true)
		s := setup{between: func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
			if !broken.Load() || r.Method != http.MethodPost {
				return next.RoundTrip(r)
			}
			_ = r.Body.Close()
			return &http.Response{StatusCode: status, Header: http.Header{"Location": {"https://" + apiHost + "/v1/vaults"}}, Body: http.NoBody, Request: r}, nil
		}}
		virtual(t, s, func(t *testing.T, w *world) {
			w.pass(20*time.Minute, time.Second, never)
			w.waits()
			w.says("the redirect would turn the POST into a GET", "route paused")
			broken.Store(false)
			w.archives(hour)
		})
	})
}

// An upload address against the rules is never sent to: the host is named, the route rests, nothing is blamed.
func TestReading_I20_UploadAddressRefused(t *testing.T) {
	type row struct {
		client func(*apicall.Config)
		store  string
		says   string
	}
	kit.Rows(t, map[string]row{
		"NotInTheList": {allows("other.example"), "https://wrong.example/packages", "upload address: host wrong.example refused: it is not in service.allowed_hosts"},
		"PlainHTTP":    {nil, "http://wrong.example/packages", "upload address: host wrong.example refused: plain http is not allowed"},
		"PrivateNet":   {nil, "https://10.0.0.7/packages", "upload address: host 10.0.0.7 refused: its address is not a public one"},
		"ThisMachine":  {nil, "https://localhost/packages", "upload address: host localhost refused: it is this machine"},
	}, func(t *testing.T, row row) {
		var store atomic.Value
		store.Store(row.store)
		s := setup{client: row.client, service: func(c *emulator.Config) { c.StoreURL = func() string { return store.Load().(string) } }}
		virtual(t, s, func(t *testing.T, w *world) {
			w.pass(20*time.Minute, time.Second, never)
			w.waits()
			w.says(row.says, "route paused", "vault ACME", "vault BETA")
			n := w.service.CountCalls("upload")
			kit.Check(t, n <= 0, "%d uploads", n)
			store.Store("https://other.example/packages")
			w.archives(hour)
		})
	})
}

// times notes when calls of the named ops came, and makes the first of them fail.
type times struct {
	ops   []string
	fault emulator.Fault

	mu   sync.Mutex
	came []time.Time // guarded by mu
}

func (c *times) strike(op string, _ int) emulator.Fault {
	if !slices.Contains(c.ops, op) {
		return emulator.Fault{}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.came = append(c.came, time.Now())
	if len(c.came) == 1 {
		return c.fault
	}
	return emulator.Fault{}
}

// gap is the time between the first call and the one that came after it.
func (c *times) gap(t *testing.T) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	kit.Need(t, len(c.came) >= 2, "%d calls", len(c.came))
	return c.came[1].Sub(c.came[0])
}

// Retry-After in both forms, of both statuses, at every call: nothing is asked again before its time, and then soon.
func TestReading_RetryAfterIsHonoured(t *testing.T) {
	const wait = 5 * time.Minute
	for _, ops := range [][]string{{"register"}, {"upload"}, {"status", "status-list"}, {"token"}} {
		for _, status := range []int{429, 503} {
			for _, date := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%d/date=%v", ops[0], status, date), func(t *testing.T) {
					calls := &times{ops: ops, fault: emulator.Fault{Kind: emulator.Status, Status: status, RetryAfter: wait, RetryAfterDate: date}}
					// One document: what others do meanwhile is another matter.
					s := setup{vaults: []string{"ACME"}, folders: 1, faults: calls.strike}
					if ops[0] == "token" {
						s.service, s.client = tokensOnly, withTokens
					}
					virtual(t, s, func(t *testing.T, w *world) {
						w.archives(2 * hour)
						gap := calls.gap(t)
						kit.Check(t, gap >= wait-time.Second && gap <= 3*wait, "asked again after %v", gap)
					})
				})
			}
		}
	}
}

// A pause of weeks is cut: to an hour where there are too many calls, to a quarter of one where the service is away.
// Until then the whole route waits, and no document stores any of it.
func TestReading_I24_RetryAfterIsTheRoutesAndCapped(t *testing.T) {
	for status, most := range map[int]time.Duration{429: hour, 503: hour / 4} {
		for _, date := range []bool{false, true} {
			t.Run(fmt.Sprintf("%d/date=%v", status, date), func(t *testing.T) {
				calls := &times{ops: []string{"register"}, fault: emulator.Fault{Kind: emulator.Status, Status: status, RetryAfter: 40 * 24 * hour, RetryAfterDate: date}}
				virtual(t, setup{vaults: []string{"ACME"}, folders: 1, faults: calls.strike}, func(t *testing.T, w *world) {
					w.pass(5*time.Minute, time.Second, never)
					w.drop(0, "later", "R-later") // nothing was asked about this one
					stored := false
					w.pass(most-6*time.Minute, time.Second, func() bool {
						for _, e := range w.entries() {
							stored = stored || e.NotBefore.After(time.Now().Add(6*time.Minute))
						}
						return false
					})
					w.waits()
					if p := w.daemon.State().Pauses; len(p) != 1 || p[0].Target.String() != "vault ACME" || p[0].Asked != p[0].Next || p[0].Asked.Sub(p[0].Since).Round(time.Minute) != most {
						t.Errorf("paused: %+v", p)
					}
					kit.Check(t, !stored, "a document stored what the route was asked")
					w.archives(hour)
					gap := calls.gap(t)
					kit.Check(t, gap >= most-time.Second && gap <= most+5*time.Minute, "asked again after %v", gap)
				})
			})
		}
	}
}

// A wait that would pass the end of an upload address is not waited for: the upload is tried again while the address
// works. What fits in is honoured.
func TestReading_I6_RetryAfterBeyondTheWindow(t *testing.T) {
	for _, status := range []int{429, 503} {
		for _, wait := range []string{"3600", "86400", "899.5", "600", "1e99", "-3600", "Sat, 01 Jan 2000 01:00:00 GMT", "Fri, 31 Dec 9999 00:00:00 GMT"} {
			t.Run(fmt.Sprintf("%d/%s", status, wait), func(t *testing.T) {
				calls := &times{ops: []string{"upload"}, fault: emulator.Fault{Kind: emulator.Status, Status: status, RetryAfterText: wait}}
				virtual(t, setup{vaults: []string{"ACME"}, folders: 1, faults: calls.strike}, func(t *testing.T, w *world) {
					doubted := false
					w.pass(20*time.Minute, time.Second, func() bool {
						doubted = doubted || w.count(ledger.Unclear) > 0
						return w.count(ledger.Archived) == 1
					})
					w.archives(hour)
					e := w.entries()[0]
					kit.Check(t, !doubted && len(e.Registrations) == 1, "in doubt: %v; registered %d times", doubted, len(e.Registrations))
					gap := calls.gap(t)
					kit.Check(t, (gap >= 600*time.Second) == (wait == "600"), "sent again after %v", gap)
				})
			})
		}
	}
}

// shortLived are upload addresses that live for six seconds.
func shortLived(c *emulator.Config) { c.Window = 6 * time.Second }

// shortGrace is the least that a doubt lasts.
func shortGrace(c *daemon.Config) { c.Grace = 30 * time.Minute }

// Addresses of six seconds, and every way in which an upload can miss them: what is unclear is never sent again on
// silence, the service's own word ends it, and each document is archived once.
func TestReading_I2_I6_AddressesOfSixSeconds(t *testing.T) {
	type row struct {
		calls   int // the first so many uploads suffer
		fault   emulator.Fault
		unclear bool // some must have been in doubt
	}
	kit.Rows(t, map[string]row{
		"Calm":                       {},
		"AnswersLost":                {40, emulator.Fault{Kind: emulator.Abort, IsAfterWork: true}, true},
		"AnswersLate":                {12, emulator.Fault{DelayAfter: 20 * time.Second}, true},
		"NothingArrives":             {40, emulator.Fault{Kind: emulator.Abort}, true},
		"CutInTheMiddle":             {40, emulator.Fault{Kind: emulator.CutRequest}, true},
		"TooSlow":                    {12, emulator.Fault{Kind: emulator.Trickle, DelayAfter: 20 * time.Second}, true},
		"StoreIsDown":                {40, emulator.Fault{Kind: emulator.Status, Status: 503}, true},
		"CredentialsDieEarly":        {6, emulator.Fault{Kind: emulator.DeadToken}, false},
		"AcceptedAndLost":            {2, emulator.Fault{Kind: emulator.Vanish}, true},
		"ProxyPageInsteadOfAnswer":   {40, emulator.Fault{Kind: emulator.HTML, IsAfterWork: true}, true},
		"AnswersLateByRetryOfAnHour": {40, emulator.Fault{Kind: emulator.Status, Status: 503, RetryAfter: hour}, true},
	}, func(t *testing.T, row row) {
		s := setup{service: shortLived, daemon: shortGrace, faults: first(row.calls, "upload", row.fault)}
		virtual(t, s, func(t *testing.T, w *world) {
			doubted := false
			w.pass(24*hour, 5*time.Second, func() bool {
				doubted = doubted || w.count(ledger.Unclear) > 0
				return w.allArchived()
			})
			w.archives(hour)
			kit.Want(t, "in doubt", doubted, row.unclear)
		})
	})
}

// A package that shows at the service only after its window, where late ones count and where they do not.
func TestReading_I2_LatePackage(t *testing.T) {
	for _, late := range []string{"archive", "ignore"} {
		t.Run(late, func(t *testing.T) {
			s := setup{readings: emulator.Readings{LatePackage: late}, service: shortLived,
				daemon: func(c *daemon.Config) { c.Grace = 6 * hour }, faults: func(op string, n int) emulator.Fault {
					if op != "upload" || n > 24 {
						return emulator.Fault{}
					}
					return emulator.Fault{Kind: emulator.Abort, IsAfterWork: true, VisibleAfter: 40 * time.Minute}
				}}
			virtual(t, s, func(t *testing.T, w *world) {
				w.pass(40*time.Minute, time.Minute, never)
				kit.Check(t, w.count(ledger.Unclear) != 0, "nothing is in doubt")
				w.pass(48*hour, 10*time.Second, w.allArchived)
				w.archives(hour)
				again := 0
				for _, e := range w.entries() {
					if len(e.Registrations) > 1 {
						again++
					}
				}
				kit.Check(t, (again > 0) == (late == "ignore"), "%d were registered again", again)
			})
		})
	}
}

// The secret's file is missing for a while: the routes rest, and nobody is told what was in it.
func TestReading_I24_SecretUnreadableForAWhile(t *testing.T) {
	kit.Rows(t, map[string]func(*apicall.Config){"Basic": nil, "Tokens": withTokens}, func(t *testing.T, client func(*apicall.Config)) {
		s := setup{client: client, secret: " "}
		if client != nil {
			s.service = tokensOnly
		}
		virtual(t, s, func(t *testing.T, w *world) {
			w.setSecret("")
			w.pass(10*time.Minute, time.Second, never)
			w.waits()
			w.says("the secret cannot be read: it is empty", "route paused")
			kit.Lacks(t, "what is said", w.said(), password)
			w.setSecret(password)
			w.archives(hour)
		})
	})
}
