package readings

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/daemon"
	"vaultd/internal/emulator"
	"vaultd/internal/ledger"
	"vaultd/internal/test/kit"
)

// unknownStatuses are the answers with which a service may say that it does not know one bumId. Each of them may also
// say that a path is wrong.
var unknownStatuses = []int{http.StatusBadRequest, http.StatusNotFound, http.StatusUnprocessableEntity, http.StatusBadGateway}

// lostAtFirst loses the first registration: the service shows neither it nor what is uploaded to it for two months.
func lostAtFirst(op string, n int) emulator.Fault {
	if op == "register" && n == 1 {
		return emulator.Fault{VisibleAfter: 60 * 24 * hour}
	}
	return emulator.Fault{}
}

func oneByOne(c *daemon.Config) { c.BatchSize = 1 }

// slowly archives within a day or so.
func slowly(c *emulator.Config) { c.ArchiveMin, c.ArchiveMax = 20*hour, 24*hour }

// A bumId that the service does not know, however it says so, is that document's matter: after the grace a person is
// called, nothing is registered again, and nobody else waits.
func TestReading_I23_OneUnknownNumber(t *testing.T) {
	for _, status := range unknownStatuses {
		for name, s := range map[string]setup{
			"AmongOthers":             {vaults: []string{"ACME"}, folders: 4},
			"Alone":                   {vaults: []string{"ACME"}, folders: 1},
			"AmongOthersWithoutAList": {vaults: []string{"ACME"}, folders: 4, between: noList, service: slowly},
		} {
			t.Run(fmt.Sprintf("%d/%s", status, name), func(t *testing.T) {
				t.Parallel()
				s.faults, s.daemon = lostAtFirst, oneByOne
				s.readings = emulator.Readings{UnknownBumID: status}
				virtual(t, s, func(t *testing.T, w *world) {
					w.pass(30*time.Minute, 10*time.Second, never)
					posts, paused := w.service.CountCalls("register"), 0
					w.pass(5*hour, time.Minute, func() bool {
						paused += len(w.daemon.State().Pauses)
						return false
					})
					kit.Want(t, "unclear", w.count(ledger.Unclear), 1)
					n := w.service.CountCalls("register") - posts
					kit.Check(t, n <= 0, "registered %d times more: an absent number is no evidence", n)
					kit.Check(t, paused <= 0, "paused for %d minutes of five hours", paused)
					if w.count(ledger.Archived) != s.folders-1 {
						w.pass(20*hour, time.Minute, func() bool { return w.count(ledger.Archived) == s.folders-1 })
					}
					kit.Want(t, "archived", w.count(ledger.Archived), s.folders-1)
				})
			})
		}
	}
}

// noList is a service that does not allow the list.
func noList(r *http.Request, next http.RoundTripper) (*http.Response, error) {
	if r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/documents/status") {
		r = r.Clone(r.Context())
		r.URL.Path = strings.Replace(r.URL.Path, "/vaults/ACME/", "/vaults/NOBODYS/", 1)
	}
	return next.RoundTrip(r)
}

// A bumId that cannot be asked about alone is heard of in the list, even where nothing else is open.
func TestReading_I25_UnaskableNumberIsInTheList(t *testing.T) {
	for _, status := range unknownStatuses {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			t.Parallel()
			s := setup{vaults: []string{"ACME"}, folders: 1, faults: first(1, "register", emulator.Fault{Kind: emulator.Unaskable, Status: status})}
			virtual(t, s, func(t *testing.T, w *world) {
				w.archives(hour)
				kit.Lacks(t, "what is said", w.said(), "route paused")
			})
		})
	}
}

// Where the service answers nothing at all about a vault, no document is blamed, however long that lasts: the route is.
func TestReading_I24_NothingIsKnownOfTheVault(t *testing.T) {
	for _, status := range unknownStatuses {
		for _, folders := range []int{1, 3} {
			t.Run(fmt.Sprintf("%d/%d", status, folders), func(t *testing.T) {
				t.Parallel()
				var broken atomic.Bool
				broken.Store(true)
				s := setup{folders: folders, faults: func(op string, _ int) emulator.Fault {
					if broken.Load() && (op == "status" || op == "status-list") {
						return emulator.Fault{Kind: emulator.Status, Status: status}
					}
					return emulator.Fault{}
				}}
				virtual(t, s, func(t *testing.T, w *world) {
					w.pass(4*hour, time.Minute, never)
					kit.Want(t, "uploaded", w.count(ledger.Uploaded), 2*folders)
					w.says("status of vault ACME", "status of vault BETA", fmt.Sprint(status))
					broken.Store(false)
					w.archives(hour)
				})
			})
		}
	}
}

// A status list of uploaded documents leaves out every registration without content, also those that the store said it took
// and lost. What it leaves out is asked about alone: no number counts as unknown because of it, and all is archived.
func TestReading_I23_AStatusListOfUploadedDocuments(t *testing.T) {
	for _, list := range []string{"registered", "uploaded"} {
		t.Run(list, func(t *testing.T) {
			t.Parallel()
			s := setup{folders: 8, readings: emulator.Readings{StatusList: list}, daemon: seldomRescan,
				faults: func(op string, n int) emulator.Fault {
					switch {
					case op == "register" && n == 1:
						return emulator.Fault{Kind: emulator.Abort, IsAfterWork: true}
					case op == "upload" && n <= 8:
						return emulator.Fault{Kind: emulator.Vanish}
					}
					return emulator.Fault{}
				}}
			virtual(t, s, func(t *testing.T, w *world) {
				absent := 0
				w.pass(4*hour, 10*time.Second, func() bool {
					for _, e := range w.entries() {
						for _, r := range e.Registrations {
							if r.LastStatus == archive.Absent {
								absent++
							}
						}
					}
					return w.allArchived()
				})
				if absent > 0 || w.service.CountCalls("status-list") == 0 {
					t.Errorf("%d times held to be unknown to the service, after %d lists", absent, w.service.CountCalls("status-list"))
				}
				w.archives(4 * hour)
			})
		})
	}
}
