package vaultapi

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"vaultd/internal/apicall"
	"vaultd/internal/archive"
	"vaultd/internal/test/calls"
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
	return clientWith(t, apicall.Config{BaseURL: srv.URL}), srv
}

func clientWith(t *testing.T, cfg apicall.Config) *Client {
	t.Helper()
	api, store := calls.New(t, cfg)
	return New(Config{API: api, Store: store, Now: func() archive.Instant { return before }})
}

func requests(ids ...archive.ID) []archive.RegisterRequest {
	var out []archive.RegisterRequest
	for _, id := range ids {
		out = append(out, archive.RegisterRequest{ID: id, Metadata: []byte(`{"documentType":"Invoice","amount":9007199254740993.10,"senderName":"<&>  ü"}`)})
	}
	return out
}
