package readings

import (
	"fmt"
	"io"
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

// A mistyped vault is named together with what the archive lists, at the start and after a day; the other vault's folders
// are archived all the same, and only the mistyped one's own calls pause it.
func TestReading_AMistypedVaultIsNamed(t *testing.T) {
	const want = `The archive lists ACME, BETA, not "ACNE". Compare drops[1].vault letter by letter.`
	for _, form := range []string{"objects", "ids", "wrapped"} {
		t.Run(form, func(t *testing.T) {
			s := setup{vaults: []string{"BETA", "ACNE", "ACNE"}, readings: emulator.Readings{VaultList: form}, daemon: seldomRescan}
			virtual(t, s, func(t *testing.T, w *world) {
				w.pass(hour, time.Minute, never)
				kit.Want(t, "advice", w.daemon.State().Advice, []present.UnlistedVault{{Vault: "ACNE", Text: want}})
				w.says("letter by letter")
				for _, e := range w.entries() {
					kit.Check(t, (e.Vault == "BETA") == (e.State == ledger.Archived),
						"%q of vault %s is %s", e.Folder, e.Vault, e.State)
				}
				w.pass(24*hour, 10*time.Minute, never)
				kit.Want(t, "calls for the list in a day and an hour", w.service.CountCalls("vaults"), 2)
			})
		})
	}
}

// An archive that forbids the list, does not have it or does not answer changes nothing: no advice, no pause, no call more
// than once a day where it said no, and no token beside the first.
func TestReading_I24_AnArchiveWithoutAListOfVaults(t *testing.T) {
	for name, row := range map[string]struct {
		fault emulator.Fault
		asked int // in a day and an hour
	}{
		"Unauthorized": {emulator.Fault{Kind: emulator.Status, Status: http.StatusUnauthorized}, 2},
		"Forbidden":    {emulator.Fault{Kind: emulator.Status, Status: http.StatusForbidden}, 2},
		"NotFound":     {emulator.Fault{Kind: emulator.Status, Status: http.StatusNotFound}, 2},
		"BadGateway":   {emulator.Fault{Kind: emulator.Status, Status: http.StatusBadGateway}, 2},
		"Overloaded":   {emulator.Fault{Kind: emulator.Status, Status: http.StatusTooManyRequests, RetryAfter: hour}, 26},
		"NoAnswer":     {emulator.Fault{Kind: emulator.Abort}, 26},
		"WebPage":      {emulator.Fault{Kind: emulator.HTML}, 26},
		"EmptyList":    {emulator.Fault{}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			s := setup{client: withTokens, daemon: seldomRescan,
				service: func(c *emulator.Config) {
					tokensOnly(c)
					c.TokenLife = 24 * hour
				},
				faults: func(op string, _ int) emulator.Fault {
					if op == "vaults" {
						return row.fault
					}
					return emulator.Fault{}
				}}
			if name == "EmptyList" {
				s.between = withoutVaults
			}
			virtual(t, s, func(t *testing.T, w *world) {
				w.archives(hour)
				w.pass(25*hour, 10*time.Minute, never)
				state := w.daemon.State()
				kit.Check(t, len(state.Advice)+len(state.Pauses) <= 0,
					"advice %q, pauses %+v", state.Advice, state.Pauses)
				kit.Want(t, "calls for the list", w.service.CountCalls("vaults"), row.asked)
				if n := w.service.CountCalls("token"); n != 2 { // the second when four fifths of the first one's life are over
					t.Errorf("%d token requests", n)
				}
			})
		})
	}
}

// Two vaults with accounts of their own, one of passwords and one of tokens: everything is archived, each account is told of
// its own vault alone, and the wrong secret of one stops no other. The right one counts while vaultd runs.
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
			w.pass(25*hour, hour, never)
			got := w.daemon.State().Advice
			kit.Check(t, len(got) <= 0, "advice %q", got)
		})
	})
}

// seldomRescan makes long virtual times cheap.
func seldomRescan(c *daemon.Config) {
	for i := range c.Drops {
		c.Drops[i].Rescan = 5 * time.Minute
	}
}

// withoutVaults empties the list of vaults.
func withoutVaults(r *http.Request, next http.RoundTripper) (*http.Response, error) {
	resp, err := next.RoundTrip(r)
	if err != nil || r.URL.Path != "/v1/vaults" {
		return resp, err
	}
	resp.Body.Close()
	resp.Body, resp.ContentLength = io.NopCloser(strings.NewReader("[]")), 2
	resp.Header.Del("Content-Length")
	return resp, nil
}
