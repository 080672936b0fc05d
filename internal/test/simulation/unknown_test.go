package simulation

import (
	"bytes"
	"io"
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
