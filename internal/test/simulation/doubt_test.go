package simulation

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/daemon"
	"vaultd/internal/emulator"
	"vaultd/internal/ledger"
	"vaultd/internal/test/kit"
)

// respond makes an answer for Between.
func respond(r *http.Request, status int, body string) *http.Response {
	return &http.Response{Status: http.StatusText(status), StatusCode: status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body)),
		ContentLength: int64(len(body)), Request: r}
}

// misspell is for Between: a registration that holds a documentId with that beginning
// gets a field that the service does not know, and must be refused.
func misspell(beginning string) func(*http.Request, http.RoundTripper) (*http.Response, error) {
	return func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
		if r.Method != http.MethodPost || r.Body == nil || !strings.HasSuffix(r.URL.Path, "/documents") {
			return next.RoundTrip(r)
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		body = bytes.ReplaceAll(body, []byte(`"documentId":"`+beginning), []byte(`"documentNo":"`+beginning))
		r = r.Clone(r.Context())
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		return next.RoundTrip(r)
	}
}

// forUntil strikes every call of an operation until some time into the run.
func forUntil(w *World, name string, until time.Duration, f emulator.Fault) Plan {
	return func(op Op) Strike {
		if op.Seam != Calls || op.Name != name || w.VirtualTime() > until {
			return Strike{}
		}
		return Strike{Call: f}
	}
}

// states returns the states that an entry passed through, in order.
func (w *World) states(k archive.Key) (all []string) {
	l, done := w.openLedger()
	defer done()
	w.failOn(l.Lines(1, func(_ uint64, line []byte) error {
		m, err := ledger.ParseLine(line)
		if err == nil && m.Key == k.String() && (len(all) == 0 || all[len(all)-1] != m.State) {
			all = append(all, m.State)
		}
		return nil
	}))
	return all
}

// TestUnclear_I2 leaves PUTs without an answer until the window is over.
func TestUnclear_I2(t *testing.T) {
	const late = 5 * time.Hour
	type row struct {
		fault         emulator.Fault
		registrations int
		unclear       bool
	}
	kit.Rows(t, map[string]row{
		"FailedAndNotStored": {emulator.Fault{Kind: emulator.Abort}, 2, true},
		"FailedButStored":    {emulator.Fault{Kind: emulator.Abort, IsAfterWork: true}, 1, true},
		"CutInTheMiddle":     {emulator.Fault{Kind: emulator.CutRequest}, 2, true},
		"LandsLate":          {emulator.Fault{Kind: emulator.Abort, IsAfterWork: true, VisibleAfter: late}, 1, true},
		"AnsweredLandsLate":  {emulator.Fault{VisibleAfter: late}, 1, false},
		"AnsweredAndLost":    {emulator.Fault{Kind: emulator.Vanish}, 2, true},
		"NeverConnected":     {emulator.Fault{Kind: emulator.Refuse}, 2, false},
	}, func(t *testing.T, row row) {
		kit.ParallelBubble(t, func(t *testing.T) {
			w := New(t, Config{Seed: 3})
			w.SetPlan(forUntil(w, "upload", 30*time.Minute, row.fault))
			w.Start()
			w.DropFolders(0, MakeFolder(3, 0, Good))
			w.Advance(40 * time.Minute)
			w.RunUntilCalm(72 * time.Hour)
			o := w.Check(true)
			e := o.Entries[0]
			passed := w.states(e.Key)
			unclear := slices.Contains(passed, ledger.Unclear.String())
			if e.State != ledger.Archived || e.PossibleDouble || len(e.Registrations) < row.registrations || unclear != row.unclear {
				t.Errorf("%s after %d registrations, double %v, by %q", e.State, len(e.Registrations), e.PossibleDouble, passed)
			}
			kit.Check(t, row.registrations != 1 || len(e.Registrations) == 1,
				"registered %d times", len(e.Registrations))
		})
	})
}

// TestSameNumber_I25 meets a service that registers a document again under the number
// that it failed: nobody can tell what it would say of the second package.
func TestSameNumber_I25(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := New(t, Config{Seed: 12, Emulator: func(c *emulator.Config) { c.Readings.Repeat = "same" }})
		w.Start()
		for i := range 10 {
			w.DropFolders(0, MakeFolder(12, i, Good))
		}
		w.DropFolders(0, MakeFolder(12, 10, FailsOnce))
		w.RunUntilCalm(72 * time.Hour)
		if o := w.Check(false); len(o.EntriesIn(ledger.Archived)) != 10 || len(o.EntriesIn(ledger.Unclear)) != 1 {
			t.Errorf("o = %v, want len(o.EntriesIn(ledger.Archived)) = 10, len(o.EntriesIn(ledger.Unclear)) = 1", o)
		}
	})
}

// TestCrossWired_I8 gives one number to two documents, twice: the first time they alone
// are stopped, the second time their route is, until vaultd is started again.
func TestCrossWired_I8(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// A minute to fill a batch: the two documents must be in one.
		w := New(t, Config{Seed: 4, Vaults: 2, Daemon: func(c *daemon.Config) { c.BatchWait = time.Minute }})
		w.Start()
		w.Advance(10 * time.Second) // what is dropped in the instant of a rescan may be found in parts
		twice := func(op Op) Strike {
			if op.Name == "register" {
				return Strike{Call: emulator.Fault{Kind: emulator.DoubleBumID}}
			}
			return Strike{}
		}
		w.SetPlan(twice)
		w.DropFolders(0, MakeFolder(4, 0, Good), MakeFolder(4, 1, Good))
		w.Advance(5 * time.Minute)
		w.SetPlan(nil)
		w.DropFolders(0, MakeFolder(4, 2, Good))
		w.Advance(6 * time.Hour)
		w.SetPlan(twice)
		w.DropFolders(0, MakeFolder(4, 3, Good), MakeFolder(4, 4, Good))
		w.Advance(5 * time.Minute)
		w.SetPlan(nil)
		for i := range 12 {
			w.DropFolders(i%2, MakeFolder(4, 10+i, Good))
		}
		w.Advance(24 * time.Hour)
		p := w.d.State().Pauses
		kit.Check(t, len(p) == 1 && p[0].Target.String() == "vault VAULT-1" && p[0].Cause.Code == "cross-wired", "pauses %+v", p)
		b := w.d.Ledger().Balance()
		kit.Check(t, b.States[ledger.Quarantined] == 4 && b.States[ledger.Archived] == 7 && b.States[ledger.Packaged] == 6,
			"before the restart: %v", b)
		w.Restart(Graceful)
		w.RunUntilCalm(24 * time.Hour)
		kit.Want(t, "o", len(w.Check(true).EntriesIn(ledger.Archived)), 13)
	})
}

// TestSharedAddress_I8 gives the upload address of an archived document to another one in a later answer: signed
// anew, in the same bytes while both are open, and with the object's name in the query. Nothing is uploaded to
// it by the second document, which alone is stopped; when it happens again, the route is.
func TestSharedAddress_I8(t *testing.T) {
	type row struct {
		kind    emulator.Kind
		inQuery bool
	}
	kit.Rows(t, map[string]row{
		"SignedAnew":             {emulator.SharedAddress, false},
		"SignedAnewKeyInQuery":   {emulator.SharedAddress, true},
		"SameBytes":              {emulator.RepeatedAddress, false},
		"SameBytesAndKeyInQuery": {emulator.RepeatedAddress, true},
	}, func(t *testing.T, row row) {
		synctest.Test(t, func(t *testing.T) {
			w := New(t, Config{Seed: 6, Emulator: func(c *emulator.Config) { c.Readings.KeyInQuery = row.inQuery }})
			w.Start()
			w.DropFolders(0, MakeFolder(6, 0, Good))
			w.Advance(5 * time.Minute) // stored; its address still works
			for n := 1; n <= 2; n++ {
				w.SetPlan(func(op Op) Strike {
					if op.Name == "register" {
						return Strike{Call: emulator.Fault{Kind: row.kind}}
					}
					return Strike{}
				})
				w.DropFolders(0, MakeFolder(6, n, Good))
				w.Advance(5 * time.Minute)
				w.SetPlan(nil)
				b := w.d.Ledger().Balance()
				kit.Check(t, b.States[ledger.Quarantined] == uint64(n), "after %d shared addresses: %v", n, b)
				kit.Len(t, fmt.Sprintf("after %d shared addresses: pauses", n), w.d.State().Pauses, n-1)
			}
			w.Restart(Graceful)
			w.DropFolders(0, MakeFolder(6, 3, Good))
			w.RunUntilCalm(24 * time.Hour)
			o := w.Check(false)
			kit.Check(t, len(o.EntriesIn(ledger.Archived)) == 2,
				"o = %v, want len(o.EntriesIn(ledger.Archived)) = 2", o)
			for _, e := range o.EntriesIn(ledger.Quarantined) {
				kit.Check(t, e.Cause.Code == "address-taken" && len(e.Registrations) == 0,
					"%q: %+v, %d registrations", e.Folder, e.Cause, len(e.Registrations))
			}
		})
	})
}

// TestRedirectAway_I8 has the store send an upload on to the object of another document.
func TestRedirectAway_I8(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := New(t, Config{Seed: 7})
		w.Start()
		w.DropFolders(0, MakeFolder(7, 0, Good))
		w.Advance(6 * time.Hour)
		once := false
		w.SetPlan(func(op Op) Strike {
			if op.Name != "upload" || once {
				return Strike{}
			}
			once = true // where it is sent on to would take it
			return Strike{Call: emulator.Fault{Kind: emulator.RedirectAway}}
		})
		w.DropFolders(0, MakeFolder(7, 1, Good))
		w.Advance(time.Hour)
		w.RunUntilCalm(72 * time.Hour)
		kit.Want(t, "o", len(w.Check(true).EntriesIn(ledger.Archived)), 2)
	})
}

// TestBatchRefused_I23 has the service refuse one document of fifty.
func TestBatchRefused_I23(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := New(t, Config{Seed: 5})
		w.Intercept(misspell("FAULT"))
		for i := range 50 {
			f := MakeFolder(5, i, Good)
			if i == 31 {
				f.Files["metadata.json"] = []byte(strings.Replace(string(f.Files["metadata.json"]), `"documentId":"`, `"documentId":"FAULT `, 1))
			}
			w.DropFolders(0, f)
		}
		w.Start()
		w.Advance(4 * time.Hour)
		o := w.Check(false)
		kit.Check(t, len(o.EntriesIn(ledger.Archived)) == 49 && len(o.EntriesIn(ledger.Rejected)) == 1,
			"%v, want len(o.EntriesIn(ledger.Archived)) = 49, len(o.EntriesIn(ledger.Rejected)) = 1", o)
	})
}

// TestEnvironment_I24 takes the rights, the credentials or the path of one vault away for
// six hours: nothing is rejected, the other vault goes on, and it resumes by itself.
func TestEnvironment_I24(t *testing.T) {
	ours := func(r *http.Request) bool { return strings.Contains(r.URL.Path, "VAULT-1") }
	kit.Rows(t, map[string]func(r *http.Request) (*http.Response, error){
		"401": func(r *http.Request) (*http.Response, error) {
			return respond(r, 401, `{"message":"Unauthorized"}`), nil
		},
		"403": func(r *http.Request) (*http.Response, error) { return respond(r, 403, `{"message":"no access"}`), nil },
		"404": func(r *http.Request) (*http.Response, error) { return respond(r, 404, ``), nil },
		"502": func(r *http.Request) (*http.Response, error) { return respond(r, 502, `<html>`), nil },
		"DNS": func(*http.Request) (*http.Response, error) {
			return nil, &os.SyscallError{Syscall: "connect", Err: os.ErrDeadlineExceeded}
		},
	}, func(t *testing.T, fault func(r *http.Request) (*http.Response, error)) {
		kit.ParallelBubble(t, func(t *testing.T) {
			w := New(t, Config{Seed: 6, Vaults: 2})
			w.Start()
			w.DropFolders(0, MakeFolder(6, 0, Good)) // on its way when the fault begins
			w.Advance(2 * time.Minute)
			w.Intercept(func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
				if r.Host != "store.example" && ours(r) && !strings.Contains(r.URL.Host, "store") {
					return fault(r)
				}
				return next.RoundTrip(r)
			})
			for i := range 10 {
				w.DropFolders(i%2, MakeFolder(6, 1+i, Good))
			}
			w.Advance(6 * time.Hour)
			p := w.d.State().Pauses
			kit.Check(t, len(p) == 1 && p[0].Target.String() == "vault VAULT-1", "pauses %+v", p)
			b := w.d.Ledger().Balance()
			kit.Check(t, b.States[ledger.Archived] == 5 && b.States[ledger.Rejected]+b.States[ledger.Quarantined] == 0,
				"meanwhile: %v", b)
			w.Intercept(nil)
			w.Advance(4 * time.Hour)
			kit.Len(t, "still paused", w.d.State().Pauses, 0)
			kit.Want(t, "o", len(w.Check(false).EntriesIn(ledger.Archived)), 11)
		})
	})
}

// TestUnknownWord_I12 meets a service with a word of its own that sounds like success.
func TestUnknownWord_I12(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := New(t, Config{Seed: 7, Emulator: func(c *emulator.Config) {
			c.Readings.InProgressWord, c.ArchiveMin, c.ArchiveMax = "ArchivingSuccessfulSoon", 60*time.Hour, 60*time.Hour
		}})
		w.Start()
		w.DropFolders(0, MakeFolder(7, 0, Good))
		w.Advance(59 * time.Hour)
		b := w.d.Ledger().Balance()
		kit.Check(t, b.States[ledger.Uploaded] == 1, "not uploaded: %v", b)
		n := strings.Count(w.log.String(), "does not know")
		kit.Check(t, n <= 1, "alarmed %d times", n)
		w.RunUntilCalm(4 * time.Hour)
		kit.Want(t, "o", len(w.Check(false).EntriesIn(ledger.Archived)), 1)
	})
}

// TestDropAway takes the drop folder away in the middle of everything, once leaving
// nothing and once an empty folder, as an unmounted share does.
func TestDropAway(t *testing.T) {
	kit.Rows(t, map[string]bool{"Vanished": false, "Unmounted": true}, func(t *testing.T, empty bool) {
		kit.ParallelBubble(t, func(t *testing.T) {
			w := New(t, Config{Seed: 8, Vaults: 2})
			w.Start()
			path := w.DropPath(0)
			for i := range 4 {
				w.DropFolders(0, MakeFolder(8, i, Good))
			}
			w.Advance(3 * time.Minute) // uploaded, not archived
			for i := range 4 {
				w.DropFolders(0, MakeFolder(8, 10+i, Good))
			}
			w.Advance(75 * time.Second) // claimed, not settled once more, or not even claimed
			w.failOn(os.Rename(path, path+" away"))
			if empty {
				w.failOn(os.Mkdir(path, 0o770))
			}
			w.DropFolders(1, MakeFolder(8, 20, Good))
			w.Advance(3 * time.Hour)
			before := w.d.Ledger().Head().N
			w.Advance(3 * time.Hour)
			n := w.d.Ledger().Head().N - before
			kit.Check(t, n <= 150, "%d journal lines in three hours about a folder that is not there", n)
			s := w.d.State().Drops
			kit.Check(t, s[0].Paused != "" && s[1].Paused == "", "paused: %q, %q", s[0].Paused, s[1].Paused)
			if b := w.d.Ledger().Balance(); b.States[ledger.Rejected]+b.States[ledger.Quarantined]+b.States[ledger.Duplicate] > 0 || b.States[ledger.Archived] < 5 {
				t.Errorf("meanwhile: %v", b)
			}
			w.Restart(Death) // a start without the folder changes nothing
			w.Advance(time.Hour)
			if empty {
				made := listNames(path)
				kit.Check(t, len(made) <= 0, "made in an empty folder that is not ours: %q", made)
				w.failOn(os.Remove(path))
			}
			w.failOn(os.Rename(path+" away", path))
			w.RunUntilCalm(24 * time.Hour)
			kit.Want(t, "o", len(w.Check(false).EntriesIn(ledger.Archived)), 9)
			kit.Want(t, "the error of Stat", kit.Err(os.Stat(filepath.Join(path, "_archived"))), nil)
		})
	})
}
