package apicall

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"vaultd/internal/sanitize"
	"vaultd/internal/test/kit"
)

// A token is one word, lives a bounded time, and shows in no error.
func FuzzToken(f *testing.F) {
	for _, s := range []string{
		`{"access_token":"` + tokenCanary + `","token_type":"Bearer","expires_in":3600,"scope":"a b"}`,
		`{"access_token":"` + tokenCanary + `","expires_in":"30","scope":["a"]}`, `{"access_token":"` + tokenCanary + `\n","token_type":"mac"}`,
		`{"access_token":"x","expires_in":-1e400}`, `{"access_token":"x","expires_in":1e18}`, `<html>`, `null`, `[]`, `{"access_token":1}`, tokenCanary,
	} {
		f.Add([]byte(s))
	}
	left := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, body []byte) {
		tok, err := (&tokens{scopes: []string{"a"}}).parseAnswer(body, left)
		if err != nil {
			mute(t, err)
			return
		}
		if tok.value == "" || strings.ContainsAny(tok.value, " \r\n\t") || tok.renew.Before(left) || tok.expiry.Before(tok.renew) || tok.expiry.After(left.Add(24*time.Hour)) {
			t.Errorf("%q until %v", tok.value, tok.expiry)
		}
	})
}

// A known secret shows in no text, wherever it stands in it and whatever stands around it.
func FuzzScrub_I7(f *testing.F) {
	f.Add("before ", " behind", "S3cr3t+/=!")
	f.Add("https://h/?X-Amz-Signature=", "&x", "51gnature0canary")
	f.Add("\u200b", "\u202e\x00", "pass word1")
	f.Add(strings.Repeat("x", 16380), "", "12345678")
	f.Fuzz(func(t *testing.T, before, behind, secret string) {
		if len(secret) < 8 || sanitize.Message(secret, 500) != secret || strings.Contains("[hidden] $1?[hidden]", secret) {
			return
		}
		kit.Lacks(t, "the text", hideSecrets(before+secret+behind, []string{secret, url.QueryEscape(secret)}, 500), secret)
	})
}

// A pause that is asked for is never negative and never endless.
func FuzzRetryAfter(f *testing.F) {
	for _, s := range []string{"7", "-1", "1e400", "NaN", "0x1p70", "Fri, 20 Nov 2026 10:00:30 GMT", "Fri, 20 Nov 0000 10:00:30 GMT", "1_0", " 5", "soon"} {
		f.Add(s, "Fri, 20 Nov 2026 10:00:00 GMT")
	}
	now := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, value, date string) {
		for _, status := range []int{200, 307, 429, 500, 503} {
			if d := retryAfter(status, http.Header{"Retry-After": {value}, "Date": {date}}, now); d < 0 || d > longestAsked(status) {
				t.Errorf("%d, %q: %v, want d >= 0, d <= %v", status, value, d, longestAsked(status))
			}
		}
	})
}

// Wherever a redirect leads: never down to plain http, never with a user, credentials to the service alone, and a body
// to nobody else.
func FuzzRedirect_I20(f *testing.F) {
	for _, s := range []string{
		"/x", "//evil.example/x", "https://evil.example/x", "https://bucket.example/k?X-Amz-Signature=x", "http://archive.example/", "https:\\\\evil.example",
		"https://archive.example@evil.example/", "https://u@archive.example/", "https://archive.example:443/", "https://ARCHIVE.example./", "?X-Amz-Signature=x", "https://[::1]/?Signature=x", "\x00",
	} {
		f.Add(s)
	}
	p := kit.Value(NewPolicy("https://archive.example", nil, nil))(f)
	from, _ := url.Parse("https://archive.example/v1/vaults")
	f.Fuzz(func(t *testing.T, location string) {
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			var credentials bool
			c := &call{method: method, rule: func(u *url.URL) (ok bool, err error) {
				credentials, err = p.checkTarget(method, u)
				return credentials, err
			}}
			next, err := c.redirectTarget(from, &http.Response{StatusCode: 307, Header: http.Header{"Location": {location}}}, 0)
			var pe *PolicyError
			switch {
			case err != nil && (!errors.As(err, &pe) || strings.Contains(err.Error(), "Signature=")):
				t.Errorf("%q: %v", location, err)
			case err != nil || next == nil:
			case next.Scheme != "https" || next.User != nil || isLoopbackHost(next.Hostname()):
				t.Errorf("%q leads to %s", location, next.Host)
			case bareHost(next) != "archive.example" && (credentials || method == http.MethodPost):
				t.Errorf("%s: %q leads to %s, credentials %v", method, location, next.Host, credentials)
			}
		}
	})
}
