package pdfapi

import (
	"bytes"
	"context"
	"crypto/md5"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode"

	"vaultd/internal/apicall"
	"vaultd/internal/archive"
	"vaultd/internal/ingest"
	"vaultd/internal/test/calls"
	"vaultd/internal/test/kit"
)

// The store gets the PDF, its length and its digest, and no credentials.
func TestUpload_I7_NoCredentialsGoToTheStore(t *testing.T) {
	content := bytes.Repeat([]byte(pdfCanary), 50_000)
	var posted, put []*http.Request
	var body []byte
	c, _ := client(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			posted = append(posted, r)
			fmt.Fprintf(w, `{"uploadUrl":"https://%s/in/a%%2Bb.pdf?x=%%2f%%20+\u0026X-Amz-Signature=%s"}`, r.Host, calls.Signature)
			return
		}
		put = append(put, r)
		body, _ = io.ReadAll(r.Body)
		sum := md5.Sum(body)
		w.Header().Set("ETag", `"`+hex.EncodeToString(sum[:])+`"`)
	})
	ticket := kit.Value(register(t, c))(t)
	p := sealed(t, content)
	sent, etag, err := c.Upload(t.Context(), ticket, p)
	kit.Need(t, err == nil && len(posted) == 1 && len(put) == 1,
		"%v after %d POSTs and %d PUTs", err, len(posted), len(put))
	r := put[0]
	if r.Method != http.MethodPut || r.RequestURI != "/in/a%2Bb.pdf?x=%2f%20+&X-Amz-Signature="+calls.Signature || r.ContentLength != p.Size || len(r.TransferEncoding) != 0 || !bytes.Equal(body, content) {
		t.Errorf("%s %s, %d of %d bytes, %v", r.Method, r.RequestURI, len(body), r.ContentLength, r.TransferEncoding)
	}
	h := r.Header
	if h.Values("Authorization") != nil || h.Get("Content-Type") != "application/pdf" || h.Get("Content-MD5") != base64.StdEncoding.EncodeToString(p.MD5[:]) || h.Get("X-SVC-REQUEST-ID") != "" {
		t.Errorf("headers %v", h)
	}
	kit.Check(t, posted[0].Header.Get("Authorization") != "", "the POST had no credentials")
	kit.Check(t, sent == p.SHA256 && etag == hex.EncodeToString(p.MD5[:]), "sent %s, etag %q", sent, etag)
}

// A store may send the upload on to another region, but not to another object, and not in the clear.
func TestUpload_Redirects(t *testing.T) {
	type row struct {
		to   string
		goes bool
	}
	kit.Rows(t, map[string]row{
		"SameObject":    {"OTHER/in/k.pdf?X-Amz-Signature=" + calls.Signature, true},
		"BehindBucket":  {"OTHER/bucket/in/k.pdf?X-Amz-Signature=" + calls.Signature, true},
		"AnotherObject": {"OTHER/in/l.pdf?X-Amz-Signature=" + calls.Signature, false},
		"PlainHTTP":     {"http://127.0.0.1/in/k.pdf?X-Amz-Signature=" + calls.Signature, false},
	}, func(t *testing.T, row row) {
		content := []byte(pdfCanary)
		var there []*http.Request
		other := serve(t, func(_ http.ResponseWriter, r *http.Request) {
			there = append(there, r)
			b, _ := io.ReadAll(r.Body)
			kit.Check(t, bytes.Equal(b, content), "the other store got %q", b)
		})
		c, srv := client(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", strings.Replace(row.to, "OTHER", other.URL, 1))
			w.WriteHeader(http.StatusTemporaryRedirect)
		})
		sent, _, err := c.Upload(context.Background(), archive.Ticket{URL: archive.PresignedURL(srv.URL + "/in/k.pdf?X-Amz-Signature=" + calls.Signature)}, sealed(t, content))
		if !row.goes {
			e := calls.Failed(t, err)
			kit.Check(t, e.Code == "policy" && len(there) == 0, "%v after %d requests there", e, len(there))
			return
		}
		kit.Check(t, err == nil && len(there) == 1 && there[0].Header.Values("Authorization") == nil && sent == archive.Sum(content),
			"%v; %d requests there", err, len(there))
	})
}

// Whatever an answer of 200 holds: it is a ticket that the policy allows, with a number and a bounded life, or nobody knows what
// was registered.
func FuzzRegisterAnswer(f *testing.F) {
	for _, s := range []string{
		answer, `{"url":{"url":"https://b.example/k","headers":{"content-type":"a","x-amz-meta-a":"b"}},"bumId":7}`, `["https://b.example/k"]`, `"https://b.example/k?X-Amz-Expires=60"`,
		`{"uploadUrl":"https://b.example/k","uploadUrl":"https://b.example/l"}`, `{"uploadUrl":"http://10.0.0.1/k","bumId":"\u001b"}`, `[[]]`, "null", "<html>", "\xef\xbb\xbf{}", `{"uploadURL":[],"url":7,"headers":{"":""}}`,
	} {
		f.Add(s, "Fri, 20 Nov 2026 10:00:00 GMT")
	}
	f.Fuzz(func(t *testing.T, body, date string) {
		if before, _, found := strings.Cut(body, calls.Signature); found && !strings.Contains(before, "?X-Amz-") {
			return // it signs nothing where it stands; the path of an address, as an example, is told
		}
		if strings.Contains(body, calls.Secret) || strings.Contains(body, calls.Content) {
			return
		}
		c := answering(t, 200, http.Header{"Date": {date}}, body)
		ticket, err := register(t, c)
		if why, barred := err.(barredError); barred {
			kit.Check(t, !strings.ContainsFunc(string(why), unicode.IsControl) && !strings.Contains(string(why), calls.Signature) && len(why) <= 2000,
				"not fit for a log: %q", why)
			return
		}
		if err != nil {
			e := calls.Failed(t, err)
			kit.Check(t, e.Outcome == apicall.OutcomeUnknown && ticket.URL == "", "%v with %+v", e.Outcome, ticket)
			return
		}
		kit.Want(t, "the error of ParseRemoteID", kit.Err(archive.ParseRemoteID(string(ticket.Remote))), nil)
		if err := c.store.CheckURL(string(ticket.URL)); err != nil || ticket.URL == "" || ticket.Validity <= 0 || ticket.Life() > longestLife || ticket.Sent != before {
			t.Errorf("%+v for %v: %v", ticket, ticket.Life(), err)
		}
	})
}

// Whatever a refusal says: its outcome is the one of its status, and its words are fit for a log.
func FuzzRefusals(f *testing.F) {
	f.Add(uint16(122), "application/json", []byte(`{"detail":[{"loc":["body","receivingEmailAddress"],"msg":"bad \u0007"}]}`))
	f.Add(uint16(100), "application/json", []byte(`{"detail":"notificationEmailAddress \u202e"}`))
	f.Add(uint16(202), "text/html", []byte("<html><title>\x1b]0;x\a"))
	f.Add(uint16(7), "", []byte{})
	f.Fuzz(func(t *testing.T, code uint16, contentType string, body []byte) {
		if calls.HasCanary(string(body)) {
			return
		}
		status := 300 + int(code)%700
		_, err := register(t, answering(t, status, http.Header{"Content-Type": {contentType}}, string(body)))
		e := calls.Failed(t, err)
		if (e.Outcome == apicall.Refused) && status != 400 && status != 422 || e.Outcome == apicall.NotProcessed && status >= 500 || len(e.Field) > 400 {
			t.Errorf("%d: %v, field %q", status, e.Outcome, e.Field)
		}
	})
}

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
