package simulation

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"vaultd/internal/apicall"
	"vaultd/internal/dropwork"
	"vaultd/internal/emulator"
	"vaultd/internal/ledger"
	"vaultd/internal/operator"
	"vaultd/internal/test/kit"
)

// seldom is a small world that looks for folders once an hour.
var seldom = Config{Seed: 1, Drop: func(_ int, d *dropwork.Settings, _ string) { d.Rescan = time.Hour }}

// failedThrice runs until a person is called, because the service failed three packages, and on until it has archived all
// of them by jobs that ran again. Nobody has asked since.
func failedThrice(t *testing.T) (*World, ledger.Entry) {
	w := New(t, seldom)
	w.SetPlan(firstUploads(3, emulator.Fault{Kind: emulator.Rerun, RerunAfter: 30 * time.Hour}))
	w.Start()
	w.DropFolders(0, MakeFolder(1, 0, Good))
	w.Advance(48 * time.Hour)
	e := w.only()
	kit.Need(t, e.State == ledger.Quarantined && !e.Contradicted && len(e.Registrations) == 3,
		"%s, contradicted %t, %+v", e.State, e.Contradicted, e.Registrations)
	return w, e
}

// only returns the one entry that there is.
func (w *World) only() (e ledger.Entry) {
	w.t.Helper()
	w.failOn(w.d.Ledger().EntriesOldestFirst(func(one ledger.Entry) error {
		e = one
		return nil
	}))
	return e
}

// Three packages were failed and archived later. A release asks first, and makes no fourth copy.
func TestRelease_I2_AsksAboutEveryRegistrationFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, e := failedThrice(t)
		after, err := w.d.Actions().Release(context.Background(), e, operator.Person{UID: 7, Reason: "asked the provider"})
		kit.Check(t, err == nil && after.State == ledger.Archived && after.PossibleDouble && after.IsArchivedTwice(),
			"%v: %s, double %t", err, after.State, after.PossibleDouble)
		w.Advance(6 * 24 * time.Hour) // with the questions of the third day
		w.RunUntilCalm(24 * time.Hour)
		o := w.Check(true)
		n := w.Emulator().CountCalls("register")
		kit.Check(t, n == 3 && len(o.EntriesIn(ledger.Archived)) == 1, "%d registrations: %v", n, o)
	})
}

// While the archive cannot be reached, a release changes nothing.
func TestRelease_I2_ChangesNothingUnasked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, e := failedThrice(t)
		var asked atomic.Int64
		w.Intercept(func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
			if n := asked.Add(1); strings.HasSuffix(r.URL.Path, "/status") && n > 1 { // the first registration is answered
				return nil, errors.New("no route to host")
			}
			return next.RoundTrip(r)
		})
		_, err := w.d.Actions().Release(context.Background(), e, operator.Person{UID: 7, Reason: "x"})
		fault, is := errors.AsType[*apicall.Error](err)
		if !errors.Is(err, operator.ErrNotAsked) || !is || fault.Outcome == apicall.Refused || fault.Outcome == apicall.NotProcessed || fault.Denied {
			t.Errorf("%v, want error operator.ErrNotAsked, is, fault.Outcome other than apicall.Refused, fault.Outcome other than apicall.NotProcessed, not fault.Denied", err)
		}
		now := w.only()
		kit.Check(t, now.Rev == e.Rev && now.State == ledger.Quarantined, "%s at revision %d, was %d", now.State, now.Rev, e.Rev)
		w.Intercept(nil)
		w.Advance(6 * 24 * time.Hour) // with the questions of the third day
		w.RunUntilCalm(24 * time.Hour)
		w.Check(true)
	})
}

// A folder that is quarantined while the service works on a package again is not sent once more.
func TestRelease_I2_WaitsForWhatIsUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := New(t, seldom)
		w.SetPlan(firstUploads(3, emulator.Fault{Kind: emulator.Rerun, RerunAfter: 40 * time.Hour})) // works on it in the last four hours
		w.Start()
		w.DropFolders(0, MakeFolder(1, 0, Good))
		var e ledger.Entry
		for e.State != ledger.Quarantined {
			w.Advance(time.Minute)
			e = w.only()
		}
		for w.Emulator().Registrations()[0].State != "ArchivingInProgress" {
			w.Advance(time.Minute)
		}
		e = w.only()
		after, err := w.d.Actions().Release(context.Background(), e, operator.Person{UID: 7, Reason: "x"})
		if err != nil || after.State != ledger.Uploaded || after.Current().Ticket.Remote != e.Registrations[0].Ticket.Remote {
			t.Errorf("%v: %s of %+v", err, after.State, after.Registrations)
		}
		w.Advance(6 * 24 * time.Hour) // with the questions of the third day
		w.RunUntilCalm(24 * time.Hour)
		w.Check(true)
	})
}

// firstUploads strikes the first n uploads.
func firstUploads(n int, f emulator.Fault) Plan {
	return func(op Op) Strike {
		if op.Seam != Calls || op.Name != "upload" || op.N > n {
			return Strike{}
		}
		return Strike{Call: f}
	}
}

// lately drops two folders, strikes the first uploads, and waits until everything is through.
func lately(t *testing.T, n int, f emulator.Fault) (o Outcome, statuses int) {
	synctest.Test(t, func(t *testing.T) {
		w := New(t, Config{Seed: 1})
		w.SetPlan(firstUploads(n, f))
		w.Start()
		w.DropFolders(0, MakeFolder(1, 0, Good), MakeFolder(1, 1, Good))
		w.Advance(24 * time.Hour)
		w.RunUntilCalm(40 * 24 * time.Hour)
		o, statuses = w.Check(true), w.Emulator().CountCalls("status")
	})
	return o, statuses
}

// The service says that it failed a package, and archives it hours later: both copies are in the archive, and the entry
// says so.
func TestLate_I2_FailedAndThenArchivedIsFlagged(t *testing.T) {
	o, _ := lately(t, 1, emulator.Fault{Kind: emulator.Rerun, RerunAfter: 4 * time.Hour})
	twice := doubles(o)
	kit.Check(t, twice == 1 && len(o.EntriesIn(ledger.Archived)) == 2, "%d entries say that they are archived twice: %v", twice, o)
}

// A job that runs again by itself mostly does so soon: the document is not sent once more.
func TestLate_I2_FailedAndSoonArchivedIsNotSentAgain(t *testing.T) {
	for _, again := range []time.Duration{2 * time.Minute, 55 * time.Minute} {
		t.Run(again.String(), func(t *testing.T) {
			o, _ := lately(t, 1, emulator.Fault{Kind: emulator.Rerun, RerunAfter: again})
			for _, e := range o.EntriesIn(ledger.Archived) {
				kit.Check(t, !e.PossibleDouble && e.Posts == 1,
					"%q: double %t, %d POSTs", e.Folder, e.PossibleDouble, e.Posts)
			}
		})
	}
}

// All three registrations that the service failed are archived later: the person who is asked about it learns it.
func TestLate_I2_EveryFailedOneIsArchivedLater(t *testing.T) {
	o, _ := lately(t, 6, emulator.Fault{Kind: emulator.Rerun, RerunAfter: 5 * time.Hour})
	for _, e := range o.Entries {
		if e.State != ledger.Quarantined && e.State != ledger.Archived || !e.IsArchivedTwice() || !e.PossibleDouble || !e.NeedsPerson() {
			t.Errorf("%q: %s, double %t, %+v", e.Folder, e.State, e.PossibleDouble, e.Registrations)
		}
	}
}

// A store that keeps what it calls refused.
func TestLate_I2_StoredThoughRefusedIsFlagged(t *testing.T) {
	for _, status := range []int{400, 403, 409, 412} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			o, _ := lately(t, 1, emulator.Fault{Kind: emulator.Status, Status: status, IsAfterWork: true})
			if twice := doubles(o); twice != 1 || len(o.EntriesIn(ledger.Archived)) != 2 {
				t.Errorf("%d entries say that they are archived twice: %v", twice, o)
			}
		})
	}
}

// A list that was fetched for other documents tells of it too, before anybody asks.
func TestLate_I2_AListForOthersTellsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := New(t, Config{Seed: 1, Emulator: func(c *emulator.Config) { c.ArchiveMin, c.ArchiveMax = 3*time.Minute, 3*time.Minute }})
		w.SetPlan(firstUploads(1, emulator.Fault{Kind: emulator.Status, Status: 412, IsAfterWork: true}))
		w.Start()
		w.DropFolders(0, MakeFolder(1, 0, Good))
		w.Advance(30 * time.Minute)
		e := w.only()
		kit.Need(t, e.State == ledger.Archived && !e.PossibleDouble, "%s, double %t", e.State, e.PossibleDouble)
		asked := w.Emulator().CountCalls("status")
		for i := range 5 {
			w.DropFolders(0, MakeFolder(1, 1+i, Good))
		}
		w.Advance(15 * time.Minute)
		var first ledger.Entry
		w.failOn(w.d.Ledger().EntriesOldestFirst(func(e ledger.Entry) error {
			if first.Key.IsZero() {
				first = e
			}
			return nil
		}))
		if !first.IsArchivedTwice() || !first.PossibleDouble || w.Emulator().CountCalls("status-list") == 0 {
			t.Errorf("%s, double %t, after %d questions and %d lists", first.State, first.PossibleDouble, w.Emulator().CountCalls("status")-asked, w.Emulator().CountCalls("status-list"))
		}
		w.RunUntilCalm(24 * time.Hour)
		w.Check(true)
	})
}

func doubles(o Outcome) (n int) {
	for _, e := range o.Entries {
		if e.IsArchivedTwice() && e.PossibleDouble && e.NeedsPerson() {
			n++
		}
	}
	return n
}

// A status list that is some minutes old still says "in progress" of what a question was told has failed. That is no
// second job: the document is registered again once, and no person is called.
func TestLate_I24_AnOldListTakesNoFailureBack(t *testing.T) {
	ages := []time.Duration{20 * time.Minute, 5 * time.Minute, 40 * time.Minute}
	if isSampled(t, "lists of three ages") {
		ages = ages[:1]
	}
	for _, age := range ages {
		kit.Bubble(t, age.String(), func(t *testing.T) {
			w := New(t, Config{Seed: 1, Emulator: func(c *emulator.Config) {
				c.Readings.ListAge = age
				c.FailDocument = func(_ string, nth int) string {
					if nth > 1 {
						return ""
					}
					return "an error of the first job"
				}
			}})
			w.Start()
			for i := range 60 { // so many that the list is worth asking for again and again
				w.DropFolders(0, MakeFolder(1, i, Good))
				w.Advance(2 * time.Minute)
			}
			w.RunUntilCalm(10 * 24 * time.Hour)
			for _, e := range w.Check(false).Entries {
				kit.Check(t, e.State == ledger.Archived && e.Posts <= 2,
					"%q: %s, %d POSTs, %+v", e.Folder, e.State, e.Posts, e.Registrations)
			}
		})
	}
}

// TestAsked_I24 restarts the daemon while the service wants to be left alone
// for an hour: that wait is in memory alone, so that a restart asks again at
// once, and every document arrives.
func TestAsked_I24(t *testing.T) {
	for name, op := range map[string]string{"Registering": "register", "Asking": "status"} {
		for _, kind := range []Kind{Graceful, Death} {
			t.Run(name+map[Kind]string{Graceful: "Stopped", Death: "Killed"}[kind], func(t *testing.T) {
				kit.ParallelBubble(t, func(t *testing.T) {
					w := New(t, Config{Seed: 17, Emulator: func(c *emulator.Config) { c.ArchiveMin, c.ArchiveMax = time.Minute, 2*time.Minute }})
					var first time.Time
					var again atomic.Int64
					w.SetPlan(func(o Op) Strike {
						if o.Seam != Calls || o.Name != op {
							return Strike{}
						}
						if first.IsZero() {
							first = time.Now()
						}
						if time.Since(first) >= time.Second { // two may be under way at once
							again.Add(1)
							return Strike{}
						}
						return Strike{Call: emulator.Fault{Kind: emulator.Status, Status: 429, RetryAfter: 24 * time.Hour}}
					})
					w.Start()
					w.DropFolders(0, MakeFolder(17, 0, Good), MakeFolder(17, 1, Good))
					w.Advance(30 * time.Minute)
					if b := w.d.Ledger().Balance(); again.Load() > 0 || b.States[ledger.Archived] != 0 {
						t.Errorf("asked %d times more although the service wants to be left alone: %v", again.Load(), b)
					}
					w.Restart(kind)
					w.Advance(10 * time.Minute)
					b := w.d.Ledger().Balance()
					kit.Check(t, b.States[ledger.Archived] == 2, "ten minutes after a restart: %v", b)
					w.RunUntilCalm(72 * time.Hour)
					w.Check(true)
				})
			})
		}
	}
}

// TestWaiting_I21 leaves the same invoice waiting for an operator's decision
// about the first one: packing it every half hour would be waste.
func TestWaiting_I21(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := New(t, Config{Seed: 10})
		packages := 0
		w.SetPlan(func(op Op) Strike {
			if op.Seam == Files && op.Name == "create" && op.On[len(op.On)-4:] == ".zip" {
				packages++
			}
			return Strike{}
		})
		w.Start()
		w.DropFolders(0, MakeFolder(10, 0, Fails))
		w.Advance(24 * time.Hour)
		w.DropFolders(0, MakeFolder(10, 0, Fails).CopyToDropAgain())
		w.Advance(24 * time.Hour)
		if b := w.d.Ledger().Balance(); b.States[ledger.Quarantined] != 1 || b.States[ledger.Discovered] != 1 {
			t.Errorf("%v, want b.States[ledger.Quarantined] = 1, b.States[ledger.Discovered] = 1", b)
		}
		kit.Check(t, packages <= 4, "packed %d times", packages)
		claimed := listNames(filepath.Join(w.DropPath(0), ".vaultd/claimed"))
		late := filepath.Join(w.DropPath(0), ".vaultd/claimed", claimed[len(claimed)-1], MakeFolder(10, 0, Fails).CopyToDropAgain().Name, "more.pdf")
		w.failOn(os.WriteFile(late, []byte("it is another invoice now"), 0o660))
		w.Advance(24 * time.Hour)
		kit.Want(t, "len(o.EntriesIn(ledger.Quarantined))", len(w.Check(false).EntriesIn(ledger.Quarantined)), 2)
	})
}
