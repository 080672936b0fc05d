package apicall

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"vaultd/internal/test/kit"
)

// The canaries: whatever text comes out of this package must hold none of them.
const (
	secretCanary    = "S3cr3t+/=!canary"
	tokenCanary     = "tok-canary-0123456789"
	signatureCanary = "51gnature0canary0deadbeef"
)

func secret() (string, error) { return secretCanary, nil }

func basicAuth() Auth { return Auth{Method: Basic, Username: "user", Secret: secret} }

func oauth(scopes ...string) Auth {
	return Auth{Method: OAuth2, Username: "client", Secret: secret, Scopes: scopes}
}

// clients returns both clients for a base URL.
func clients(t *testing.T, cfg Config) (*API, *Store) {
	t.Helper()
	if cfg.Auth.Method == "" {
		cfg.Auth = basicAuth()
	}
	api, store, err := New(cfg)
	kit.Need(t, err == nil, "New: %v", err)
	return api, store
}

func serve(t *testing.T, h http.HandlerFunc) *httptest.Server {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	return srv
}

// inProcess answers requests without a network, as a server would: it hands the handler a body it can read, and
// honours cancellation.
func inProcess(h http.HandlerFunc) roundTripper {
	return func(r *http.Request) (*http.Response, error) {
		if err := r.Context().Err(); err != nil {
			return nil, err
		}
		in := r.Clone(r.Context())
		if in.Body == nil {
			in.Body = http.NoBody
		}
		rec := httptest.NewRecorder()
		h(rec, in)
		if r.Body != nil {
			r.Body.Close()
		}
		if err := r.Context().Err(); err != nil {
			return nil, err
		}
		return rec.Result(), nil
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func sum(text string) [32]byte { return sha256.Sum256([]byte(text)) }

func bodyOf(text string) func() (io.ReadCloser, error) {
	return func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(text)), nil }
}

// failure demands a *Error and that neither it nor anything it wraps shows a canary.
func failure(t *testing.T, err error) *Error {
	t.Helper()
	var ce *Error
	kit.Need(t, errors.As(err, &ce), "got error %v (%T), want a *Error", err, err)
	mute(t, err)
	return ce
}

func mute(t *testing.T, err error) {
	t.Helper()
	for e := err; e != nil; e = errors.Unwrap(e) {
		for _, text := range []string{e.Error(), fmt.Sprintf("%+v", e), fmt.Sprintf("%#v", e)} {
			kit.Lacks(t, "the error", text, secretCanary, tokenCanary, signatureCanary, basicHeader("user", secretCanary, false).hidden[1])
		}
	}
}

func get(op string) Request { return Request{Op: op, Path: []string{"v1", "vaults"}} }

func post(op, body string) Request {
	return Request{Op: op, Method: http.MethodPost, Path: []string{"v1", "x"}, Body: []byte(body)}
}

func do(t *testing.T, api *API, r Request) (*Answer, error) {
	t.Helper()
	return api.Do(context.Background(), r)
}
