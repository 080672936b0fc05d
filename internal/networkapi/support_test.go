package networkapi

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"unicode"

	"vaultd/internal/apicall"
	"vaultd/internal/archive"
	"vaultd/internal/test/kit"
)

// The canaries: no error holds one of them.
const (
	secretCanary    = "S3cr3t-canary"
	signatureCanary = "51gnature0canary0deadbeef"
	contentCanary   = "c0ntent-canary"
)

const bumID archive.RemoteID = "10d90000-0000-5000-8000-00000000000a"

type tripper func(*http.Request) (*http.Response, error)

func (f tripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// client returns a client of a service that h plays, without a network. Other hosts than the service's are played by h too.
func client(t *testing.T, h http.HandlerFunc, allowed ...string) *Client {
	t.Helper()
	return New(Config{API: api(t, h, allowed...)})
}

func api(t *testing.T, h http.HandlerFunc, allowed ...string) *apicall.API {
	t.Helper()
	return apiFor(t, apicall.Config{BaseURL: "https://service.example", AllowedHosts: allowed, Transport: tripper(func(r *http.Request) (*http.Response, error) {
		if err := r.Context().Err(); err != nil {
			return nil, err
		}
		in := r.Clone(r.Context())
		if in.Body == nil {
			in.Body = http.NoBody
		}
		w := httptest.NewRecorder()
		h(w, in)
		in.Body.Close()
		resp := w.Result()
		resp.Request = r
		return resp, nil
	})})
}

func apiFor(t *testing.T, cfg apicall.Config) *apicall.API {
	t.Helper()
	cfg.Auth = apicall.Auth{Method: apicall.Basic, Username: "u", Secret: func() (string, error) { return secretCanary, nil }}
	api, _, err := apicall.New(cfg)
	kit.Must(t, err)
	return api
}

func says(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		w.WriteHeader(status)
		io.WriteString(w, body)
	}
}

// failed demands an error as every call gives it, in one line without a secret.
func failed(t *testing.T, err error) *apicall.Error {
	t.Helper()
	e, is := errors.AsType[*apicall.Error](err)
	if !is {
		t.Fatalf("got %v (%T), want an *apicall.Error", err, err)
	}
	for _, text := range []string{e.Error(), e.Code, e.Field, e.Message, e.ErrorID} {
		if strings.ContainsFunc(text, unicode.IsControl) || len(text) > 4000 {
			t.Errorf("not fit for a log: %q", text)
		}
		kit.Lacks(t, "the text", text, secretCanary, signatureCanary, contentCanary)
	}
	return e
}
