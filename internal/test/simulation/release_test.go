package simulation

import (
	"context"
	"errors"
	"net/http"
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
		if now := w.only(); now.Rev != e.Rev || now.State != ledger.Quarantined {
			t.Errorf("%s at revision %d, was %d", now.State, now.Rev, e.Rev)
		}
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
