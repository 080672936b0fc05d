package readings

import (
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"vaultd/internal/apicall"
	"vaultd/internal/emulator"
	"vaultd/internal/test/kit"
)

func allows(hosts ...string) func(*apicall.Config) {
	return func(c *apicall.Config) { c.AllowedHosts = hosts }
}

// Redirects that are followed. The same host and a listed one get everything again, credentials included; the object
// store never does.
func TestReading_I20_RedirectsFollowed(t *testing.T) {
	type row struct {
		setup
		host       string // must have been sent to
		authorized bool   // with credentials
	}
	kit.Rows(t, map[string]row{
		"SameHost":   {setup{readings: emulator.Readings{RedirectTo: "same"}}, apiHost, true},
		"ListedHost": {setup{readings: emulator.Readings{RedirectTo: "https://eu.example"}, client: allows("eu.example", storeHost)}, "eu.example", true},
		"ListedHostTokens": {setup{readings: emulator.Readings{RedirectTo: "https://eu.example"}, service: tokensOnly,
			client: func(c *apicall.Config) { withTokens(c); allows("eu.example", storeHost)(c) }}, "eu.example", true},
		"OtherStore":            {setup{readings: emulator.Readings{StoreRedirectTo: "https://store-2.example"}}, "store-2.example", false},
		"OtherStoreWithHeaders": {setup{readings: emulator.Readings{StoreRedirectTo: "https://store-2.example", URLForm: "headers"}}, "store-2.example", false},
		"OtherStoreListed": {setup{readings: emulator.Readings{StoreRedirectTo: "https://store-2.example"},
			client: allows(storeHost, "store-2.example")}, "store-2.example", false},
	}, func(t *testing.T, row row) {
		t.Parallel()
		virtual(t, row.setup, func(t *testing.T, w *world) {
			w.archives(hour)
			there := w.sentTo(row.host)
			kit.Check(t, len(there) != 0, "nothing went to %s", row.host)
			for _, c := range there {
				kit.Want(t, fmt.Sprintf("%s %s: credentials", c.method, c.path), c.authorized, row.authorized)
			}
		})
	})
}

// Redirects that are not followed: the host is named, nothing reaches it, and all goes on when the service's side is
// put right.
func TestReading_I20_RedirectsRefused(t *testing.T) {
	for name, row := range map[string]struct {
		setup
		says []string
		host string // nothing may have reached it
	}{
		"OtherHost": {setup{readings: emulator.Readings{RedirectTo: "https://eu.example"}},
			[]string{"host eu.example refused: it is not the service's host; if the redirect is right, add the host to service.redirect_hosts", "vault ACME", "vault BETA"}, "eu.example"},
		"OtherHostNotInTheList": {setup{readings: emulator.Readings{RedirectTo: "https://eu.example"}, client: allows(storeHost)},
			[]string{"host eu.example refused: it is not the service's host; if the redirect is right, add the host to service.redirect_hosts"}, "eu.example"},
		"OtherPort": {setup{readings: emulator.Readings{RedirectTo: "https://" + apiHost + ":8443"}},
			[]string{"host " + apiHost + ":8443 refused"}, apiHost + ":8443"},
		"ToPlainHTTP": {setup{readings: emulator.Readings{RedirectTo: "http://eu.example"}, client: allows(storeHost, "eu.example")},
			[]string{"host eu.example refused: the redirect leads from https to http"}, "eu.example"},
		"StoreToPlainHTTP": {setup{readings: emulator.Readings{StoreRedirectTo: "http://store-2.example"}},
			[]string{"host store-2.example refused: the redirect leads from https to http", "store of vault"}, "store-2.example"},
		"StoreNotInTheList": {setup{readings: emulator.Readings{StoreRedirectTo: "https://store-2.example"}, client: allows(storeHost)},
			[]string{"host store-2.example refused: it is not in service.allowed_hosts", "store of vault"}, "store-2.example"},
		"StoreIsThisMachine": {setup{readings: emulator.Readings{StoreRedirectTo: "https://localhost"}},
			[]string{"host localhost refused: it is this machine"}, "localhost"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			virtual(t, row.setup, func(t *testing.T, w *world) {
				w.pass(20*time.Minute, time.Second, never)
				w.waits()
				w.says(append(row.says, "route paused")...)
				got := w.sentTo(row.host)
				kit.Check(t, len(got) <= 0, "reached %s: %+v", row.host, got)
				kit.Must(w.t, w.service.SetReadings(emulator.Readings{}))
				w.archives(2 * hour)
			})
		})
	}
}

// A POST that is moved by 301 or 302 stays the POST that it is: each document is archived once.
func TestReading_I2_I11_MovedPostStaysAPost(t *testing.T) {
	for _, status := range []int{301, 302, 308} {
		t.Run(http.StatusText(status), func(t *testing.T) {
			t.Parallel()
			virtual(t, setup{readings: emulator.Readings{RedirectTo: "same", RedirectStatus: status}}, func(t *testing.T, w *world) { w.archives(hour) })
		})
	}
}

// The status that turns a POST into a GET: its 200 would look like success.
func TestReading_I12_RedirectThatWouldLoseTheBody(t *testing.T) {
	kit.Rows(t, map[string]int{"303": 303}, func(t *testing.T, status int) {
		t.Parallel()
		var broken atomic.Bool
		broken.Store(true)
		s := setup{between: func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
			if !broken.Load() || r.Method != http.MethodPost {
				return next.RoundTrip(r)
			}
			_ = r.Body.Close()
			return &http.Response{StatusCode: status, Header: http.Header{"Location": {"https://" + apiHost + "/v1/vaults"}}, Body: http.NoBody, Request: r}, nil
		}}
		virtual(t, s, func(t *testing.T, w *world) {
			w.pass(20*time.Minute, time.Second, never)
			w.waits()
			w.says("the redirect would turn the POST into a GET", "route paused")
			broken.Store(false)
			w.archives(hour)
		})
	})
}

// An upload address against the rules is never sent to: the host is named, the route rests, nothing is blamed.
func TestReading_I20_UploadAddressRefused(t *testing.T) {
	type row struct {
		client func(*apicall.Config)
		store  string
		says   string
	}
	kit.Rows(t, map[string]row{
		"NotInTheList": {allows("other.example"), "https://wrong.example/packages", "upload address: host wrong.example refused: it is not in service.allowed_hosts"},
		"PlainHTTP":    {nil, "http://wrong.example/packages", "upload address: host wrong.example refused: plain http is not allowed"},
		"PrivateNet":   {nil, "https://10.0.0.7/packages", "upload address: host 10.0.0.7 refused: its address is not a public one"},
		"ThisMachine":  {nil, "https://localhost/packages", "upload address: host localhost refused: it is this machine"},
	}, func(t *testing.T, row row) {
		t.Parallel()
		var store atomic.Value
		store.Store(row.store)
		s := setup{client: row.client, service: func(c *emulator.Config) { c.StoreURL = func() string { return store.Load().(string) } }}
		virtual(t, s, func(t *testing.T, w *world) {
			w.pass(20*time.Minute, time.Second, never)
			w.waits()
			w.says(row.says, "route paused", "vault ACME", "vault BETA")
			n := w.service.CountCalls("upload")
			kit.Check(t, n <= 0, "%d uploads", n)
			store.Store("https://other.example/packages")
			w.archives(hour)
		})
	})
}
