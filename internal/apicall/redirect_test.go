package apicall

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"vaultd/internal/test/kit"
)

// seen is one request as a host saw it.
type seen struct{ method, host, uri, auth, id, body, date string }

// network is a set of hosts in one process.
type network struct {
	hosts map[string]http.HandlerFunc
	log   []seen
}

func (n *network) RoundTrip(r *http.Request) (*http.Response, error) {
	host := r.URL.Scheme + "://" + r.URL.Host
	return inProcess(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		n.log = append(n.log, seen{r.Method, host, r.URL.RequestURI(), r.Header.Get("Authorization"), r.Header.Get("X-SVC-REQUEST-ID"), string(body), r.Header.Get("Date")})
		if h := n.hosts[host]; h != nil {
			h(w, r)
		}
	})(r)
}

func to(status int, location string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", location)
		w.WriteHeader(status)
	}
}

func TestRedirect_API(t *testing.T) {
	const signed = "?X-Amz-Signature=" + signatureCanary
	rows := []struct {
		name, method, location string
		status                 int
		wantHost               string // of a refusal
		auth                   bool   // credentials on the last hop
	}{
		{"SameHost", "GET", "https://archive.example/final", 302, "", true},
		{"SameHostRelative", "GET", "/final", 301, "", true},
		{"SameHostPort", "GET", "https://archive.example:443/final", 308, "", true},
		{"SameHostKeepsPost", "POST", "/final", 307, "", true},
		{"SameHostKeepsPost308", "POST", "/final", 308, "", true},
		{"MovedPostStaysAPost301", "POST", "/final", 301, "", true},
		{"MovedPostStaysAPostListed", "POST", "https://listed.example/final", 302, "", true},
		{"MovedPostToAnUnknownHost", "POST", "https://evil.example/final", 301, "evil.example", false},
		{"PostToARedirectHost", "POST", "https://redirects.example/final", 302, "", true},
		{"RedirectHostUnsigned", "GET", "https://redirects.example/final", 302, "", true},
		{"PostWouldBecomeGet303", "POST", "/final", 303, "archive.example", false},
		{"OtherHostSigned", "GET", "https://bucket.example/final" + signed, 302, "", false},
		{"OtherHostSignedV2", "GET", "https://bucket.example/final?Signature=" + signatureCanary, 307, "", false},
		{"SameHostSigned", "GET", "https://archive.example/final" + signed, 302, "", false},
		{"OtherHostUnsigned", "GET", "https://evil.example/final", 302, "evil.example", false},
		{"OtherHostListed", "GET", "https://listed.example/final", 302, "", true},
		{"Downgrade", "GET", "http://archive.example/final", 302, "archive.example", false},
		{"DowngradeSigned", "GET", "http://bucket.example/final" + signed, 302, "bucket.example", false},
		{"OtherPort", "GET", "https://archive.example:8443/final", 302, "archive.example:8443", false},
		{"PrivateSigned", "GET", "https://10.0.0.1/final" + signed, 302, "10.0.0.1", false},
		{"User", "GET", "https://a:b@archive.example/final", 302, "archive.example", false},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			net := &network{hosts: map[string]http.HandlerFunc{"https://archive.example": func(w http.ResponseWriter, req *http.Request) {
				if req.URL.Path != "/final" {
					to(r.status, r.location)(w, req)
				}
			}}}
			cfg := Config{BaseURL: "https://archive.example", Transport: net, RedirectHosts: []string{"redirects.example"}}
			if strings.Contains(r.name, "Listed") {
				cfg.AllowedHosts = []string{"listed.example"}
			}
			api, _ := clients(t, cfg)
			_, err := api.Do(context.Background(), Request{Op: "x", Method: r.method, Path: []string{"start"}, Body: []byte("body")})
			last := net.log[len(net.log)-1]
			if r.wantHost != "" {
				var pe *PolicyError
				if failure(t, err); !errors.As(err, &pe) || pe.Host != r.wantHost || len(net.log) != 1 {
					t.Errorf("got %v after %d hops, want a *PolicyError that names %s", err, len(net.log), r.wantHost)
				}
				return
			}
			kit.Need(t, err == nil && len(net.log) == 2, "got %v after %d hops", err, len(net.log))
			if _, err := http.ParseTime(last.date); err != nil || last.date != net.log[0].date {
				t.Errorf("the last hop has the Date %q, the first %q", last.date, net.log[0].date)
			}
			if last.method != r.method || last.body != "body" || (last.auth != "") != r.auth || last.id != net.log[0].id || last.id == "" {
				t.Errorf("last hop %+v, first %+v", last, net.log[0])
			}
		})
	}
}

func TestRedirect_OutcomeOfRefusal(t *testing.T) {
	for status, want := range map[int]Outcome{302: OutcomeUnknown, 303: OutcomeUnknown, 307: NotProcessed} {
		net := &network{hosts: map[string]http.HandlerFunc{"https://archive.example": to(status, "https://evil.example/")}}
		api, _ := clients(t, Config{BaseURL: "https://archive.example", Transport: net})
		_, err := do(t, api, post("register", "[]"))
		ce := failure(t, err)
		kit.Check(t, ce.Outcome == want && ce.Status == status, "%d: got %v, status %d", status, ce.Outcome, ce.Status)
	}
}

func TestRedirect_Loop(t *testing.T) {
	net := &network{hosts: map[string]http.HandlerFunc{"https://archive.example": to(302, "/again")}}
	api, _ := clients(t, Config{BaseURL: "https://archive.example", Transport: net})
	_, err := do(t, api, get("list"))
	if failure(t, err); !strings.Contains(err.Error(), "too many redirects") || len(net.log) != maxHops+1 {
		t.Errorf("%d requests, then %v", len(net.log), err)
	}
}

func TestRedirect_Upload(t *testing.T) {
	start := "https://bucket.example/k.zip?X-Amz-Signature=" + signatureCanary
	rows := []struct {
		name, location string
		status         int
		ok             bool
	}{
		{"OtherRegion", "https://bucket.eu.example/k.zip?X-Amz-Signature=" + signatureCanary, 307, true},
		{"Permanent", "https://bucket.eu.example/k.zip?X-Amz-Signature=" + signatureCanary, 308, true},
		{"Moved", "https://bucket.eu.example/k.zip", 301, false},
		{"SeeOther", "https://bucket.eu.example/k.zip", 303, false},
		{"ToPrivate", "https://192.168.0.1/k.zip", 307, false},
		{"Downgrade", "http://bucket.eu.example/k.zip", 307, false},
		{"Twice", "https://bucket.example/again", 307, false},
		{"ToAnotherObject", "https://bucket.eu.example/other.zip?X-Amz-Signature=" + signatureCanary, 307, false},
		{"ToAnotherObjectEscaped", "https://bucket.eu.example/a!%21.zip?X-Amz-Signature=" + signatureCanary, 307, false},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			net := &network{hosts: map[string]http.HandlerFunc{"https://bucket.example": to(r.status, r.location)}}
			_, store := clients(t, Config{BaseURL: "https://archive.example", Transport: net})
			opened := 0
			up := upload{Op: "upload", URL: start, Size: 3, SHA256: sum("zip"), Header: http.Header{"Authorization": {"Basic " + secretCanary}}}
			up.Open = func() (io.ReadCloser, error) { opened++; return bodyOf("zip")() }
			up.MayRedirect = func(to string) bool {
				u, err := url.Parse(to)
				kit.Check(t, err == nil && u.Host != "", "asked about %q: %v", to, err)
				return !strings.HasPrefix(r.name, "ToAnotherObject")
			}
			_, err := store.put(context.Background(), up)
			kit.Check(t, r.ok == (err == nil) && opened == len(net.log),
				"got %v, %d hops, body opened %d times", err, len(net.log), opened)
			if err != nil {
				failure(t, err)
			}
			kit.Want(t, "requests", len(net.log), map[bool]int{true: 2, false: 1}[r.ok || r.name == "Twice"])
			for _, s := range net.log {
				kit.Check(t, s.auth == "" && s.method == "PUT" && s.body == "zip", "sent %+v", s)
			}
		})
	}
}

// Where plain http to loopback is allowed at all, a redirect still does not lead there from https.
func TestRedirect_NeverDownWhereLoopbackIsAllowed(t *testing.T) {
	net := &network{hosts: map[string]http.HandlerFunc{"https://bucket.example": to(307, "http://127.0.0.1:9/k")}}
	_, store := clients(t, Config{BaseURL: "http://127.0.0.1:8", Transport: net})
	_, err := store.put(context.Background(), upload{Op: "upload", URL: "https://bucket.example/k", Size: 3, SHA256: sum("zip"), Open: bodyOf("zip")})
	ce := failure(t, err)
	kit.Check(t, len(net.log) == 1 && ce.Code == "policy", "%d requests: %v", len(net.log), err)
}

func ExampleError() {
	net := &network{hosts: map[string]http.HandlerFunc{"https://bucket.example": func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprint(w, "<Error><Code>AccessDenied</Code><Message>Request has expired</Message></Error>")
	}}}
	_, store, _ := New(Config{BaseURL: "https://archive.example", Auth: basicAuth(), Transport: net})
	_, err := store.put(context.Background(), upload{Op: "upload", URL: "https://bucket.example/k.zip?X-Amz-Signature=secret", Size: 3, SHA256: sum("zip"), Open: bodyOf("zip")})
	fmt.Println(err)
	// Output: upload: PUT bucket.example/k.zip: 403 Forbidden: AccessDenied: Request has expired
}
