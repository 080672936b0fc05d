package vaultapi

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"vaultd/internal/apicall"
	"vaultd/internal/archive"
	"vaultd/internal/test/kit"
)

const (
	secretCanary    = "S3cr3t-canary"
	signatureCanary = "51gnature0canary0deadbeef"
)

var (
	idA = mustID("10d90000-0000-4000-8000-00000000000a")
	idB = mustID("10d90000-0000-4000-8000-00000000000b")
	idC = mustID("10d90000-0000-4000-8000-00000000000c")

	before = archive.Instant{Wall: time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC), Boot: time.Hour, BootID: "boot"}
)

func mustID(s string) archive.ID {
	id, err := archive.ParseID(s)
	if err != nil {
		panic(err)
	}
	return id
}

// client returns a client for a server of its own, which also plays the object store.
func client(t *testing.T, h http.HandlerFunc) (*Client, *httptest.Server) {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	return clientFor(t, srv.URL), srv
}

func clientFor(t *testing.T, base string, allowed ...string) *Client {
	t.Helper()
	api, store, err := apicall.New(apicall.Config{BaseURL: base, AllowedHosts: allowed,
		Auth: apicall.Auth{Method: apicall.Basic, Username: "u", Secret: func() (string, error) { return secretCanary, nil }}})
	kit.Must(t, err)
	return New(Config{API: api, Store: store, Now: func() archive.Instant { return before }})
}

func says(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		w.WriteHeader(status)
		io.WriteString(w, body)
	}
}

// failed demands an *apicall.Error in which no secret shows.
func failed(t *testing.T, err error) *apicall.Error {
	t.Helper()
	var e *apicall.Error
	if !errors.As(err, &e) {
		t.Fatalf("got %v (%T), want an *apicall.Error", err, err)
	}
	for cause := err; cause != nil; cause = errors.Unwrap(cause) {
		for _, text := range []string{cause.Error(), fmt.Sprintf("%+v", cause), fmt.Sprintf("%#v", cause)} {
			kit.Lacks(t, "the text", text, secretCanary, signatureCanary)
		}
	}
	return e
}

func requests(ids ...archive.ID) []archive.RegisterRequest {
	var out []archive.RegisterRequest
	for _, id := range ids {
		out = append(out, archive.RegisterRequest{ID: id, Metadata: []byte(`{"documentType":"Invoice","amount":9007199254740993.10,"senderName":"<&>  ü"}`)})
	}
	return out
}
