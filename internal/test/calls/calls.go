// Package calls serves the tests of the four clients: a service without a
// network, an apicall client for it, and the check of each error for secrets.
package calls

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"unicode"

	"vaultd/internal/apicall"
	"vaultd/internal/test/kit"
)

// The canaries: every error must hide them.
const (
	Secret    = "S3cr3t-canary"             // the password of each client
	Signature = "51gnature0canary0deadbeef" // of presigned URLs
	Content   = "c0ntent-canary"            // of documents
)

// New returns the clients for a configuration. By default the service is
// https://service.example, with a user and the password Secret.
func New(t testing.TB, cfg apicall.Config) (*apicall.API, *apicall.Store) {
	t.Helper()
	if cfg.BaseURL == "" {
		cfg.BaseURL = "https://service.example"
	}
	if cfg.Auth.Method == "" {
		cfg.Auth = apicall.Auth{Method: apicall.Basic, Username: "u", Secret: func() (string, error) { return Secret, nil }}
	}
	api, store, err := apicall.New(cfg)
	kit.Must(t, err)
	return api, store
}

// Transport is a function that answers requests.
type Transport func(*http.Request) (*http.Response, error)

// RoundTrip calls f.
func (f Transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// Over returns a transport that passes the requests for all hosts to h.
func Over(h http.HandlerFunc) Transport {
	return func(r *http.Request) (*http.Response, error) {
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
	}
}

// Answering returns a transport that gives each request the same answer, of
// unknown length, and leaves its body unread.
func Answering(status int, header http.Header, body string) Transport {
	return func(r *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: status, Header: header, Request: r, ContentLength: -1, Body: io.NopCloser(strings.NewReader(body))}, nil
	}
}

// Says returns a handler that reads each request and gives the same answer.
func Says(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // the client sees an end that came early
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// Failed returns the error of a client's call. It ends the test at any other
// error, and fails it where a cause shows a canary or a text breaks a log line.
func Failed(t testing.TB, err error) *apicall.Error {
	t.Helper()
	e, is := errors.AsType[*apicall.Error](err)
	if !is {
		t.Fatalf("got %v (%T), want an *apicall.Error", err, err)
	}
	for cause := err; cause != nil; cause = errors.Unwrap(cause) {
		for _, text := range []string{cause.Error(), fmt.Sprintf("%+v", cause), fmt.Sprintf("%#v", cause)} {
			kit.Lacks(t, "the error", text, Secret, Signature, Content)
		}
	}
	for _, text := range []string{e.Error(), e.Code, e.Field, e.Message, e.ErrorID} {
		if strings.ContainsFunc(text, unicode.IsControl) || len(text) > 4000 {
			t.Errorf("got %q, want one line of at most 4000 bytes", text)
		}
		kit.Lacks(t, "the error", text, Secret, Signature, Content)
	}
	return e
}

// HasCanary reports whether a generated answer holds a canary itself, so that
// its error may.
func HasCanary(text string) bool {
	return strings.Contains(text, Secret) || strings.Contains(text, Signature) || strings.Contains(text, Content)
}
