package readings

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"vaultd/internal/apicall"
	"vaultd/internal/emulator"
	"vaultd/internal/ledger"
	"vaultd/internal/test/kit"
)

// tokensOnly is a service that takes no password.
func tokensOnly(c *emulator.Config) {
	c.Username, c.Secret, c.ClientID, c.ClientSecret = "", "", user, password
}

func withTokens(c *apicall.Config) { c.Auth.Method = apicall.OAuth2 }

// In production no answer of the stand-in counts, of neither host and wherever
// it is: the route pauses, says so and calls a person.
func TestReading_I12_I26_StandInInProduction(t *testing.T) {
	kit.Rows(t, map[string]string{"Everywhere": "", "AtTheStore": apiHost, "ForTokens": "tokens"}, func(t *testing.T, hides string) {
		s := setup{client: func(c *apicall.Config) { c.RefusedHeader = emulator.Header }}
		if hides == "tokens" {
			s.service, s.client = tokensOnly, func(c *apicall.Config) { withTokens(c); c.RefusedHeader = emulator.Header }
		}
		s.between = func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
			resp, err := next.RoundTrip(r)
			if err == nil && (r.URL.Host == hides || hides == "tokens" && !strings.HasSuffix(r.URL.Path, "/tokens")) {
				resp.Header.Del(emulator.Header)
			}
			return resp, err
		}
		virtual(t, s, func(t *testing.T, w *world) {
			w.pass(10*hour, time.Minute, never)
			for _, e := range w.entries() {
				if hides != apiHost && (e.State == ledger.Uploaded || e.State.IsFinal()) { // the service's own word counts, whoever had the package
					t.Errorf("%q is %s", e.Folder, e.State)
				}
			}
			w.says("route paused", "cause=stand-in", "a stand-in of the service answered", "correct the base_url of that service")
		})
	})
}

// Tokens of each spelling of Bearer are used; others, which need a proof that
// vaultd cannot give, pause the routes with words.
func TestReading_I24_TokenTypes(t *testing.T) {
	for kind, isUsed := range map[string]bool{"bearer": true, "BearerToken": true, "urn:x:bearer": true, "none": true, "DPoP": false, "mac": false} {
		t.Run(kind, func(t *testing.T) {
			s := setup{service: tokensOnly, client: withTokens, readings: emulator.Readings{TokenType: kind}}
			virtual(t, s, func(t *testing.T, w *world) {
				if !isUsed {
					w.pass(30*time.Minute, time.Second, never)
					w.waits()
					w.says("route paused", "not Bearer", "cause=token", "look at auth.token_url")
					kit.Must(t, w.service.SetReadings(emulator.Readings{}))
				}
				w.archives(hour)
			})
		})
	}
}

// A wrong secret rests the routes under either status; the right one, put in its place while vaultd runs, is enough.
func TestReading_I24_WrongSecretPausesAndIsCorrectedWhileRunning(t *testing.T) {
	type row struct {
		setup
		says []string
	}
	kit.Rows(t, map[string]row{
		"403": {setup{readings: emulator.Readings{BadCredentials: 403}}, []string{"403 Forbidden", "invalid credentials", `target="vault ACME"`, `target="vault BETA"`}},
		"401": {setup{readings: emulator.Readings{BadCredentials: 401}}, []string{"401 Unauthorized", "invalid credentials", "vault ACME", "vault BETA"}},
		"Error inside 200": {setup{service: tokensOnly, client: withTokens, readings: emulator.Readings{TokenErrorsAs200: true}},
			[]string{"get a token", "200 OK: invalid_client", "cause=credentials", "vault ACME"}},
		"Token": {setup{service: tokensOnly, client: withTokens}, []string{"get a token", "invalid_client", "vault ACME", "vault BETA"}},
	}, func(t *testing.T, row row) {
		row.secret = "S3cr3t of last year, canary"
		virtual(t, row.setup, func(t *testing.T, w *world) {
			w.pass(30*time.Minute, time.Second, never)
			w.waits()
			w.says(append(row.says, "route paused")...)
			n := w.service.CountCalls("register") + w.service.CountCalls("token")
			kit.Check(t, n >= 4 && n <= 60, "%d attempts in half an hour: neither silent nor a storm", n)
			w.setSecret(password)
			w.archives(hour)
			w.says("route open again")
		})
	})
}

// OAuth alone, with tokens that live for half a minute: they are renewed ahead, and no call is ever refused.
func TestReading_TokensOfThirtySeconds(t *testing.T) {
	var refused atomic.Int32
	s := setup{client: withTokens,
		service: func(c *emulator.Config) { tokensOnly(c); c.TokenLife = 30 * time.Second },
		between: func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
			resp, err := next.RoundTrip(r)
			if err == nil && resp.StatusCode == http.StatusUnauthorized {
				refused.Add(1)
			}
			return resp, err
		}}
	virtual(t, s, func(t *testing.T, w *world) {
		w.archives(hour)
		n := w.service.CountCalls("token")
		kit.Check(t, n >= 3 && refused.Load() <= 0, "%d tokens, %d calls refused", n, refused.Load())
	})
}

// Tokens that are revoked long before their time are renewed at once, whatever the service answers to a dead one: no
// route is paused, and nobody is called.
func TestReading_I24_RevokedTokens(t *testing.T) {
	for _, refusal := range []int{http.StatusUnauthorized, http.StatusForbidden} {
		t.Run(http.StatusText(refusal), func(t *testing.T) {
			s := setup{client: withTokens, readings: emulator.Readings{BadCredentials: refusal},
				service: func(c *emulator.Config) { tokensOnly(c); c.TokenLife = 24 * time.Hour },
				faults: func(op string, n int) emulator.Fault {
					if n == 1 && (op == "register" || op == "status") {
						return emulator.Fault{Kind: emulator.RevokeTokens}
					}
					return emulator.Fault{}
				}}
			virtual(t, s, func(t *testing.T, w *world) {
				w.archives(hour)
				kit.Lacks(t, "what is said", w.said(), "route paused")
				n := w.service.CountCalls("token")
				kit.Check(t, n >= 2 && n <= 3, "%d token requests", n)
			})
		})
	}
}

// A 403 about the rights on one vault says nothing about the token: the other vault is not delayed, and the route that
// is tried again and again costs few token requests.
func TestReading_I23_WrongVaultCostsFewTokens(t *testing.T) {
	s := setup{vaults: []string{"ACME", "WRONG"}, client: withTokens,
		service: func(c *emulator.Config) { tokensOnly(c); c.TokenLife = 24 * time.Hour }}
	virtual(t, s, func(t *testing.T, w *world) {
		w.pass(hour, time.Second, never)
		kit.Want(t, "archived", w.count(ledger.Archived), 3)
		w.pass(5*hour, time.Minute, never)
		w.says("vault WRONG", "403 Forbidden", "no access to this vault")
		if posts, tokens := w.service.CountCalls("register"), w.service.CountCalls("token"); posts < 60 || tokens > 2+6*4 {
			t.Errorf("%d registrations and %d token requests in six hours", posts, tokens)
		}
	})
}

// A scope that was not granted is named; so are the words in which a call is refused for want of one.
func TestReading_I24_MissingScopeIsNamed(t *testing.T) {
	asks := func(c *apicall.Config) {
		c.Auth.Method, c.Auth.Scopes = apicall.OAuth2, []string{"dataExtract.read", "importDocuments.write"}
	}
	type row struct {
		service func(*emulator.Config)
		says    string
	}
	kit.Rows(t, map[string]row{
		"NotGranted":   {func(c *emulator.Config) { c.Scopes = []string{"dataExtract.read"} }, "scope not granted (misspelled, or not given to this client): importDocuments.write"},
		"OtherIsAsked": {func(c *emulator.Config) { c.RequireScope = "vault.write" }, "User is not authorized to access this resource"},
	}, func(t *testing.T, row row) {
		virtual(t, setup{client: asks, service: func(c *emulator.Config) { tokensOnly(c); row.service(c) }}, func(t *testing.T, w *world) {
			w.pass(10*time.Minute, time.Second, never)
			w.waits()
			w.says(row.says, "vault ACME", "vault BETA")
		})
	})
}

// Both ways to write user and secret into a Basic header, with every character that tells them apart; where the two
// sides differ, a person is told and nothing is lost.
func TestReading_BasicEncodings(t *testing.T) {
	for _, way := range []string{apicall.Basic, apicall.OAuth2} {
		for _, ours := range []string{"raw", "rfc6749"} {
			for _, theirs := range []string{"raw", "rfc6749"} {
				name := strings.Join([]string{way, ours, "Asked", theirs}, "_")
				t.Run(name, func(t *testing.T) {
					s := setup{readings: emulator.Readings{BasicEncoding: theirs}, client: func(c *apicall.Config) { c.Auth.Method, c.Auth.Encoding = way, ours }}
					if way == apicall.OAuth2 {
						s.service = tokensOnly
					}
					virtual(t, s, func(t *testing.T, w *world) {
						if ours == theirs {
							w.archives(hour)
							return
						}
						w.pass(10*time.Minute, time.Second, never)
						w.waits()
						w.says("route paused")
						kit.Must(w.t, w.service.SetReadings(emulator.Readings{BasicEncoding: ours}))
						w.archives(hour)
					})
				})
			}
		}
	}
}

// A vault that is not ours, or a path that does not exist, is told in words; the other vault is not delayed (I23).
func TestReading_I23_WrongVaultDelaysNobodyElse(t *testing.T) {
	virtual(t, setup{vaults: []string{"ACME", "WRONG"}}, func(t *testing.T, w *world) {
		w.pass(hour, time.Second, never)
		archived := 0
		for _, e := range w.entries() {
			switch {
			case e.Vault == "ACME" && e.ArchivedAt.IsZero():
				t.Errorf("%q is delayed: %s", e.Folder, e.State)
			case e.Vault == "WRONG" && (!e.State.IsOpen() || e.NeedsPerson()):
				t.Errorf("%q is %s", e.Folder, e.State)
			case e.Vault == "ACME":
				archived++
			}
		}
		kit.Want(t, "archived", archived, 3)
		w.says("vault WRONG", "403 Forbidden", "no access to this vault")
		w.proven()
	})
}

func TestReading_I24_WrongBasePath(t *testing.T) {
	kit.Rows(t, map[string]string{"More": "/api", "Case": "/V1"}, func(t *testing.T, path string) {
		virtual(t, setup{client: func(c *apicall.Config) { c.BaseURL += path }}, func(t *testing.T, w *world) {
			w.pass(hour, time.Second, never)
			w.waits()
			w.says("502 Bad Gateway", "the URI or endpoint does not exist", "the base address or the case of the path may be wrong", "route paused")
		})
	})
}

// 404 for a vault is a matter of the path, not of the documents.
func TestReading_I24_VaultNotFoundForAWhile(t *testing.T) {
	virtual(t, setup{faults: first(6, "register", emulator.Fault{Kind: emulator.Status, Status: 404})}, func(t *testing.T, w *world) {
		w.pass(5*time.Second, time.Second, never)
		w.waits()
		w.archives(hour)
		w.says("404 Not Found", "route paused")
	})
}
