package apicall

import (
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"vaultd/internal/test/kit"
)

func writeCA(t *testing.T, srv *httptest.Server) string {
	file := filepath.Join(t.TempDir(), "ca.pem")
	kit.Must(t, os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw}), 0o600))
	return file
}

func TestBasic_RawSecretAndRequestID(t *testing.T) {
	current := secretCanary
	var got []*http.Request
	srv := serve(t, func(w http.ResponseWriter, r *http.Request) { got = append(got, r) })
	api, _ := clients(t, Config{BaseURL: srv.URL + "/base/", RequestIDHeader: "X-Call",
		Auth: Auth{Method: Basic, Username: "u ser", Secret: func() (string, error) { return current, nil }}})
	ans := kit.Value(do(t, api, Request{Op: "ask", Path: []string{"v1", "a/b c"}, Query: map[string][]string{"cursor": {"x&y"}}}))(t)
	current = "renewed"
	kit.Value(do(t, api, get("ask")))(t)
	user, pass, _ := got[0].BasicAuth()
	kit.Check(t, user == "u ser" && pass == secretCanary, "sent %q %q", user, pass)
	_, pass, _ = got[1].BasicAuth()
	kit.Check(t, pass == "renewed", "a renewed secret was not read: %q", pass)
	kit.Want(t, "the request", got[0].RequestURI, "/base/v1/a%2Fb%20c?cursor=x%26y")
	id := got[0].Header.Get("X-Call")
	if _, err := uuid.Parse(id); err != nil || id != ans.RequestID || id == got[1].Header.Get("X-Call") {
		t.Errorf("request ids %q, %q, answer %q", id, got[1].Header.Get("X-Call"), ans.RequestID)
	}
	if time.Since(ans.Date()).Abs() > time.Minute {
		t.Errorf("Date is %v", ans.Date())
	}
}

// tokenServer grants tokens tok-canary-…-1, -2, … and accepts only the newest.
type tokenServer struct {
	life     int
	scope    string
	answer   string // instead of a token
	status   int
	mu       sync.Mutex
	granted  int
	requests []string // Authorization headers of token requests
	calls    int
	revoked  bool
}

func (s *tokenServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if strings.HasSuffix(r.URL.Path, "/v1/tokens") {
		r.ParseForm()
		s.requests = append(s.requests, r.Header.Get("Authorization")+" "+r.PostForm.Encode())
		if s.status != 0 {
			w.WriteHeader(s.status)
			fmt.Fprint(w, s.answer)
			return
		}
		s.granted++
		s.revoked = false
		fmt.Fprintf(w, `{"access_token":"%s-%d","token_type":"Bearer","expires_in":%d,"scope":%q}`, tokenCanary, s.granted, s.life, s.scope)
		return
	}
	s.calls++
	if s.revoked || r.Header.Get("Authorization") != fmt.Sprintf("Bearer %s-%d", tokenCanary, s.granted) || len(r.Header.Values("Authorization")) != 1 {
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprintf(w, `{"message":"token %s refused"}`, r.Header.Get("Authorization"))
	}
}

func TestOAuth_TokenRequest(t *testing.T) {
	rows := []struct{ encoding, want string }{
		{"raw", basicHeader("client", secretCanary, false).header},
		{"rfc6749", basicHeader("client", "S3cr3t%2B%2F%3D%21canary", false).header},
	}
	for _, r := range rows {
		t.Run(r.encoding, func(t *testing.T) {
			ts := &tokenServer{life: 3600, scope: "write read"}
			srv := serve(t, ts.ServeHTTP)
			auth := oauth("read", "write")
			auth.Encoding = r.encoding
			api, _ := clients(t, Config{BaseURL: srv.URL, Auth: auth})
			for range 3 {
				kit.Value(do(t, api, get("ask")))(t)
			}
			kit.Want(t, "token requests", ts.requests, []string{r.want + " grant_type=client_credentials&scope=read+write"})
		})
	}
}

// A password service may want the same escapes as a token endpoint; then even a colon can be in the name.
func TestBasic_Encodings(t *testing.T) {
	for _, r := range []struct{ encoding, user, pass string }{
		{"raw", "us er", secretCanary}, {"", "us er", secretCanary}, {"rfc6749", "us%3Aer", "S3cr3t%2B%2F%3D%21canary"},
	} {
		srv := serve(t, func(w http.ResponseWriter, req *http.Request) {
			user, pass, _ := req.BasicAuth()
			kit.Check(t, user == r.user && pass == r.pass, "%q: sent %q %q", r.encoding, user, pass)
		})
		auth := Auth{Method: Basic, Username: "us er", Secret: secret, Encoding: r.encoding}
		if r.encoding == "rfc6749" {
			auth.Username = "us:er"
		}
		api, _ := clients(t, Config{BaseURL: srv.URL, Auth: auth})
		kit.Value(do(t, api, get("ask")))(t)
	}
}

func TestOAuth_MissingScopeIsNamed(t *testing.T) {
	ts := &tokenServer{life: 3600, scope: "read"}
	srv := serve(t, ts.ServeHTTP)
	api, _ := clients(t, Config{BaseURL: srv.URL, Auth: oauth("read", "wriet")})
	_, err := do(t, api, post("register", "[]"))
	var se *ScopeError
	ce := failure(t, err)
	kit.Check(t, errors.As(err, &se) && slices.Equal(se.Missing, []string{"wriet"}) && strings.Contains(err.Error(), "wriet"),
		"got %v, want the scope wriet named", err)
	kit.Check(t, ts.calls == 0 && ce.Outcome == NotSent && ce.Denied,
		"%d calls, outcome %v, credentials %v", ts.calls, ce.Outcome, ce.Denied)
}

func TestOAuth_SpentTokenIsRenewedOnce(t *testing.T) {
	ts := &tokenServer{life: 3600}
	srv := serve(t, ts.ServeHTTP)
	api, _ := clients(t, Config{BaseURL: srv.URL, Auth: oauth()})
	kit.Value(do(t, api, get("ask")))(t)
	ts.revoked = true
	kit.Want(t, "after the token was revoked", kit.Err(do(t, api, post("register", "[]"))), nil)
	kit.Check(t, ts.granted == 2 && ts.calls == 3, "%d tokens, %d calls; want 2 and 3", ts.granted, ts.calls)
	always := &tokenServer{life: 3600}
	refusing := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/tokens") {
			always.ServeHTTP(w, r)
			return
		}
		always.calls++
		w.WriteHeader(401)
		fmt.Fprintf(w, `{"message":"%s is no good"}`, r.Header.Get("Authorization"))
	})
	api, _ = clients(t, Config{BaseURL: refusing.URL, Auth: oauth()})
	_, err := do(t, api, post("register", "[]"))
	if ce := failure(t, err); ce.Outcome != NotProcessed || !ce.Denied || always.calls != 2 || always.granted != 2 {
		t.Errorf("%v, %d calls, %d tokens: %v", ce.Outcome, always.calls, always.granted, ce)
	}
}

func TestOAuth_ThirtySecondTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ts := &tokenServer{life: 30}
		api, _ := clients(t, Config{BaseURL: "https://archive.example", Transport: inProcess(ts.ServeHTTP), Auth: oauth()})
		for range 60 {
			kit.Value(do(t, api, post("register", "[]")))(t)
			time.Sleep(5 * time.Second)
		}
		kit.Check(t, ts.granted >= 10 && ts.granted <= 16 && ts.calls == 60,
			"%d tokens and %d calls in five minutes", ts.granted, ts.calls)
	})
}

// Renewing ahead must not fail calls whose token is still good, and one refusal serves all who waited for it.
func TestOAuth_TokenEndpointDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ts := &tokenServer{life: 100}
		var mayAnswer chan struct{}
		api, _ := clients(t, Config{BaseURL: "https://archive.example", Auth: oauth(), Transport: inProcess(func(w http.ResponseWriter, r *http.Request) {
			if mayAnswer != nil {
				<-mayAnswer
			}
			ts.ServeHTTP(w, r)
		})})
		do(t, api, get("ask"))
		ts.status, ts.answer = 400, `{"error":"invalid_request","error_description":"no"}`
		time.Sleep(85 * time.Second)
		kit.Want(t, "the token is good for 5 s more", kit.Err(do(t, api, get("ask"))), nil)
		time.Sleep(20 * time.Second)
		asked := len(ts.requests)
		mayAnswer = make(chan struct{}) // the first token request waits here until all callers stand in line
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				_, err := api.Do(context.Background(), get("ask"))
				ce := failure(t, err)
				kit.Check(t, ce.Denied && strings.Contains(ce.Error(), "invalid_request"), "got %v", err)
			})
		}
		time.Sleep(time.Second)
		close(mayAnswer)
		wg.Wait()
		kit.Want(t, "token requests of 8 callers", len(ts.requests)-asked, 1)
	})
}

func TestOAuth_TokenRequestIsRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ts := &tokenServer{life: 100}
		asked := 0
		api, _ := clients(t, Config{BaseURL: "https://archive.example", Auth: oauth(), Transport: inProcess(func(w http.ResponseWriter, r *http.Request) {
			if strings.HasSuffix(r.URL.Path, "/tokens") {
				if asked++; asked <= 2 {
					w.WriteHeader(http.StatusServiceUnavailable)
					return
				}
			}
			ts.ServeHTTP(w, r)
		})})
		_, err := do(t, api, post("register", "[]"))
		kit.Check(t, err == nil && asked == 3 && ts.calls == 1, "%d token requests, %d calls: %v", asked, ts.calls, err)
	})
}

func TestToken_Answers(t *testing.T) {
	now := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	rows := []struct {
		name, body string
		life       time.Duration // until it is not used any more; 0: refused
	}{
		{"Plain", `{"access_token":"abc","token_type":"Bearer","expires_in":3600,"scope":"read write"}`, time.Hour - 10*time.Second},
		{"LifeAsString", `{"access_token":"abc","token_type":"bearer","expires_in":"30"}`, 27 * time.Second},
		{"NoLife", `{"access_token":"abc"}`, 30*time.Minute - 10*time.Second},
		{"ScopesAsList", `{"access_token":"abc","expires_in":30,"scope":["write","read","more"]}`, 27 * time.Second},
		{"NullScope", `{"access_token":"abc","expires_in":30,"scope":null}`, 27 * time.Second},
		{"EmptyScope", `{"access_token":"abc","expires_in":30,"scope":""}`, 0},
		{"OtherType", `{"access_token":"abc","token_type":"mac"}`, 0},
		{"BoundToAKey", `{"access_token":"abc","token_type":"DPoP"}`, 0},
		{"BearerInside", `{"access_token":"abc","token_type":"xbearerx"}`, 0},
		{"BearerToken", `{"access_token":"abc","token_type":"BearerToken"}`, 30*time.Minute - 10*time.Second},
		{"EndsWithBearer", `{"access_token":"abc","token_type":"urn:x:token-type:BEARER "}`, 30*time.Minute - 10*time.Second},
		{"NullType", `{"access_token":"abc","token_type":null}`, 30*time.Minute - 10*time.Second},
		{"NoToken", `{"expires_in":30}`, 0},
		{"TokenBreaksHeader", `{"access_token":"a\r\nX: b"}`, 0},
		{"HTML", `<html>`, 0},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			got, err := (&tokens{scopes: []string{"read", "write"}}).parseAnswer([]byte(r.body), now)
			kit.Check(t, (err == nil) == (r.life > 0) && (err != nil || got.expiry.Sub(now) == r.life && got.renew.Before(got.expiry)),
				"got %+v, %v", got, err)
		})
	}
}

// An error inside a success of the token endpoint is reported in the service's
// own words, never with a token.
func TestToken_I7_I24_ErrorInsideASuccess(t *testing.T) {
	type row struct {
		answer, code string
		denied       bool
		says         string
	}
	kit.Rows(t, map[string]row{
		"OAuth":        {`{"error":"invalid_client","error_description":"this client is locked"}`, "credentials", true, "200 OK: this client is locked; invalid_client"},
		"WithAToken":   {`{"access_token":"` + tokenCanary + `","error":"invalid_scope","error_description":"not ` + tokenCanary + `"}`, "credentials", true, "not [hidden]; invalid_scope"},
		"InWords":      {`{"error":"The client is locked"}`, "credentials", true, "The client is locked"},
		"Object":       {`{"error":{"code":"E17","message":"the client is locked"}}`, "credentials", true, "E17: the client is locked"},
		"List":         {`{"errors":[{"message":"the client is locked"}],"access_token":null}`, "credentials", true, "the client is locked"},
		"Overloaded":   {`{"error":"temporarily_unavailable"}`, "http-503", false, "temporarily_unavailable"},
		"Faulty":       {`{"code":500,"message":"out of order"}`, "http-500", false, "500: out of order"},
		"NoWords":      {`{"accessToken":"` + tokenCanary + `","error":{"x":"` + tokenCanary + `"}}`, "token", false, "it holds no usable access_token"},
		"OtherType":    {`{"access_token":"` + tokenCanary + `","token_type":"DPoP"}`, "token", false, `the token is of type "DPoP", not Bearer`},
		"NoErrorAtAll": {`{"access_token":"` + tokenCanary + `-0","token_type":"Bearer","error":null,"error_description":"","message":"granted"}`, "", false, ""},
	}, func(t *testing.T, r row) {
		ts := &tokenServer{status: http.StatusOK, answer: r.answer}
		api, _ := clients(t, Config{BaseURL: serve(t, ts.ServeHTTP).URL, Auth: oauth()})
		_, err := do(t, api, post("register", "[]"))
		if r.code == "" {
			kit.Must(t, err)
			return
		}
		e := failure(t, err)
		kit.Want(t, "outcome", e.Outcome, NotSent)
		kit.Want(t, "code", e.Code, r.code)
		kit.Want(t, "denied", e.Denied, r.denied)
		kit.Holds(t, "error", e.Error(), r.says)
		kit.Lacks(t, "error", e.Error(), tokenCanary)
	})
}

// A token endpoint that hangs must not hold up calls while the old token is good.
func TestOAuth_HangingRenewal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ts := &tokenServer{life: 100}
		hang := false
		handler := inProcess(ts.ServeHTTP)
		api, _ := clients(t, Config{BaseURL: "https://archive.example", Auth: oauth(), Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
			if hang && strings.HasSuffix(r.URL.Path, "/tokens") {
				<-r.Context().Done()
				return nil, r.Context().Err()
			}
			return handler(r)
		})})
		do(t, api, get("ask"))
		hang = true
		time.Sleep(80 * time.Second)
		begun := time.Now()
		for range 3 {
			kit.Want(t, fmt.Sprintf("after %v", time.Since(begun)), kit.Err(do(t, api, get("ask"))), nil)
		}
		took := time.Since(begun)
		kit.Check(t, took <= 10*time.Second, "three calls took %v", took)
	})
}

// The caller whose token request serves all gives up before it is answered: the
// others get a token by one more request.
func TestOAuth_I25_ACallerThatGivesUpFailsNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ts := &tokenServer{life: 100}
		handler, asked := inProcess(ts.ServeHTTP), 0
		api, _ := clients(t, Config{BaseURL: "https://archive.example", Auth: oauth(), Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
			if strings.HasSuffix(r.URL.Path, "/tokens") {
				if asked++; asked == 1 {
					<-r.Context().Done()
					return nil, r.Context().Err()
				}
			}
			return handler(r)
		})})
		var wg sync.WaitGroup
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
			defer cancel()
			_, err := api.Do(ctx, get("first"))
			kit.Want(t, "the first: outcome", failure(t, err).Outcome, NotSent)
		})
		time.Sleep(time.Second)
		for range 5 {
			wg.Go(func() { kit.Want(t, "another", kit.Err(do(t, api, post("register", "[]"))), nil) })
		}
		wg.Wait()
		kit.Want(t, "token requests", asked, 2)
	})
}

func TestOAuth_WaitForTokenHonoursContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hang := roundTripper(func(r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			return nil, r.Context().Err()
		})
		api, _ := clients(t, Config{BaseURL: "https://archive.example", Transport: hang, Auth: oauth()})
		var wg sync.WaitGroup
		wg.Go(func() { do(t, api, get("first")) })
		time.Sleep(time.Second)
		ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
		defer cancel()
		begun := time.Now()
		_, err := api.Do(ctx, post("register", "[]"))
		if ce := failure(t, err); ce.Outcome != NotSent || time.Since(begun) != 3*time.Second {
			t.Errorf("after %v: %v %v", time.Since(begun), ce.Outcome, ce)
		}
		wg.Wait()
	})
}

func TestAuth_ConfigIsChecked(t *testing.T) {
	for name, a := range map[string]Auth{
		"NoSecret":     {Method: Basic, Username: "u"},
		"NoUser":       {Method: Basic, Secret: secret},
		"NoMethod":     {Username: "u", Secret: secret},
		"ColonInUser":  {Method: Basic, Username: "u:v", Secret: secret},
		"ColonInID":    {Method: OAuth2, Username: "u:v", Secret: secret},
		"Encoding":     {Method: OAuth2, Username: "u", Secret: secret, Encoding: "utf"},
		"PlainHTTPURL": {Method: OAuth2, Username: "u", Secret: secret, TokenURL: "http://tokens.example/t"},
	} {
		_, _, err := New(Config{BaseURL: "https://archive.example", Auth: a})
		kit.Check(t, err != nil, "%s was taken", name)
	}
}

// A token endpoint of its own gets the secret, and what it redirects to does not.
func TestOAuth_SecretStaysAtTokenHost(t *testing.T) {
	var leaked atomic.Bool
	other := serve(t, func(_ http.ResponseWriter, r *http.Request) { leaked.Store(true) })
	tokensAt := serve(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other.URL+"/steal", http.StatusTemporaryRedirect)
	})
	auth := oauth()
	auth.TokenURL = tokensAt.URL + "/token"
	api, _ := clients(t, Config{BaseURL: other.URL, Auth: auth})
	_, err := do(t, api, get("ask"))
	var pe *PolicyError
	if failure(t, err); !errors.As(err, &pe) || leaked.Load() {
		t.Errorf("got %v, leaked=%v", err, leaked.Load())
	}
}
