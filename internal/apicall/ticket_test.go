package apicall

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"
	"unicode"

	"vaultd/internal/archive"
	"vaultd/internal/test/kit"
)

func TestLifetime(t *testing.T) {
	date := time.Date(2026, 3, 3, 12, 0, 0, 0, time.UTC)
	rows := []struct {
		name, query string
		signed      time.Time
		validity    time.Duration
	}{
		{"V4", "X-Amz-Date=20260303T121201Z&X-Amz-Expires=900", date.Add(12*time.Minute + time.Second), 15 * time.Minute},
		{"V4WithoutDate", "X-Amz-Expires=60", time.Time{}, time.Minute},
		{"V4Absurd", "X-Amz-Date=20260303T121201Z&X-Amz-Expires=-1", date.Add(12*time.Minute + time.Second), 0},
		{"V4Endless", "X-Amz-Date=yesterday&X-Amz-Expires=99999999999", time.Time{}, 0},
		{"V2", fmt.Sprintf("Signature=x&Expires=%d", date.Add(10*time.Minute).Unix()), date, 10 * time.Minute},
		{"None", "x=y", time.Time{}, 0},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			s, v := readLifetime("https://b.example/k?"+r.query, date)
			kit.Check(t, s.Equal(r.signed) && v == r.validity, "got %v %v", s, v)
		})
	}
}

func TestMD5Tag(t *testing.T) {
	md5 := strings.Repeat("0a", 16)
	for _, r := range []struct{ tag, header, value, want string }{
		{`"` + strings.ToUpper(md5) + `"`, "", "", md5},
		{`"` + md5 + `"`, "X-Amz-Server-Side-Encryption", "AES256", md5},
		{`"` + md5 + `"`, "X-Amz-Server-Side-Encryption", "aws:kms", ""},
		{`"` + md5 + `"`, "X-Amz-Server-Side-Encryption-Customer-Algorithm", "AES256", ""},
		{`"` + md5 + `-2"`, "", "", ""},
		{`W/"` + md5 + `"`, "", "", ""},
		{"", "", "", ""},
	} {
		h := http.Header{"Etag": {r.tag}}
		if r.header != "" {
			h.Set(r.header, r.value)
		}
		kit.Want(t, "md5FromETag(h)", md5FromETag(h), r.want)
	}
}

// What a ticket must not ask for is refused, however it is written.
func FuzzTicket(f *testing.F) {
	f.Add([]byte(`{"url":"https://b.example/k","headers":{"Content-Type":"a","x-amz-meta-a":"b"}}`), []byte(`{"x-amz-acl":"public-read"}`))
	f.Add([]byte(`"https://b.example/k?X-Amz-Date=20261120T100000Z&X-Amz-Expires=900"`), []byte(`[]`))
	f.Add([]byte(`{"url":"https://b.example/k","fields":{"Host":"evil","Authorization":"x","content-md5":"\r\nX: y"}}`), []byte(`null`))
	_, store, err := New(Config{BaseURL: "https://archive.example", Auth: basicAuth()})
	kit.Must(f, err)
	signed := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, url, headers []byte) {
		ticket, err := store.ReadTicket(archive.Ticket{Date: signed}, url, Fields{"headers": headers})
		if err != nil {
			kit.Check(t, !strings.ContainsFunc(err.Error(), func(r rune) bool { return unicode.IsControl(r) && r != '\n' }),
				"not fit for a log: %q", err)
			return
		}
		for i, h := range ticket.Headers {
			low := strings.ToLower(h.Name)
			if low == "authorization" || low == "host" || low == "content-length" || strings.HasPrefix(low, "proxy-") || strings.Contains(low, "copy-source") {
				t.Errorf("%q: %q", h.Name, h.Value)
			}
			if strings.ContainsAny(h.Name, "\r\n: ") || strings.ContainsAny(h.Value, "\r\n\x00") || i > 0 && h.Name == ticket.Headers[i-1].Name {
				t.Errorf("%q: %q", h.Name, h.Value)
			}
		}
		kit.Check(t, ticket.Validity >= 0 && ticket.Validity <= 7*24*time.Hour,
			"%v %v, want ticket.Validity >= 0, ticket.Validity <= 7*24*time.Hour", ticket.SignedAt, ticket.Validity)
		kit.Check(t, ticket.URL == "" || store.CheckURL(string(ticket.URL)) == nil,
			"a ticket against policy: %q", string(ticket.URL))
	})
}

func TestPolicy_I20_Presigned(t *testing.T) {
	const real, listed, loop = "https://archive.example", "bucket.example", "http://127.0.0.1:8080"
	rows := []struct {
		name, base, allowed, url string
		ok                       bool
	}{
		{"PublicHTTPS", real, "", "https://bucket.example/a.zip?X-Amz-Signature=x", true},
		{"PlainHTTP", real, "", "http://bucket.example/a.zip?X-Amz-Signature=x", false},
		{"PlainHTTPToLoopback", real, "", "http://127.0.0.1/a.zip", false},
		{"Loopback", real, "", "https://127.0.0.1/a.zip", false},
		{"LoopbackName", real, "", "https://LOCALHOST./a.zip", false},
		{"PrivateAddress", real, "", "https://10.1.2.3/a", false},
		{"LinkLocalMetadata", real, "", "https://169.254.169.254/latest", false},
		{"MappedIPv6", real, "", "https://[::ffff:10.0.0.1]/a", false},
		{"NAT64", real, "", "https://[64:ff9b::a00:1]/a", false},
		{"Zone", real, "", "https://[fe80::1%25eth0]/a", false},
		{"PublicAddress", real, "", "https://93.184.216.34/a", true},
		{"User", real, "", "https://user@bucket.example/a", false},
		{"Fragment", real, "", "https://bucket.example/a#b", false},
		{"EmptyFragment", real, "", "https://bucket.example/a#", false},
		{"OtherScheme", real, "", "ftp://bucket.example/a", false},
		{"File", real, "", "file:///etc/passwd", false},
		{"Relative", real, "", "/a", false},
		{"Space", real, "", "https://bucket.example/a b", false},
		{"Newline", real, "", "https://bucket.example/a\r\nHost: x", false},
		{"Backslash", real, "", `https://bucket.example\@evil.example/`, false},
		{"Listed", real, listed, "https://bucket.example/a", true},
		{"ListedOtherCase", real, listed, "https://BUCKET.example./a", true},
		{"NotListed", real, listed, "https://other.example/a", false},
		{"SuffixOfListed", real, listed, "https://evil-bucket.example/a", false},
		{"ListedPort", real, "bucket.example:8443", "https://bucket.example:8443/a", true},
		{"ListedOtherPort", real, "bucket.example:8443", "https://bucket.example/a", false},
		{"ListedPrivate", real, "10.1.2.3", "https://10.1.2.3/a", true},
		{"BaseItself", real, listed, "https://archive.example/a", true},
		{"LoopbackBase", loop, "", "http://127.0.0.1:9000/a", true},
		{"LoopbackBasePublicPlain", loop, "", "http://bucket.example/a", false},
		{"LoopbackBasePrivate", loop, "", "https://192.168.1.1/a", false},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			var list []string
			if r.allowed != "" {
				list = []string{r.allowed}
			}
			p, err := NewPolicy(r.base, list, nil)
			kit.Must(t, err)
			err = p.CheckPresigned(r.url)
			var pe *PolicyError
			kit.Check(t, r.ok == (err == nil) && (err == nil || errors.As(err, &pe)),
				"%s: got %v, want ok=%v", r.url, err, r.ok)
		})
	}
}

func TestPolicy_BaseAndList(t *testing.T) {
	for _, base := range []string{"", "archive.example", "http://archive.example", "https://u:p@archive.example", "https://a.example/?x=1"} {
		kit.Fails(t, fmt.Sprintf("base %q was taken", base), kit.Err(NewPolicy(base, nil, nil)))
	}
	for _, entry := range []string{"https://x.example", "x.example/path", "*.x.example", "", "u@x.example"} {
		_, err := NewPolicy("https://a.example", []string{entry}, nil)
		kit.Check(t, err != nil, "allowed host %q was taken", entry)
	}
}

// A public name that resolves into the local network is refused where the connection is made.
func TestDialer_I20_ChecksResolvedAddress(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	kit.Must(t, err)
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	public, _ := NewPolicy("https://archive.example", nil, nil)
	listed, _ := NewPolicy("https://archive.example", []string{"localhost"}, nil)
	_, err = newDialer(public, nil)(context.Background(), "tcp", "localhost:"+port)
	var pe *PolicyError
	kit.Check(t, errors.As(err, &pe) && isBeforeConnection(err),
		"dial through a name to loopback: got %v, want a *PolicyError", err)
	conn, err := newDialer(listed, nil)(context.Background(), "tcp", "localhost:"+port)
	kit.Need(t, err == nil, "a listed host may lie anywhere: %v", err)
	conn.Close()
}

func TestPolicy_Addresses(t *testing.T) {
	p, _ := NewPolicy("https://archive.example", nil, nil)
	for _, a := range []string{"127.0.0.1", "::1", "0.0.0.0", "10.0.0.1", "172.16.0.1", "192.168.0.1", "100.64.0.1", "169.254.1.1",
		"224.0.0.1", "255.255.255.255", "fe80::1", "fc00::1", "fec0::1", "::ffff:127.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::", "::127.0.0.1"} {
		kit.Check(t, p.checkAddress("h", netip.MustParseAddr(a)) != nil, "%s counts as public", a)
	}
	for _, a := range []string{"8.8.8.8", "2606:4700::1111", "52.218.0.1"} {
		kit.Want(t, a, p.checkAddress("h", netip.MustParseAddr(a)), nil)
	}
}

func TestParseLink_KeepsEveryByte(t *testing.T) {
	for _, raw := range []string{
		"https://b.example/a%2Fb/c%20d.zip?X-Amz-Credential=AK%2F20260303%2Feu&x=a+b&empty=&X-Amz-Signature=ab",
		"https://b.example/sp%c3%bcnde!*'();:@&=+$,~/%7Etilde?sig=%2f%2F",
		"https://b.example/[brackets]|pipe^caret?a=[b]|c",
		"https://b.example/ü/raw?ü=1",
		"https://b.example?only=query",
		"https://b.example/trailing?",
		"https://b.example/a%41b",
	} {
		u, err := parseLink(raw)
		if err != nil {
			t.Errorf("%s: %v", raw, err)
			continue
		}
		want := strings.TrimPrefix(raw, "https://b.example")
		if strings.HasPrefix(want, "?") {
			want = "/" + want
		}
		kit.Want(t, "on the wire", u.RequestURI(), want)
	}
}

func FuzzPolicy(f *testing.F) {
	f.Add("https://b.example/a?X-Amz-Signature=x")
	f.Add("https://127.0.0.1:1/%zz")
	f.Add("http://[::1]//x\\y@z")
	p, _ := NewPolicy("https://archive.example", nil, nil)
	f.Fuzz(func(t *testing.T, raw string) {
		if p.CheckPresigned(raw) != nil {
			return
		}
		u, err := url.Parse(raw)
		kit.Check(t, err == nil && u.Scheme == "https" && u.User == nil && !isLoopbackHost(u.Hostname()),
			"allowed: %q", raw)
	})
}

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
