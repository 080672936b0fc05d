package emulator

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"vaultd/internal/test/kit"
)

func TestAuthorization(t *testing.T) {
	basic := func(user, secret string) string {
		r := &http.Request{Header: http.Header{}}
		r.SetBasicAuth(user, secret)
		return "Authorization: " + r.Header.Get("Authorization")
	}
	rows := []struct {
		name, path, header string
		status             int
	}{
		{"Right", "/v1/vaults", basic("user", "s3=cret/+"), 200},
		{"None", "/v1/vaults", "Authorization:", 401},
		{"WrongSecret", "/v1/vaults", basic("user", "wrong"), 403},
		{"FormEncoded", "/v1/vaults", basic("user", "s3%3Dcret%2F%2B"), 403},
		{"ClientAsUser", "/v1/vaults", basic("client", "cl%secret"), 403},
		{"UnknownToken", "/v1/vaults", "Authorization: Bearer x.y.z", 403},
		{"OtherType", "/v1/vaults", "Authorization: Digest x", 401},
		{"ForeignVault", "/v1/vaults/V3/documents/status", basic("user", "s3=cret/+"), 403},
		{"OtherCaseOfVault", "/v1/vaults/v1/documents/status", basic("user", "s3=cret/+"), 403},
	}
	for _, row := range rows {
		w := newWorld(t, nil)
		a := w.call("GET", row.path, "", row.header)
		kit.Check(t, a.status == row.status, "%s: status %d, want %d: %s", row.name, a.status, row.status, a.body)
	}
	w := newWorld(t, func(c *Config) { c.Readings.BadCredentials, c.Readings.BasicEncoding = 401, "rfc6749" })
	kit.Want(t, "reading 401: status", w.call("GET", "/v1/vaults", "", basic("user", "wrong")).status, 401)
	kit.Want(t, "reading rfc6749: status",
		w.call("GET", "/v1/vaults", "", basic("user", "s3%3Dcret%2F%2B")).status, 200)
	req := w.request("GET", "/v1/vaults", "")
	req.Header.Add("Authorization", "Bearer x")
	kit.Want(t, "two headers: status", w.send(req).status, 400)
	w.wantViolation("two Authorization headers")
}

// A vault with an account of its own is listed to that account and used by it, and by no other; the same with tokens.
func TestAuthorization_AccountOfAVault(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.Vaults[1].Account = Account{"french", "s3cret"} })
	bearer := func(id, secret string) string {
		req := w.request("POST", "/v1/tokens", "grant_type=client_credentials")
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		req.SetBasicAuth(id, secret)
		a := w.send(req)
		var got struct {
			Token string `json:"access_token"`
		}
		err := json.Unmarshal([]byte(a.body), &got)
		kit.Need(t, err == nil && got.Token != "", "no token for %s: %s", id, a.body)
		return "Bearer " + got.Token
	}
	basic := func(user, secret string) string {
		r := &http.Request{Header: http.Header{}}
		r.SetBasicAuth(user, secret)
		return r.Header.Get("Authorization")
	}
	for name, row := range map[string]struct {
		header, sees, hidden string
	}{
		"Main":       {basic("user", "s3=cret/+"), "V1", "V2"},
		"Own":        {basic("french", "s3cret"), "V2", "V1"},
		"MainTokens": {bearer("client", "cl%secret"), "V1", "V2"},
		"OwnTokens":  {bearer("french", "s3cret"), "V2", "V1"},
	} {
		header := "Authorization: " + row.header
		if a := w.call("GET", "/v1/vaults", "", header); a.status != 200 || !strings.Contains(a.body, row.sees) || strings.Contains(a.body, row.hidden) {
			t.Errorf("%s: %d %s, want a.status = 200, a.body with %q, a.body without %q", name, a.status, a.body, row.sees, row.hidden)
		}
		kit.Want(t, name+": its own vault gives",
			w.call("GET", "/v1/vaults/"+row.sees+"/documents/status", "", header).status, 200)
		for _, path := range []string{"/documents/status", "/index", "/documents/x", "/documents/x/status"} {
			a := w.call("GET", "/v1/vaults/"+row.hidden+path, "", header)
			kit.Check(t, a.status == 403, "%s: another account's vault gives %d to %s", name, a.status, path)
		}
	}
	kit.Want(t, "one account's name with another's secret gives",
		w.call("GET", "/v1/vaults", "", "Authorization: "+basic("french", "s3=cret/+")).status, 403)
}

func TestUnknownPaths(t *testing.T) {
	w := newWorld(t, nil)
	for _, call := range []string{
		"GET /", "GET /v1", "GET /V1/vaults", "GET /v1/Vaults", "GET /v1/vaults/", "GET /v1//vaults", "GET /v1/vaults/V1/documents",
		"DELETE /v1/vaults/V1/documents", "HEAD /v1/vaults", "GET /v1/vaults/V1/index/", "GET /v2/vaults", "GET /v1/tokens", "GET /v1/vaults/../vaults",
	} {
		method, path, _ := strings.Cut(call, " ")
		kit.Want(t, call+": status", w.call(method, path, "").status, 502)
	}
}

func (w *world) token(scope string, headers ...string) answer {
	form := url.Values{"grant_type": {"client_credentials"}, "scope": {scope}}
	req := w.request("POST", "/v1/tokens", form.Encode(), "Content-Type: application/x-www-form-urlencoded")
	req.SetBasicAuth("client", "cl%secret")
	return w.send(req)
}

func TestTokens(t *testing.T) {
	w := newWorld(t, func(c *Config) {
		c.Scopes, c.RequireScope, c.TokenLife = []string{"vault.read", "vault.write"}, "vault.write", 30*time.Second
	})
	var got struct {
		AccessToken string `json:"access_token"`
		TokenType   string `json:"token_type"`
		ExpiresIn   int    `json:"expires_in"`
		Scope       string
	}
	a := w.token("vault.write vault.wriet")
	w.decode(a, &got)
	kit.Need(t, got.TokenType == "Bearer" && got.ExpiresIn == 30 && got.Scope == "vault.write", "token answer %+v", got)
	bearer := "Authorization: Bearer " + got.AccessToken
	w.now = w.now.Add(29 * time.Second)
	w.restart() // tokens outlive the server
	kit.Want(t, "before its end: status", w.call("GET", "/v1/vaults", "", bearer).status, 200)
	kit.Want(t, "altered: status", w.call("GET", "/v1/vaults", "", bearer+"x").status, 403)
	w.now = w.now.Add(time.Second)
	kit.Want(t, "at its end: status", w.call("GET", "/v1/vaults", "", bearer).status, 403)
	w.decode(w.token("vault.read"), &got)
	kit.Want(t, "without the scope: status",
		w.call("GET", "/v1/vaults", "", "Authorization: Bearer "+got.AccessToken).status, 403)
}

// Revoked tokens stay dead when the server is started again, and one that is given afterwards works at the same instant.
func TestTokens_RevokedEarly(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.Faults.Hook = revokeAt("vaults", 2) })
	bearer := func() string {
		var got struct {
			AccessToken string `json:"access_token"`
		}
		w.decode(w.token(""), &got)
		return "Authorization: Bearer " + got.AccessToken
	}
	old := bearer()
	kit.Want(t, "before: status", w.call("GET", "/v1/vaults", "", old).status, 200)
	kit.Want(t, "revoked: status", w.call("GET", "/v1/vaults", "", old).status, 403)
	kit.Want(t, "a new token: status", w.call("GET", "/v1/vaults", "", bearer()).status, 200)
	w.restart()
	kit.Want(t, "revoked, after a restart: status", w.call("GET", "/v1/vaults", "", old).status, 403)
	w = newWorld(t, func(c *Config) { c.Readings.BadCredentials = 401 })
	kit.Want(t, "reading 401: status", w.call("GET", "/v1/vaults", "", "Authorization: Bearer x.y.z").status, 401)
}

// revokeAt revokes all tokens at the n-th call of an op.
func revokeAt(op string, nth int) func(string, int) Fault {
	return func(called string, n int) Fault {
		if called != op || n != nth {
			return Fault{}
		}
		return Fault{Kind: RevokeTokens}
	}
}

func TestTokenRefusals(t *testing.T) {
	w := newWorld(t, nil)
	const form = "application/x-www-form-urlencoded"
	rows := []struct {
		name, user, secret, body, contentType string
		status                                int
		word                                  string
	}{
		{"WrongSecret", "client", "wrong", "grant_type=client_credentials", form, 401, `"invalid_client"`},
		{"UserAsClient", "user", "s3=cret/+", "grant_type=client_credentials", form, 401, `"invalid_client"`},
		{"NoGrant", "client", "cl%secret", "scope=a", form, 400, `"invalid_request"`},
		{"JSON", "client", "cl%secret", `{"grant_type":"client_credentials"}`, "application/json", 400, `"invalid_request"`},
		{"SecretInForm", "client", "cl%secret", "grant_type=client_credentials&client_secret=cl%25secret", form, 400, `"invalid_request"`},
	}
	for _, row := range rows {
		req := w.request("POST", "/v1/tokens", row.body, "Content-Type: "+row.contentType)
		req.SetBasicAuth(row.user, row.secret)
		a := w.send(req)
		kit.Check(t, a.status == row.status && strings.Contains(a.body, row.word), "%s: status %d, body %s", row.name, a.status, a.body)
	}
	w.wantViolation("client secret outside")
}

func TestOnlyTheConfiguredMethods(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.Username, c.Secret = "", "" })
	kit.Want(t, "Basic where only OAuth is offered: status", w.call("GET", "/v1/vaults", "").status, 401)
	w = newWorld(t, func(c *Config) { c.ClientID, c.ClientSecret = "", "" })
	kit.Want(t, "OAuth where only Basic is offered: status", w.token("x").status, 401)
}

func TestDateAndRequestID(t *testing.T) {
	w := newWorld(t, nil)
	for _, path := range []string{"/v1/vaults", "/nothing", docs + "/x/status"} {
		a := w.call("GET", path, "", "X-SVC-REQUEST-ID: r-42")
		kit.Check(t, a.header.Get("Date") == "Fri, 20 Nov 2020 12:00:00 GMT" && a.header.Get("X-Svc-Request-Id") == "r-42",
			"%s: headers %v", path, a.header)
	}
}

func TestVaultListForms(t *testing.T) {
	for form, want := range map[string]string{
		"objects": `[{"name":"Acme Germany","vaultId":"V1"},{"name":"Acme France","vaultId":"V2"}]`,
		"ids":     `["V1","V2"]`,
		"wrapped": `{"vaults":[{"name":"Acme Germany","vaultId":"V1"},{"name":"Acme France","vaultId":"V2"}]}`,
	} {
		kit.Want(t, form, newWorld(t, func(c *Config) { c.Readings.VaultList = form }).call("GET", "/v1/vaults", "").body, want)
	}
}

func TestErrorBodyForms(t *testing.T) {
	seen := map[string]bool{}
	forms := []string{"message", "Message", "detail", "detail-list", "error", "oauth", "service", "network", "wrapped", "xml", "empty", "html"}
	for _, form := range forms {
		w := newWorld(t, func(c *Config) { c.Readings.ErrorBody = form })
		a := w.call("GET", docs+"/x/status", "")
		kit.Check(t, a.status == 404 && !seen[a.body], "%s: status %d, body %s", form, a.status, a.body)
		seen[a.body] = true
	}
}

func TestDownloadForms(t *testing.T) {
	for _, form := range []string{"bytes", "redirect", "json"} {
		w := newWorld(t, func(c *Config) { c.ArchiveMin, c.Readings.Download = time.Hour, form })
		ticket := w.register(1)
		w.mustPut(ticket, zipOf("a"))
		kit.Want(t, form+": status", w.call("GET", docs+"/"+ticket.bumID, "").status, 404)
		w.now = w.now.Add(time.Hour)
		a := w.call("GET", docs+"/"+ticket.bumID, "")
		var at struct{ URL string }
		switch form {
		case "redirect":
			at.URL = a.header.Get("Location")
		case "json":
			w.decode(a, &at)
		}
		if at.URL != "" {
			kit.Want(t, form+": status", w.call("GET", at.URL, "", "Authorization: Basic eDp5").status, 400)
			a = w.call("GET", at.URL, "")
		}
		kit.Check(t, a.status == 200 && a.body == zipOf("a"), "%s: status %d, body %q", form, a.status, a.body)
	}
}

// A test says how many downloads it grants: one more is answered, and remembered. What was not there costs nothing.
func TestDownloadBeyondTheGrant(t *testing.T) {
	for _, form := range []string{"bytes", "redirect", "json"} {
		w := newWorld(t, func(c *Config) { c.Readings.Download = form })
		ticket := w.register(1)
		w.GrantDownloads(2)
		w.call("GET", docs+"/"+ticket.bumID, "") // not there yet
		w.mustPut(ticket, zipOf("a"))
		for range 2 {
			a := w.call("GET", docs+"/"+ticket.bumID, "")
			kit.Check(t, a.status < 400, "%s: status %d", form, a.status)
		}
		w.wantNoViolations()
		w.call("GET", docs+"/"+ticket.bumID, "")
		w.wantViolation("download of " + ticket.bumID + " beyond what was granted")
	}
}

func TestRedirectedCalls(t *testing.T) {
	for to, want := range map[string]string{"same": "http://api.test/moved/v1/vaults?x=1", "https://other.test/": "https://other.test/moved/v1/vaults?x=1"} {
		w := newWorld(t, func(c *Config) { c.Readings.RedirectTo = to })
		a := w.call("GET", "/v1/vaults?x=1", "")
		if a.status != 307 || a.header.Get("Location") != want {
			t.Errorf("%s: status %d to %s", to, a.status, a.header.Get("Location"))
		}
		kit.Want(t, to+": status",
			w.call("GET", a.header.Get("Location"), "", "Authorization: Basic dXNlcjpzMz1jcmV0Lys=").status, 200)
	}
}

func TestOtherReadings(t *testing.T) {
	w := newWorld(t, func(c *Config) {
		c.Readings.NumbersAsStrings, c.Readings.InProgressWord, c.Readings.URLForm = true, "ArchivingPaused", "string"
	})
	ticket := w.register(1, `,"amount":12.50`)
	w.SetFaults(Faults{Hook: func(op string, n int) Fault {
		return Fault{VisibleAfter: map[string]time.Duration{"upload": time.Minute}[op]}
	}})
	w.mustPut(ticket, zipOf("a"))
	w.now = w.now.Add(time.Minute)
	kit.Holds(t, "the answer", w.call("GET", "/v1/vaults/V1/index", "").body, `"amount":12.50`, `"found":"1"`)
	kit.Holds(t, "the answer", w.token("x").body, `"expires_in":"3600"`)
	w = newWorld(t, func(c *Config) { c.ArchiveMin, c.Readings.InProgressWord = time.Hour, "ArchivingPaused" })
	ticket = w.register(1)
	w.mustPut(ticket, zipOf("a"))
	kit.Want(t, "state", w.state(ticket.bumID), "ArchivingPaused")
}

func TestConfigIsChecked(t *testing.T) {
	good := newWorld(t, nil).cfg
	rows := map[string]func(*Config){
		"NoDir":          func(c *Config) { c.Dir = "" },
		"NoCredentials":  func(c *Config) { c.Username, c.Secret, c.ClientID, c.ClientSecret = "", "", "", "" },
		"NoVault":        func(c *Config) { c.Vaults = nil },
		"HalfSecond":     func(c *Config) { c.Window = 500 * time.Millisecond },
		"UnknownReading": func(c *Config) { c.Readings.ETag = "MD5" },
		"UnknownOp":      func(c *Config) { c.Faults.Rules = []Rule{{Op: "put"}} },
		"UnknownKind":    func(c *Config) { c.Faults.Rules = []Rule{{Fault: Fault{Kind: "die"}}} },
		"RateOverOne":    func(c *Config) { c.Faults.Rules = []Rule{{Rate: 2}} },
		"DirInUse":       func(c *Config) {},
	}
	for name, spoil := range rows {
		cfg := good
		if name != "DirInUse" {
			cfg.Dir = t.TempDir()
		}
		spoil(&cfg)
		if s, err := New(cfg); err == nil {
			t.Errorf("%s: accepted", name)
			_ = s.Close()
		}
	}
}

func TestParseRule(t *testing.T) {
	for text, want := range map[string]Rule{
		"upload:abort:0.1":       {"upload", 0.1, Fault{Kind: Abort}},
		"register:abort-done:1":  {"register", 1, Fault{Kind: Abort, IsAfterWork: true}},
		"*:429:0.05":             {"", 0.05, Fault{Kind: Status, Status: 429, RetryAfter: 2 * time.Second}},
		"status-list:503-done:0": {"status-list", 0, Fault{Kind: Status, Status: 503, IsAfterWork: true, RetryAfter: 2 * time.Second}},
		"upload:late:0.5":        {"upload", 0.5, Fault{Delay: 5 * time.Second, DelayAfter: 5 * time.Second}},
	} {
		kit.Want(t, text, kit.Value(ParseRule(text))(t), want)
	}
	for _, text := range []string{"", "upload", "upload:abort", "put:abort:1", "upload:die:1", "upload:abort:x", "upload:abort:1.1", "upload:abort:NaN", "upload:200:1"} {
		kit.Fails(t, fmt.Sprintf("%q: accepted", text), kit.Err(ParseRule(text)))
	}
	kit.Check(t, slices.Contains(kinds, DoubleBumID), "a kind is missing from the list")
}
