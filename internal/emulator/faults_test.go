package emulator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http/httptest"
	"net/http/httptrace"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"vaultd/internal/test/kit"
)

// at makes the n-th call of an op fail.
func (w *world) at(op string, n int, f Fault) {
	w.Helper()
	n += w.CountCalls(op)
	kit.Must(w, w.SetFaults(Faults{Hook: func(o string, i int) Fault {
		if o == op && i == n {
			return f
		}
		return Fault{}
	}}))
}

// Each fault that can strike on either side of the work does exactly that.
func TestFailedAndDoneOrNot(t *testing.T) {
	for _, kind := range []Kind{Abort, Status, HTML} {
		for _, done := range []bool{false, true} {
			w := newWorld(t, nil)
			w.at("register", 1, Fault{Kind: kind, IsAfterWork: done})
			w.call("POST", docs, batch(document(1)))
			kit.Want(t, string(kind)+": registered", len(w.Registrations()) == 1, done)
			ticket := w.register(2)
			w.at("upload", 1, Fault{Kind: kind, IsAfterWork: done})
			w.put(ticket, zipOf("a"))
			seen := w.Registrations()
			kit.Want(t, string(kind)+": uploaded", seen[len(seen)-1].PUTs == 1, done)
		}
	}
}

func TestFaultsAsSeen(t *testing.T) {
	rows := []struct {
		name string
		f    Fault
		want func(a answer, calm string) bool
	}{
		{"Abort", Fault{Kind: Abort}, func(a answer, _ string) bool { return errors.Is(a.err, syscall.ECONNRESET) }},
		{"Refuse", Fault{Kind: Refuse}, func(a answer, _ string) bool { return errors.Is(a.err, syscall.ECONNREFUSED) }},
		{"Cut", Fault{Kind: Cut}, func(a answer, calm string) bool {
			return a.status == 200 && errors.Is(a.err, io.ErrUnexpectedEOF) && a.body == calm[:len(calm)/2]
		}},
		{"Truncate", Fault{Kind: Truncate}, func(a answer, calm string) bool { return a.err == nil && a.body == calm[:len(calm)/2] }},
		{"Garble", Fault{Kind: Garble}, func(a answer, calm string) bool {
			return a.status == 200 && len(a.body) == len(calm) && !json.Valid([]byte(a.body))
		}},
		{"Empty", Fault{Kind: Empty}, func(a answer, _ string) bool { return a.status == 200 && a.body == "" }},
		{"HTML", Fault{Kind: HTML}, func(a answer, _ string) bool { return a.status == 200 && strings.HasPrefix(a.body, "<!DOCTYPE html>") }},
		{"Huge", Fault{Kind: Huge, PaddingSize: 200_000}, func(a answer, calm string) bool {
			return a.status == 200 && len(a.body) == 200_000+len(calm) && strings.TrimSpace(a.body) == strings.TrimSpace(calm)
		}},
		{"Trickle", Fault{Kind: Trickle, DelayAfter: time.Millisecond}, func(a answer, calm string) bool { return a.body == calm }},
		{"500", Fault{Kind: Status, Status: 500}, func(a answer, _ string) bool { return a.status == 500 && json.Valid([]byte(a.body)) }},
		{"429Seconds", Fault{Kind: Status, Status: 429, RetryAfter: 7 * time.Second}, func(a answer, _ string) bool {
			return a.status == 429 && a.header.Get("Retry-After") == "7"
		}},
		{"503Date", Fault{Kind: Status, RetryAfter: time.Minute, RetryAfterDate: true}, func(a answer, _ string) bool {
			return a.status == 503 && a.header.Get("Retry-After") == "Fri, 20 Nov 2020 12:01:00 GMT"
		}},
		{"429AsItStands", Fault{Kind: Status, Status: 429, RetryAfterText: "-7.5"}, func(a answer, _ string) bool {
			return a.status == 429 && a.header.Get("Retry-After") == "-7.5"
		}},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			w := newWorld(t, nil)
			calm := w.call("GET", "/v1/vaults", "").body
			w.at("vaults", 2, row.f)
			a := w.call("GET", "/v1/vaults", "")
			kit.Check(t, a.body == calm, "the call before it: %+v", a)
			a = w.call("GET", "/v1/vaults", "")
			kit.Check(t, row.want(a, calm), "answer %+v", a)
			a = w.call("GET", "/v1/vaults", "")
			kit.Check(t, a.body == calm, "the call after it: %+v", a)
		})
	}
}

// The questions about one chosen bumId fail, those about its neighbour do not, and the list tells of both.
func TestFaults_OneBumIDAlone(t *testing.T) {
	w := newWorld(t, nil)
	chosen, other := w.register(1), w.register(2)
	ask := func(g ticket) int { return w.call("GET", "/v1/vaults/V1/documents/"+g.bumID+"/status", "").status }
	kit.Must(t, w.SetFaults(Faults{Questions: map[string]Fault{chosen.bumID: {Kind: Status, Status: 400}}}))
	if a, b := ask(chosen), ask(other); a != 400 || b != 200 {
		t.Errorf("status %d for the chosen one, %d for the other", a, b)
	}
	kit.Holds(t, "the answer", w.call("GET", "/v1/vaults/V1/documents/status", "").body, chosen.bumID)
	kit.Must(t, w.SetFaults(Faults{}))
	w.at("register", 1, Fault{Kind: Unaskable, Status: 422})
	third := w.register(3)
	w.restart() // it is remembered
	if a, b := ask(third), ask(other); a != 422 || b != 200 {
		t.Errorf("status %d for the one that cannot be asked about, %d for the other", a, b)
	}
}

func TestReadings_UnknownBumID(t *testing.T) {
	for _, want := range []int{400, 404, 422, 502} {
		w := newWorld(t, func(c *Config) { c.Readings.UnknownBumID = want })
		a := w.call("GET", "/v1/vaults/V1/documents/46aa4caf-b373-41ed-bbfc-cfd535abf178/status", "")
		kit.Check(t, a.status == want, "status %d, want %d", a.status, want)
	}
}

func TestFaultsOfTheStore(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.ArchiveMin = time.Hour })
	ticket := w.register(1)
	w.at("upload", 1, Fault{Kind: Status})
	a := w.put(ticket, zipOf("a"))
	kit.Check(t, a.status == 503 && strings.Contains(a.body, "<Code>SlowDown</Code>"), "slow down: %+v", a)
	w.at("upload", 1, Fault{Kind: CutRequest})
	if a := w.put(ticket, zipOf("a")); a.err == nil || w.Registrations()[0].PUTs != 0 {
		t.Errorf("cut in the request: %+v, %+v", a, w.Registrations())
	}
	w.at("upload", 1, Fault{Kind: ErrorDocument})
	if a := w.put(ticket, zipOf("a")); a.status != 200 || !strings.Contains(a.body, "<Error>") || w.Registrations()[0].PUTs != 0 {
		t.Errorf("error document: %+v, %+v", a, w.Registrations())
	}
	for _, done := range []bool{false, true} {
		w.at("upload", 1, Fault{Kind: Early, IsAfterWork: done})
		if a := w.put(ticket, zipOf("a")); a.status != 200 || w.Registrations()[0].PUTs != 0 {
			t.Errorf("early: %+v, %+v", a, w.Registrations())
		}
	}
	w.at("upload", 1, Fault{Kind: Vanish})
	if a := w.put(ticket, zipOf("a")); a.status != 200 || w.state(ticket.bumID) != waiting {
		t.Errorf("vanished: %+v, state %s", a, w.state(ticket.bumID))
	}
	w.at("upload", 1, Fault{Kind: DeadToken})
	for range 2 { // it stays dead, after a restart as well
		a := w.put(ticket, zipOf("a"))
		kit.Check(t, a.status == 403 && strings.Contains(a.body, "ExpiredToken"), "dead token: %+v", a)
		w.restart()
	}
	w.wantNoViolations()
}

// A careless store: it holds no body against its Content-MD5, and keeps one that ends early. What it keeps so is told
// apart from other bytes, and fails in the archive.
func TestCarelessStore(t *testing.T) {
	w := newWorld(t, func(c *Config) {
		c.ArchiveMin, c.ArchiveMax = time.Hour, time.Hour
		c.Readings.ContentMD5, c.Readings.ShortBody = "ignore", "keep"
	})
	ticket := w.register(1)
	w.at("upload", 1, Fault{Kind: Early, IsAfterWork: true})
	w.put(ticket, zipOf("a"))
	s := w.Registrations()[0]
	kit.Check(t, s.PUTs == 1 && s.Torn && !s.Archivable && s.Size == int64(len(zipOf("a"))/2), "half of it: %+v", s)
	w.at("upload", 1, Fault{Kind: CutRequest})
	w.put(ticket, zipOf("a"))
	s = w.Registrations()[0]
	kit.Check(t, s.PUTs == 2 && s.Torn, "cut: %+v", s)
	w.restart() // it stands in the journal
	w.put(ticket, zipOf("a"))
	s = w.Registrations()[0]
	kit.Check(t, s.PUTs == 3 && !s.Torn && s.Archivable, "the whole: %+v", s)
	w.wantNoViolations()
	w.put(ticket, zipOf("b"))
	v := w.Violations()
	kit.Check(t, len(v) == 1 && strings.Contains(v[0], "other bytes"), "other bytes: %q", v)
}

func TestFaultsOfRegistration(t *testing.T) {
	both := batch(document(1), document(2))
	for kind, check := range map[Kind]func(got []ticket) bool{
		MissingAnswer: func(got []ticket) bool { return len(got) == 1 },
		MissingURL:    func(got []ticket) bool { return (got[0].url == "") != (got[1].url == "") },
		ExtraAnswer:   func(got []ticket) bool { return len(got) == 3 },
		ForeignAnswer: func(got []ticket) bool {
			known := func(x ticket) bool { return x.clientUUID == clientUUID(1) || x.clientUUID == clientUUID(2) }
			return known(got[0]) != known(got[1])
		},
		DoubleBumID: func(got []ticket) bool {
			return got[0].bumID == got[1].bumID && got[0].clientUUID != got[1].clientUUID
		},
	} {
		w := newWorld(t, nil)
		w.at("register", 1, Fault{Kind: kind})
		var got []ticket
		if got = w.tickets(w.call("POST", docs, both)); !check(got) {
			t.Errorf("%s: %+v, want check(got)", kind, got)
		}
		kit.Want(t, string(kind)+": registered", len(w.Registrations()), 2)
		for _, x := range got {
			if x.url != "" {
				w.put(x, zipOf("a"))
			}
		}
		if poisoned := kind != MissingAnswer && kind != MissingURL; poisoned {
			w.wantViolation("which no answer gave to one clientUUID alone")
		} else {
			w.wantNoViolations()
		}
	}
}

// One object's address in two answers: whoever stores there what the other one has, is seen.
func TestSharedAddress(t *testing.T) {
	for _, kind := range []Kind{SharedAddress, RepeatedAddress} {
		for _, inQuery := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/inQuery=%v", kind, inQuery), func(t *testing.T) {
				w := newWorld(t, func(c *Config) { c.Readings.KeyInQuery = inQuery })
				w.at("register", 1, Fault{Kind: kind})
				first := w.register(1) // nobody has an address yet
				w.mustPut(first, zipOf("a"))
				w.wantNoViolations()
				w.now = w.now.Add(time.Minute)
				w.at("register", 1, Fault{Kind: kind})
				second := w.register(2)
				if same := first.url == second.url; same != (kind == RepeatedAddress) || second.bumID == first.bumID {
					t.Fatalf("%+v, %+v, want same = %v, second.bumID other than %v", first, second, (kind == RepeatedAddress), first.bumID)
				}
				w.mustPut(first, zipOf("a")) // whose it is may use it
				w.wantNoViolations()
				w.mustPut(second, zipOf("b"))
				w.wantViolation("other bytes under bumId " + first.bumID)
				if kind == SharedAddress {
					w.wantViolation("with an address that was given to another clientUUID")
				}
				s := w.Registrations()
				kit.Check(t, s[0].Replaced && !s[1].Replaced && s[1].PUTs == 0, "%+v, want s[0].Replaced, not s[1].Replaced, s[1].PUTs = 0", s)
			})
		}
	}
}

func TestRedirectAway(t *testing.T) {
	w := newWorld(t, nil)
	first := w.register(1)
	w.mustPut(first, zipOf("a"))
	second := w.register(2)
	w.at("upload", 1, Fault{Kind: RedirectAway})
	a := w.put(second, zipOf("b"))
	kit.Need(t, a.status == 307 && strings.Contains(a.header.Get("Location"), first.bumID),
		`%+v, want a.status = 307, a.header.Get("Location") with %q`, a, first.bumID)
	w.wantNoViolations()
	second.url = a.header.Get("Location")
	w.now = w.now.Add(time.Second)
	w.mustPut(second, zipOf("b"))
	w.wantViolation("other bytes under bumId " + first.bumID)
}

func TestRegistrationThatShowsLate(t *testing.T) {
	w := newWorld(t, nil)
	w.at("register", 1, Fault{VisibleAfter: time.Minute})
	ticket := w.register(1)
	kit.Want(t, "at once", w.state(ticket.bumID), "404")
	kit.Want(t, "list at once", w.call("GET", docs+"/status", "").body, "[]")
	w.mustPut(ticket, zipOf("a"))
	w.now = w.now.Add(time.Minute)
	kit.Want(t, "later", w.state(ticket.bumID), successful)
}

// A late call honours its caller: gone before the work, nothing is done; gone after it, it is.
func TestLateOnVirtualTime(t *testing.T) {
	for name, row := range map[string]struct {
		f    Fault
		done bool
	}{"BeforeTheWork": {Fault{Delay: time.Hour}, false}, "AfterTheWork": {Fault{DelayAfter: time.Hour}, true}} {
		kit.Bubble(t, name, func(t *testing.T) {
			w := newWorld(t, func(c *Config) { c.Clock = nil })
			w.at("register", 1, row.f)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			start := time.Now()
			a := w.send(w.request("POST", docs, batch(document(1))).WithContext(ctx))
			kit.Check(t, errors.Is(a.err, context.DeadlineExceeded) && time.Since(start) == time.Minute,
				"answer %+v after %v", a, time.Since(start))
			kit.Want(t, "done", len(w.Registrations()) == 1, row.done)
			w.register(2)
			kit.Want(t, "the wait of the next call", time.Since(start), time.Minute)
		})
	}
}

// With the default clock everything follows the bubble's time, the signature's life included.
func TestWindowOnVirtualTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(c *Config) { c.Clock, c.ArchiveMin, c.ArchiveMax = nil, time.Hour, 5*time.Hour })
		in, out := w.register(1), w.register(2)
		time.Sleep(14 * time.Minute)
		w.mustPut(in, zipOf("a"))
		time.Sleep(2 * time.Minute)
		a := w.put(out, zipOf("a"))
		kit.Check(t, a.status == 403, "after the window: %+v", a)
		time.Sleep(5 * time.Hour)
		kit.Want(t, "in the end", w.state(in.bumID), successful)
	})
}

func TestRefusedLeavesNoConnection(t *testing.T) {
	w := newWorld(t, nil)
	ticket := w.register(1)
	for f, want := range map[Kind]bool{Refuse: false, Abort: true} {
		connected := false
		trace := &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { connected = true }}
		w.at("upload", 1, Fault{Kind: f})
		w.send(w.request("PUT", ticket.url, zipOf("a")).WithContext(httptrace.WithClientTrace(t.Context(), trace)))
		kit.Want(t, fmt.Sprintf("%s: connected", f), connected, want)
	}
}

func TestFaultsOnTheWire(t *testing.T) {
	w := newWorld(t, nil)
	srv := httptest.NewServer(w.Server)
	defer srv.Close()
	get := func() answer {
		req := w.request("GET", srv.URL+"/v1/vaults", "")
		req.SetBasicAuth("user", "s3=cret/+")
		return wireSend(t, req)
	}
	calm := get().body
	w.at("vaults", 1, Fault{Kind: Cut})
	a := get()
	kit.Check(t, a.status == 200 && a.err != nil && a.body == calm[:len(calm)/2], "cut: %+v", a)
	kit.Must(t, w.SetFaults(Faults{Rules: []Rule{{Op: "vaults", Rate: 1, Fault: Fault{Kind: Abort}}}}))
	a = get()
	kit.Check(t, a.err != nil, "abort: %+v", a)
}

func TestRatesFollowTheSeed(t *testing.T) {
	run := func(seed uint64) (marks string) {
		w := newWorld(t, func(c *Config) {
			c.Seed = seed
			c.Faults.Rules = []Rule{{Rate: 0.3, Fault: Fault{Kind: Abort}}, {Op: "vaults", Rate: 0.3, Fault: Fault{Kind: Status}}}
		})
		for range 200 {
			switch a := w.call("GET", "/v1/vaults", ""); {
			case a.err != nil:
				marks += "A"
			case a.status == 503:
				marks += "S"
			default:
				marks += "."
			}
		}
		return marks
	}
	first := run(1)
	kit.Check(t, first == run(1) && first != run(2), "the faults do not follow the seed")
	if a, s := strings.Count(first, "A"), strings.Count(first, "S"); a < 30 || a > 90 || s < 15 || s > 70 {
		t.Errorf("%d aborted, %d failed of 200", a, s)
	}
}

// A slow store takes an upload in pieces; the signature is judged when the request begins, so it may end late.
func TestSlowUploadOnVirtualTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(c *Config) { c.Clock = nil })
		ticket := w.register(1)
		time.Sleep(14 * time.Minute)
		w.at("upload", 1, Fault{Kind: Trickle, DelayAfter: 8 * time.Minute})
		start := time.Now()
		w.mustPut(ticket, strings.Repeat("x", 800))
		took := time.Since(start)
		kit.Check(t, took >= 8*time.Minute && took <= 10*time.Minute, "took %v", took)
		s := w.Registrations()[0]
		kit.Check(t, s.StoredAt.After(s.Deadline), "landed %v, deadline %v", s.StoredAt, s.Deadline)
	})
}

func TestReadingsAndFaultsChangeWhileRunning(t *testing.T) {
	w := newWorld(t, nil)
	kit.Must(t, w.SetReadings(Readings{VaultList: "ids"}))
	kit.Want(t, "vaults", w.call("GET", "/v1/vaults", "").body, `["V1","V2"]`)
	kit.Check(t, w.SetReadings(Readings{VaultList: "names"}) != nil && w.SetFaults(Faults{Rules: []Rule{{Op: "x"}}}) != nil,
		"unknown words were accepted")
}
