package simulation

import (
	"bytes"
	"cmp"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"vaultd/internal/emulator"
	"vaultd/internal/ledger"
	"vaultd/internal/test/kit"
)

// TestSetBack_I15 sets the machine back while some folders are through, some under way and
// some not yet dropped when the copy was taken: nothing is sent or removed before the
// archive was asked, and then each is archived once.
func TestSetBack_I15(t *testing.T) {
	kit.Rows(t, map[string]SetBack{"LedgerAlone": LedgerAlone, "WholeState": WholeState}, func(t *testing.T, how SetBack) {
		kit.ParallelBubble(t, func(t *testing.T) {
			w := New(t, several(14))
			w.Start()
			w.DropFolders(0, MakeFolder(14, 0, Good))
			w.DropFolders(1, MakeFolder(14, 1, Good))
			w.Advance(3 * time.Hour)
			w.DropFolders(0, MakeFolder(14, 2, Good))
			w.Advance(70 * time.Second)
			w.Snapshot()
			w.DropFolders(0, MakeFolder(14, 3, Good))
			w.DropFolders(1, MakeFolder(14, 4, Good))
			w.Advance(30 * time.Minute)
			w.SetBack(how)
			posts, puts := w.emulator.CountCalls("register"), w.emulator.CountCalls("upload")
			w.DropFolders(0, MakeFolder(14, 5, Good))
			w.Advance(2 * time.Hour)
			kit.Check(t, w.emulator.CountCalls("register") == posts && w.emulator.CountCalls("upload") == puts,
				"sent before the archive was asked")
			w.RunUntilCalm(72 * time.Hour)
			o := w.Check(false)
			kit.Check(t, len(o.EntriesIn(ledger.Archived)) == 6,
				"o = %v, want len(o.EntriesIn(ledger.Archived)) = 6", o)
			once := map[string]int{}
			for _, s := range w.emulator.Registrations() {
				if s.Archivable {
					once[s.ClientUUID]++
				}
			}
			kit.Want(t, "documents archived", len(once), 6)
			for id, n := range once {
				kit.Want(t, id+" is archived", n, 1)
			}
		})
	})
}

// TestSetBack_I2_I32_IndexThatEndsEarly sets the machine back after an invoice was archived of which the old ledger knows
// nothing but its folder, and the archive's list does not go back so far: the index alone knows of it. For days the index
// ends early. Nothing is concluded from that, and once the index is whole everything goes on, each invoice archived once.
func TestSetBack_I2_I32_IndexThatEndsEarly(t *testing.T) {
	kit.Rows(t, map[string]emulator.Kind{
		"ShortPage": emulator.ShortPage, "EmptyPages": emulator.EmptyPage, "SamePageAgain": emulator.RepeatPage, "CirclingCursors": emulator.CirclePage,
	}, func(t *testing.T, kind emulator.Kind) {
		kit.ParallelBubble(t, func(t *testing.T) {
			cfg := several(15)
			cfg.Vaults, cfg.Emulator = 1, func(c *emulator.Config) { c.Readings.IndexPage = 2 }
			w := New(t, cfg)
			w.Intercept(func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
				resp, err := next.RoundTrip(r)
				if err == nil && strings.HasSuffix(r.URL.Path, "/documents/status") {
					resp.Body, resp.ContentLength = io.NopCloser(strings.NewReader("[]")), 2
				}
				return resp, err
			})
			w.Start()
			for n := range 5 {
				w.DropFolders(0, MakeFolder(15, n, Good))
			}
			w.Advance(3 * time.Hour)
			w.SetPlan(func(op Op) Strike { // what is taken now is registered only after the copy
				if op.Name == "register" {
					return Strike{Blow: Fail}
				}
				return Strike{}
			})
			w.DropFolders(0, MakeFolder(15, 5, Good))
			w.Advance(3 * time.Minute)
			w.Snapshot()
			w.SetPlan(nil)
			for range 60 { // set back before the ledger hears that it is archived: its folder still lies where it was taken to
				if w.emulator.CountCalls("upload") == 6 {
					break
				}
				w.Advance(time.Minute)
			}
			w.SetBack(LedgerAlone)
			w.SetPlan(func(op Op) Strike {
				if op.Name != "index" {
					return Strike{}
				}
				return Strike{Call: emulator.Fault{Kind: kind}}
			})
			posts := w.emulator.CountCalls("register")
			for range 4 {
				w.Administer()
				w.Advance(12 * time.Hour)
			}
			if _, safe := w.d.Ledger().SafeMode(); !safe || w.emulator.CountCalls("register") != posts {
				t.Errorf("safe mode: %v, %d registrations", safe, w.emulator.CountCalls("register")-posts)
			}
			w.SetPlan(nil)
			w.RunUntilCalm(72 * time.Hour)
			kit.Want(t, "o", len(w.Check(false).EntriesIn(ledger.Archived)), 6)
			for _, s := range w.emulator.Registrations() {
				kit.Check(t, s.PUTs <= 0 || !s.ArchivedAt.IsZero(), "%s was sent and is not archived", s.DocumentID)
			}
		})
	})
}

// drawNetwork draws drops for the business network, in every fifth scenario, with what is dropped there, what becomes of it and what goes
// wrong.
func (s *scenario) drawNetwork(r *rand.Rand) {
	if r.IntN(5) > 0 {
		return
	}
	pick := func(words ...string) string { return words[r.IntN(len(words))] }
	s.Network = Network{Drops: 1 + r.IntN(2), Every: 10*time.Minute + upTo(r, 3*time.Hour), PageSize: r.IntN(2) * (1 + r.IntN(4)), OwnAccount: r.IntN(2) == 0,
		Workers: 1 + r.IntN(3), Settle: s.Settle, Rescan: s.Rescan}
	s.Readings.Network = emulator.NetworkReadings{ErrorWrapper: pick("error", "errors"), SendAnswer: pick("empty", "json"), CreditNoteWord: pick("CreditNode", "CreditNote"),
		Received: pick("type", "code", "code-only"), Times: pick("seconds", "milliseconds"), RepeatedDelete: pick("404", "200"), FetchSent: pick("served", "refused", "unknown")}
	for _, outcome := range []string{"undelivered", "invalid", "late-reject", "accepted-by-recipient", "rejected-by-recipient", "delayed", "unknown-pair", "services", "email", "silent"} {
		s.Outcomes = append(s.Outcomes, emulator.OutcomeRate{Outcome: outcome, Rate: r.Float64() * 0.2})
	}
	s.Rejecting = upTo(r, 72*time.Hour)
	if careful := r.IntN(2) == 0; len(s.PDFs.Drops) == 0 {
		s.Careful = careful
	}
	s.Mix = append(s.Mix, drawMix(r, firstNetwork, firstReceive)...)
	first := len(s.Disposal) + len(s.PDFs.Drops)
	for i := range int(math.Ceil(math.Pow(40, math.Pow(r.Float64(), 2)))) {
		d := dropping{At: upTo(r, dropHours), Drop: first + r.IntN(s.Network.Drops), N: i, Is: Document}
		switch p := r.IntN(100); {
		case p < 15 && i > 0: // the same again, perhaps in another drop
			d.N, d.Again = r.IntN(i), i
		case p < 20:
			d.Is = FaultyDocument
		case p < 23:
			d.Is = VirusDocument
		case p < 26:
			d.Is = TakenDocument
		}
		s.Drops = append(s.Drops, d)
	}
	slices.SortStableFunc(s.Drops, func(a, b dropping) int { return cmp.Compare(a.At, b.At) })
	for _, what := range []string{"vanish", "foreign notices", "foreign notices", "drop again", "drop again", "decide documents"} {
		for range r.IntN(4) {
			s.Mishaps = append(s.Mishaps, mishap{At: upTo(r, faultHours), What: what, Drop: first + r.IntN(s.Network.Drops), For: upTo(r, 3*time.Hour)})
		}
	}
	slices.SortStableFunc(s.Mishaps, func(a, b mishap) int { return cmp.Compare(a.At, b.At) })
	s.Network.Copies = r.IntN(3) > 0
	s.Outcomes = append(s.Outcomes, emulator.OutcomeRate{Outcome: "checked", Rate: r.Float64() * 0.5})
	s.Readings.Network.Validation, s.Network.CheckedAfter = pick("both", "property", "link"), time.Duration(r.IntN(2))*upTo(r, time.Hour)
	s.drawReceiving(r)
}

// drawReceiving draws documents that come in, in two of three scenarios with the business network.
func (s *scenario) drawReceiving(r *rand.Rand) {
	if r.IntN(3) == 0 {
		return
	}
	s.Network.Receives, s.Network.Confirms = true, r.IntN(2) == 0
	s.Readings.Network.Files = []string{"binary", "base64"}[r.IntN(2)]
	if s.Readings.Network.Received == "type" {
		s.Network.TrustsType = true
	}
	if r.IntN(4) == 0 {
		s.Readings.Network.Received, s.Network.TrustsType = "filter", true
	}
	s.Mix = append(s.Mix, drawMix(r, firstReceive, len(allClasses))...)
	for n := range 1 + r.IntN(12) {
		s.Mishaps = append(s.Mishaps, mishap{At: upTo(r, dropHours), What: "document comes", Drop: n})
	}
	slices.SortStableFunc(s.Mishaps, func(a, b mishap) int { return cmp.Compare(a.At, b.At) })
	s.Readings.Network.ReceivedAt = []string{"both", "v1"}[r.IntN(2)]
}

// unknown is one row of the table of unknown outcomes: what is seen, and what must
// come of it.
type unknown struct {
	folders int                 // default 1
	plan    func(*World) Plan   // what befalls calls
	between func(*World) tamper // what befalls what passes
	lasts   time.Duration       // how long it lasts; default half an hour

	paused        string // the route that must rest at the end of it; empty: none may
	rejected      [2]int // between so many
	registrations int    // of each archived document that was there from the beginning; 0: any number
	unclear       bool   // the documents pass through it
	more          func(*testing.T, *World, Outcome)
}

type tamper func(r *http.Request, next http.RoundTripper) (*http.Response, error)

func isPost(r *http.Request) bool {
	return r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/documents")
}

func isPut(r *http.Request) bool { return r.Method == http.MethodPut }

// fails strikes every call of an operation.
func fails(name string, f emulator.Fault) func(*World) Plan {
	return func(*World) Plan {
		return func(op Op) Strike {
			if op.Seam != Calls || op.Name != name {
				return Strike{}
			}
			return Strike{Call: f}
		}
	}
}

// answers gives the n-th call that match picks the n-th of the answers, the last one
// from then on; 0 passes the call on, -1 passes it on and loses the answer.
func answers(match func(*http.Request) bool, codes ...int) func(*World) tamper {
	return func(w *World) tamper {
		n := 0
		return func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
			if !match(r) {
				return next.RoundTrip(r)
			}
			w.fate.mu.Lock()
			code := codes[min(n, len(codes)-1)]
			n++
			w.fate.mu.Unlock()
			switch code {
			case 0:
				return next.RoundTrip(r)
			case -1:
				resp, err := next.RoundTrip(r)
				if err == nil {
					resp.Body.Close()
				}
				return nil, io.ErrUnexpectedEOF
			}
			if r.Body != nil {
				_, _ = io.Copy(io.Discard, r.Body)
				r.Body.Close()
			}
			return respond(r, code, `{"message":"no"}`), nil
		}
	}
}

// elsewhere sends uploads where they must not go.
func elsewhere(*World) tamper {
	return func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
		resp, err := next.RoundTrip(r)
		if err != nil || !isPost(r) {
			return resp, err
		}
		body, err := io.ReadAll(resp.Body)
		body = bytes.ReplaceAll(body, []byte("https://store.example"), []byte("http://169.254.169.254"))
		resp.Body, resp.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		resp.Header.Del("Content-Length")
		return resp, err
	}
}

// lost says that the bound on unknown registrations counts what was lost, and that
// nothing that was lost was adopted.
func lost(t *testing.T, _ *World, o Outcome) {
	for _, e := range o.EntriesIn(ledger.Archived) {
		kit.Check(t, e.Posts > e.Answers, "%q: %d POSTs, %d answers: nothing was lost", e.Folder, e.Posts, e.Answers)
	}
}

var unknowns = map[string]unknown{
	"POSTTimeout":             {plan: fails("register", emulator.Fault{DelayAfter: 2 * time.Minute}), registrations: 1, more: lost, paused: "vault VAULT-1"},
	"POSTReset":               {plan: fails("register", emulator.Fault{Kind: emulator.Abort}), registrations: 1, more: lost, paused: "vault VAULT-1"},
	"POSTResetButRegistered":  {plan: fails("register", emulator.Fault{Kind: emulator.Abort, IsAfterWork: true}), registrations: 1, more: lost, paused: "vault VAULT-1"},
	"POST5xx":                 {plan: fails("register", emulator.Fault{Kind: emulator.Status, Status: 500}), registrations: 1, more: lost, paused: "vault VAULT-1"},
	"POST5xxButRegistered":    {plan: fails("register", emulator.Fault{Kind: emulator.Status, Status: 504, IsAfterWork: true}), registrations: 1, more: lost, paused: "vault VAULT-1"},
	"POSTUnreadable200":       {plan: fails("register", emulator.Fault{Kind: emulator.Truncate}), registrations: 1, more: lost, paused: "vault VAULT-1"},
	"POSTWebPage200":          {plan: fails("register", emulator.Fault{Kind: emulator.HTML, IsAfterWork: true}), registrations: 1, more: lost, paused: "vault VAULT-1"},
	"POSTCrashAfterTheIntent": {plan: func(*World) Plan { return StrikeAt(1, DieDone, isCall("register")()) }, registrations: 1, more: lost},

	"POST400Alone": {between: answers(isPost, 400), rejected: [2]int{1, 1}},
	"POST409Alone": {between: answers(isPost, 409), rejected: [2]int{1, 1}},
	"POST413Alone": {between: answers(isPost, 413), rejected: [2]int{1, 1}},
	"POST422Alone": {between: answers(isPost, 422), rejected: [2]int{1, 1}},
	"POST400AfterAnUnansweredOne": {between: answers(isPost, -1, 400, 0), more: func(t *testing.T, _ *World, o Outcome) {
		if e := o.Entries[0]; e.Generation == 0 || e.ID == e.FirstID || e.FirstID.Generation(int(e.Generation)) != e.ID {
			t.Errorf("not the next generation of its identity: %d, %v of %v", e.Generation, e.ID, e.FirstID)
		}
	}},
	"POST400ForEverybody": {folders: 60, between: answers(isPost, 400), paused: "vault VAULT-1", rejected: [2]int{3, 35}},
	"POST429":             {folders: 4, between: answers(isPost, 429), paused: "vault VAULT-1"},
	"POST503":             {folders: 4, between: answers(isPost, 503), paused: "vault VAULT-1"},
	"URLAgainstPolicy":    {folders: 4, between: elsewhere, paused: "vault VAULT-1"},

	"PUTNoConnection":               {folders: 4, plan: fails("upload", emulator.Fault{Kind: emulator.Refuse}), paused: "store of vault VAULT-1"},
	"PUTUnansweredInsideTheWindow":  {plan: fails("upload", emulator.Fault{Kind: emulator.Abort}), lasts: 5 * time.Minute, registrations: 1, paused: "store of vault VAULT-1"},
	"PUT5xxInsideTheWindow":         {plan: fails("upload", emulator.Fault{Kind: emulator.Status, Status: 500, IsAfterWork: true}), lasts: 5 * time.Minute, registrations: 1, paused: "store of vault VAULT-1"},
	"PUTCrashAfterTheIntent":        {plan: func(*World) Plan { return StrikeAt(1, Die, isCall("upload")()) }, lasts: 2 * time.Minute, registrations: 1},
	"PUTUnansweredAndTheWindowOver": {plan: fails("upload", emulator.Fault{Kind: emulator.Abort}), registrations: 2, unclear: true},
	"PUT4xxAtOnce":                  {between: answers(isPut, 403, 0), registrations: 2},
	"PUT4xxAgainAndAgain":           {folders: 4, between: answers(isPut, 403), paused: "store of vault VAULT-1"},
	"PUT4xxAfterAnUnansweredOne":    {between: answers(isPut, -1, 403), registrations: 1, unclear: true},
	"PUTSlowDown":                   {folders: 4, between: answers(isPut, 503), lasts: 5 * time.Minute, paused: "store of vault VAULT-1"},
}

// TestUnknownOutcome_I2 plays each row of the table of unknown outcomes for a while, and
// then looks at what became of it once everything is calm again: nothing is lost, nothing
// is archived twice, nobody is blamed for the environment, and the route that rests is
// back by itself.
func TestUnknownOutcome_I2(t *testing.T) {
	for name, row := range unknowns {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { row.play(t) })
		})
	}
}

func (u unknown) play(t *testing.T) {
	w := New(t, Config{Seed: 21, Emulator: func(c *emulator.Config) { c.ArchiveMin, c.ArchiveMax = time.Minute, 10*time.Minute }})
	if u.plan != nil {
		w.SetPlan(u.plan(w))
	}
	if u.between != nil {
		w.Intercept(u.between(w))
	}
	w.Start()
	n := max(u.folders, 1)
	for i := range n {
		w.DropFolders(0, MakeFolder(21, i, Good))
	}
	d := u.lasts
	if d == 0 {
		d = 30 * time.Minute
	}
	w.Advance(2*time.Minute + d)
	var routes []string
	for _, p := range w.d.State().Pauses {
		routes = append(routes, p.Target.String())
	}
	kit.Check(t, (u.paused == "" || slices.Equal(routes, []string{u.paused})) && (u.paused != "" || len(routes) <= 0),
		"paused %q, want %q", routes, u.paused)
	w.Intercept(nil)
	w.RunUntilCalm(72 * time.Hour)
	p := w.d.State().Pauses
	kit.Check(t, len(p) <= 0, "still paused: %+v", p)
	o := w.Check(u.plan != nil)
	rejected := len(o.EntriesIn(ledger.Rejected))
	if len(o.EntriesIn(ledger.Archived))+rejected != n || rejected < u.rejected[0] || rejected > u.rejected[1] {
		t.Errorf("%v, want len(o.EntriesIn(ledger.Archived))+rejected = %v, rejected >= %v, rejected <= %v", o, n, u.rejected[0], u.rejected[1])
	}
	for _, e := range o.EntriesIn(ledger.Archived) {
		passed := w.states(e.Key)
		if unclear := slices.Contains(passed, ledger.Unclear.String()); unclear != u.unclear || e.PossibleDouble ||
			u.registrations > 0 && len(e.Registrations) != u.registrations {
			t.Errorf("%q: %d registrations, double %v, by %q", e.Folder, len(e.Registrations), e.PossibleDouble, passed)
		}
	}
	if u.more != nil {
		u.more(t, w, o)
	}
}
