package readings

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"vaultd/internal/apicall"
	"vaultd/internal/archive"
	"vaultd/internal/daemon"
	"vaultd/internal/emulator"
	"vaultd/internal/ingest"
	"vaultd/internal/ledger"
	"vaultd/internal/present"
	"vaultd/internal/test/kit"
	"vaultd/internal/vaultapi"
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
				kit.Check(t, absent <= 0 && w.service.CountCalls("status-list") != 0,
					"%d times held to be unknown to the service, after %d lists", absent, w.service.CountCalls("status-list"))
				w.archives(4 * hour)
			})
		})
	}
}

// The documents of a mistyped vault wait; the other vault's are archived all the
// same. The first refusal already needs a person, and its advice names the id
// and the command that lists the vaults. The daemon never asks for the list.
func TestReading_I24_I26_AMistypedVaultIsNamed(t *testing.T) {
	s := setup{vaults: []string{"BETA", "ACNE", "ACNE"}, daemon: seldomRescan}
	virtual(t, s, func(t *testing.T, w *world) {
		w.pass(hour, time.Minute, never)
		pauses := w.daemon.State().Pauses
		kit.Len(t, "pauses", pauses, 1)
		kit.Want(t, "target", pauses[0].Target, ingest.RegisterTarget("ACNE"))
		kit.Want(t, "needs a person", pauses[0].NeedsPerson(), true)
		kit.Holds(t, "advice", present.AdviseOnPause(pauses[0]), "compare the vault's id with vaultd vaults")
		for _, e := range w.entries() {
			kit.Check(t, (e.Vault == "BETA") == (e.State == ledger.Archived),
				"%q of vault %s is %s", e.Folder, e.Vault, e.State)
		}
		kit.Want(t, "calls for the list", w.service.CountCalls("vaults"), 0)
	})
}

// Two vaults with accounts of their own, one of passwords and one of tokens: everything is archived, and the wrong secret of one stops no other. The right one counts while vaultd runs.
func TestReading_I24_AnAccountForEachVault(t *testing.T) {
	kit.Rows(t, map[string]bool{"Passwords": false, "Tokens": true}, func(t *testing.T, tokens bool) {
		var secret atomic.Value
		secret.Store("S3cr3t of last year, canary")
		s := setup{daemon: func(c *daemon.Config) { c.Drops[1].Account = "beta" },
			service: func(c *emulator.Config) {
				c.ClientID, c.ClientSecret = user, password
				c.Vaults[1].Account = emulator.Account{Name: "beta-user", Secret: "S3cr3t of beta, canary"}
			},
			vaultapi: func(c *vaultapi.Config) {
				auth := apicall.Auth{Method: apicall.Basic, Username: "beta-user", Secret: func() (string, error) { return secret.Load().(string), nil }}
				if tokens {
					auth.Method = apicall.OAuth2
				}
				beta := kit.Value(c.API.WithAuth(auth))(t)
				c.Accounts = map[archive.VaultID]*apicall.API{"BETA": beta}
			}}
		if tokens {
			s.client = withTokens
		}
		virtual(t, s, func(t *testing.T, w *world) {
			w.pass(hour, 10*time.Second, never)
			for _, e := range w.entries() {
				kit.Check(t, (e.Vault == "ACME") == (e.State == ledger.Archived),
					"%q of vault %s is %s", e.Folder, e.Vault, e.State)
			}
			for _, p := range w.daemon.State().Pauses {
				kit.Want(t, "paused", p.Target, ingest.RegisterTarget("BETA"))
			}
			secret.Store("S3cr3t of beta, canary")
			w.archives(hour)
		})
	})
}

// seldomRescan makes long virtual times cheap.
func seldomRescan(c *daemon.Config) {
	for i := range c.Drops {
		c.Drops[i].Rescan = 5 * time.Minute
	}
}
