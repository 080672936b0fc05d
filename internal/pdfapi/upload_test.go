package pdfapi

import (
	"bytes"
	"context"
	"crypto/md5"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	"vaultd/internal/apicall"
	"vaultd/internal/archive"
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
	ticket, err := register(t, c)
	kit.Must(t, err)
	p := sealed(t, content)
	sent, etag, err := c.Upload(t.Context(), ticket, p)
	if err != nil || len(posted) != 1 || len(put) != 1 {
		t.Fatalf("%v after %d POSTs and %d PUTs", err, len(posted), len(put))
	}
	r := put[0]
	if r.Method != http.MethodPut || r.RequestURI != "/in/a%2Bb.pdf?x=%2f%20+&X-Amz-Signature="+calls.Signature || r.ContentLength != p.Size || len(r.TransferEncoding) != 0 || !bytes.Equal(body, content) {
		t.Errorf("%s %s, %d of %d bytes, %v", r.Method, r.RequestURI, len(body), r.ContentLength, r.TransferEncoding)
	}
	h := r.Header
	if h.Values("Authorization") != nil || h.Get("Content-Type") != "application/pdf" || h.Get("Content-MD5") != base64.StdEncoding.EncodeToString(p.MD5[:]) || h.Get("X-SVC-REQUEST-ID") != "" {
		t.Errorf("headers %v", h)
	}
	if posted[0].Header.Get("Authorization") == "" {
		t.Error("the POST had no credentials")
	}
	if sent != p.SHA256 || etag != hex.EncodeToString(p.MD5[:]) {
		t.Errorf("sent %s, etag %q", sent, etag)
	}
}

// What the ticket says of the content comes before our own type.
func TestUpload_TicketHeaders(t *testing.T) {
	var got http.Header
	c, srv := client(t, func(_ http.ResponseWriter, r *http.Request) { got = r.Header; io.Copy(io.Discard, r.Body) })
	ticket := archive.Ticket{URL: archive.PresignedURL(srv.URL + "/k"), Headers: []archive.Header{{Name: "Content-Type", Value: "binary/x"}, {Name: "X-Amz-Meta-N", Value: "7"}}}
	if _, _, err := c.Upload(t.Context(), ticket, sealed(t, []byte(pdfCanary))); err != nil {
		t.Fatal(err)
	}
	if got.Get("Content-Type") != "binary/x" || got.Get("X-Amz-Meta-N") != "7" {
		t.Errorf("headers %v", got)
	}
	got = nil
	ticket.Headers = []archive.Header{{Name: "Authorization", Value: "Basic " + calls.Secret}}
	_, _, err := c.Upload(t.Context(), ticket, sealed(t, []byte(pdfCanary)))
	if e := calls.Failed(t, err); e.Outcome != apicall.NotSent || got != nil {
		t.Errorf("%v, sent %v", e, got)
	}
}

func TestUpload_Outcomes(t *testing.T) {
	for name, row := range map[string]struct {
		status int
		body   string
		want   apicall.Outcome
	}{
		"Expired":       {403, "<Error><Code>AccessDenied</Code><Message>Request has expired</Message></Error>", apicall.Refused},
		"Denied":        {403, "<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>", apicall.Refused},
		"Signature":     {403, "<Error><Code>SignatureDoesNotMatch</Code><StringToSign>" + calls.Signature + "</StringToSign></Error>", apicall.Refused},
		"BadDigest":     {400, "<Error><Code>BadDigest</Code></Error>", apicall.Refused},
		"SlowDown":      {503, "<Error><Code>SlowDown</Code></Error>", apicall.OutcomeUnknown},
		"Internal":      {500, "", apicall.OutcomeUnknown},
		"WebPage":       {200, "<html>please sign in</html>", apicall.OutcomeUnknown},
		"ErrorDocument": {200, "<Error><Code>InternalError</Code></Error>", apicall.OutcomeUnknown},
		"EchoesTheURL":  {404, "nothing at /k?X-Amz-Signature=" + calls.Signature, apicall.Refused},
	} {
		t.Run(name, func(t *testing.T) {
			n := 0
			c, srv := client(t, func(w http.ResponseWriter, r *http.Request) { n++; calls.Says(row.status, row.body)(w, r) })
			_, _, err := c.Upload(t.Context(), archive.Ticket{URL: archive.PresignedURL(srv.URL + "/k?X-Amz-Signature=" + calls.Signature)}, sealed(t, []byte(pdfCanary)))
			if e := calls.Failed(t, err); e.Outcome != row.want || e.Expired != (name == "Expired") || e.Denied || n != 1 {
				t.Errorf("after %d requests: %v, expired %v, denied %v: %v", n, e.Outcome, e.Expired, e.Denied, e)
			}
		})
	}
}

// I4: a PDF that changed after it was sealed does not arrive whole; what the store made of the rest is not known.
func TestUpload_I4_ADamagedPDF(t *testing.T) {
	content := bytes.Repeat([]byte(pdfCanary), 10_000)
	got := make(chan int, 1)
	c, srv := client(t, func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body) // it keeps what came, and says 200
		got <- len(body)
	})
	p := sealed(t, content)
	kit.Must(t, os.WriteFile(p.Path, append([]byte("x"), content[1:]...), 0o600))
	sent, _, err := c.Upload(t.Context(), archive.Ticket{URL: archive.PresignedURL(srv.URL + "/k")}, p)
	if e := calls.Failed(t, err); e.Outcome != apicall.OutcomeUnknown || !e.Damaged || !sent.IsZero() {
		t.Errorf("%+v, sent %s", e, sent)
	}
	if n := <-got; n >= len(content) {
		t.Errorf("the store got %d of %d bytes", n, len(content))
	}
}

// A store may send the upload on to another region, but not to another object, and not in the clear.
func TestUpload_Redirects(t *testing.T) {
	for name, row := range map[string]struct {
		to   string
		goes bool
	}{
		"SameObject":    {"OTHER/in/k.pdf?X-Amz-Signature=" + calls.Signature, true},
		"BehindBucket":  {"OTHER/bucket/in/k.pdf?X-Amz-Signature=" + calls.Signature, true},
		"AnotherObject": {"OTHER/in/l.pdf?X-Amz-Signature=" + calls.Signature, false},
		"PlainHTTP":     {"http://127.0.0.1/in/k.pdf?X-Amz-Signature=" + calls.Signature, false},
	} {
		t.Run(name, func(t *testing.T) {
			content := []byte(pdfCanary)
			var there []*http.Request
			other := serve(t, func(_ http.ResponseWriter, r *http.Request) {
				there = append(there, r)
				if b, _ := io.ReadAll(r.Body); !bytes.Equal(b, content) {
					t.Errorf("the other store got %q", b)
				}
			})
			c, srv := client(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Location", strings.Replace(row.to, "OTHER", other.URL, 1))
				w.WriteHeader(http.StatusTemporaryRedirect)
			})
			sent, _, err := c.Upload(context.Background(), archive.Ticket{URL: archive.PresignedURL(srv.URL + "/in/k.pdf?X-Amz-Signature=" + calls.Signature)}, sealed(t, content))
			if !row.goes {
				if e := calls.Failed(t, err); e.Code != "policy" || len(there) != 0 {
					t.Errorf("%v after %d requests there", e, len(there))
				}
				return
			}
			if err != nil || len(there) != 1 || there[0].Header.Values("Authorization") != nil || sent != archive.Sum(content) {
				t.Errorf("%v; %d requests there", err, len(there))
			}
		})
	}
}
