package pdfapi

import (
	"crypto/md5"
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"vaultd/internal/apicall"
	"vaultd/internal/archive"
	"vaultd/internal/ingest"
	"vaultd/internal/test/calls"
	"vaultd/internal/test/kit"
)

const pdfCanary = "%PDF-1.7 " + calls.Content + " %%EOF"

// The engine takes this client as it is.
var _ ingest.Client = (*Client)(nil)

var (
	before = archive.Instant{Wall: time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC), Boot: time.Hour, BootID: "boot"}

	document = archive.ID{1}
	frozen   = []archive.RegisterRequest{{ID: document, Metadata: []byte(`{"receivingEmailAddress":"ap@in.example","notificationEmailAddress":"clerk@acme.example"}`)}}
)

// serve starts a server that speaks TLS.
func serve(t *testing.T, h http.HandlerFunc) *httptest.Server {
	t.Helper()
	srv := httptest.NewUnstartedServer(h)
	srv.Config.ErrorLog = log.New(io.Discard, "", 0)
	srv.StartTLS()
	t.Cleanup(srv.Close)
	return srv
}

// client returns a client for a server of its own, which also plays the object store.
func client(t *testing.T, h http.HandlerFunc) (*Client, *httptest.Server) {
	t.Helper()
	srv := serve(t, h)
	return clientFor(t, srv, apicall.Config{}), srv
}

// clientFor returns a client for a server, which by default has Basic credentials.
func clientFor(t *testing.T, srv *httptest.Server, cfg apicall.Config) *Client {
	t.Helper()
	cfg.BaseURL = srv.URL
	cfg.CAFile = filepath.Join(t.TempDir(), "ca.pem")
	kit.Must(t, os.WriteFile(cfg.CAFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw}), 0o600))
	return newClient(t, cfg)
}

func newClient(t *testing.T, cfg apicall.Config) *Client {
	t.Helper()
	api, store := calls.New(t, cfg)
	return New(Config{API: api, Store: store, Now: func() archive.Instant { return before }})
}

// answering is a client whose every call gets the same answer, without a network.
func answering(t *testing.T, status int, header http.Header, body string) *Client {
	t.Helper()
	return newClient(t, apicall.Config{Transport: calls.Answering(status, header, body)})
}

// register returns the ticket of one registration; the error is the call's, or says why the address was refused.
func register(t *testing.T, c *Client) (archive.Ticket, error) {
	t.Helper()
	got, err := c.Register(t.Context(), "", frozen)
	if err != nil {
		return archive.Ticket{}, err
	}
	kit.Check(t, len(got.Tickets)+len(got.Barred) == 1 && got.Foreign+len(got.Crossed) == 0,
		"an answer without an error says %+v", got)
	if why, barred := got.Barred[document]; barred {
		return archive.Ticket{}, barredError(why)
	}
	return got.Tickets[document], nil
}

// barredError is why an upload address was refused.
type barredError string

func (e barredError) Error() string { return string(e) }

// sealed returns a PDF of this content as a package in a file.
func sealed(t *testing.T, content []byte) archive.Package {
	t.Helper()
	path := filepath.Join(t.TempDir(), "p.pdf")
	kit.Must(t, os.WriteFile(path, content, 0o600))
	return archive.Package{Path: path, Size: int64(len(content)), SHA256: archive.Sum(content), MD5: md5.Sum(content)}
}
