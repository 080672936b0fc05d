package vaultapi

import (
	"bytes"
	"context"
	"crypto/md5"
	"encoding/base64"
	"encoding/hex"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"vaultd/internal/apicall"
	"vaultd/internal/archive"
	"vaultd/internal/test/calls"
	"vaultd/internal/test/kit"
)

// sealed returns a package of this content, in a file.
func sealed(t *testing.T, content []byte) archive.Package {
	t.Helper()
	path := filepath.Join(t.TempDir(), "p.zip")
	kit.Must(t, os.WriteFile(path, content, 0o600))
	return archive.Package{Path: path, Size: int64(len(content)), SHA256: archive.Sum(content), MD5: md5.Sum(content)}
}

func TestUpload_I4_BytesLengthAndDigest(t *testing.T) {
	for _, size := range []int{30, 1_000_001} {
		content := bytes.Repeat([]byte("PK"), size)
		p := sealed(t, content)
		var got *http.Request
		var body []byte
		c, srv := client(t, func(w http.ResponseWriter, r *http.Request) {
			got = r
			body, _ = io.ReadAll(r.Body)
			w.Header().Set("ETag", `"`+hex.EncodeToString(p.MD5[:])+`"`)
		})
		uri := "/k/a%2Bb.zip?X-Amz-Date=20260303T121201Z&x=%2f%20+&X-Amz-Signature=" + calls.Signature
		sent, etag, err := c.Upload(context.Background(), archive.Ticket{URL: archive.PresignedURL(srv.URL + uri)}, p)
		kit.Must(t, err)
		if !bytes.Equal(body, content) || got.ContentLength != p.Size || len(got.TransferEncoding) != 0 || got.RequestURI != uri || got.Method != "PUT" {
			t.Errorf("received %d bytes, length %d, encoding %v, %s", len(body), got.ContentLength, got.TransferEncoding, got.RequestURI)
		}
		h := got.Header
		if h.Get("Authorization") != "" || h.Get("Content-Type") != "application/octet-stream" || h.Get("Content-MD5") != base64.StdEncoding.EncodeToString(p.MD5[:]) ||
			(h.Get("Expect") != "") != (p.Size > 1_000_000) || h.Get("X-SVC-REQUEST-ID") != "" {
			t.Errorf("headers %v", h)
		}
		kit.Check(t, etag == hex.EncodeToString(p.MD5[:]) && sent == p.SHA256, "etag %q, sent %s", etag, sent)
	}
}

// The type of a package is the configured one, and octet-stream where none is; the type that a ticket names comes first.
func TestUpload_I4_ContentType(t *testing.T) {
	type row struct {
		configured string
		ticket     []archive.Header
		want       string
	}
	kit.Rows(t, map[string]row{
		"Default":     {"", nil, "application/octet-stream"},
		"Configured":  {"application/zip", nil, "application/zip"},
		"TicketFirst": {"application/zip", []archive.Header{{Name: "Content-Type", Value: "application/x-package"}}, "application/x-package"},
	}, func(t *testing.T, row row) {
		var got []string
		c, srv := client(t, func(w http.ResponseWriter, r *http.Request) {
			got = r.Header.Values("Content-Type")
			io.Copy(io.Discard, r.Body)
		})
		c = New(Config{API: c.api, Store: c.store, Now: c.now, ContentType: row.configured})
		ticket := archive.Ticket{URL: archive.PresignedURL(srv.URL + "/k"), Headers: row.ticket}
		_, _, err := c.Upload(t.Context(), ticket, sealed(t, []byte("PK")))
		kit.Need(t, err == nil, "error: %v", err)
		kit.Check(t, slices.Equal(got, []string{row.want}), "sent as %q, want %q", got, row.want)
	})
}

// I4: a package that changed after it was sealed does not arrive whole; what the store made of the rest is not known.
func TestUpload_I4_ADamagedPackage(t *testing.T) {
	content := bytes.Repeat([]byte("PK"), 100_000)
	for name, have := range map[string][]byte{
		"Changed": append([]byte("Q"), content[1:]...), "Shorter": content[2:], "Longer": append(bytes.Clone(content), 'P'),
	} {
		got := make(chan int, 1)
		c, srv := client(t, func(_ http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body) // it keeps what came, and says 200
			got <- len(body)
		})
		p := sealed(t, content)
		kit.Must(t, os.WriteFile(p.Path, have, 0o600))
		sent, _, err := c.Upload(context.Background(), archive.Ticket{URL: archive.PresignedURL(srv.URL + "/k")}, p)
		e := calls.Failed(t, err)
		kit.Check(t, e.Outcome == apicall.OutcomeUnknown && e.Code == "package-damaged" && e.Damaged && sent.IsZero(), "%s: %+v, sent %s", name, e, sent)
		n := <-got
		kit.Check(t, n < len(content), "%s: the store got %d of %d bytes", name, n, len(content))
	}
}

// I12: what is no acceptance of the whole package leaves open what became of it.
func TestUpload_I12_NoAcceptance(t *testing.T) {
	content := bytes.Repeat([]byte("PK"), 1_000_000)
	for code, answer := range map[string]http.HandlerFunc{
		"answered-early": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) },
		"not-the-store":  calls.Says(200, "<html>please log in</html>"),
		"error-document": calls.Says(200, "<Error><Code>SlowDown</Code><Message>Reduce your request rate.</Message></Error>"),
		"unreadable": func(w http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body)
			w.Header().Set("Content-Length", "10")
			io.WriteString(w, "stor")
		},
	} {
		c, srv := client(t, answer)
		_, _, err := c.Upload(context.Background(), archive.Ticket{URL: archive.PresignedURL(srv.URL + "/k?X-Amz-Signature=" + calls.Signature)}, sealed(t, content))
		if e := calls.Failed(t, err); e.Outcome != apicall.OutcomeUnknown || e.Code != code || e.Damaged {
			t.Errorf("%s: %+v, want e.Outcome = apicall.OutcomeUnknown, e.Code = %v, not e.Damaged", code, e, code)
		}
	}
}

func TestUpload_TicketHeaders(t *testing.T) {
	var got http.Header
	c, srv := client(t, func(_ http.ResponseWriter, r *http.Request) { got = r.Header })
	ticket := archive.Ticket{URL: archive.PresignedURL(srv.URL + "/k"), Headers: []archive.Header{{Name: "Content-Type", Value: "application/zip"}, {Name: "X-Amz-Meta-N", Value: "7"}}}
	if _, _, err := c.Upload(context.Background(), ticket, sealed(t, []byte("PK"))); err != nil {
		t.Fatal(err)
	}
	kit.Check(t, got.Get("Content-Type") == "application/zip" && got.Get("X-Amz-Meta-N") == "7", "headers %v", got)
	ticket.Headers = []archive.Header{{Name: "Authorization", Value: "Basic x"}}
	got = nil
	_, _, err := c.Upload(context.Background(), ticket, sealed(t, []byte("PK")))
	e := calls.Failed(t, err)
	kit.Check(t, e.Outcome == apicall.NotSent && e.Code == "policy" && got == nil, "%+v, sent %v", e, got)
}

func TestUpload_Outcomes(t *testing.T) {
	rows := []struct {
		name, body string
		status     int
		want       apicall.Outcome
		words      string
	}{
		{"Expired", "<Error><Code>AccessDenied</Code><Message>Request has expired</Message></Error>", 403, apicall.Refused, "Request has expired"},
		{"ExpiredToken", "<Error><Code>ExpiredToken</Code><Message>The provided token has expired.</Message></Error>", 400, apicall.Refused, "ExpiredToken"},
		{"ExpiredWithDot", "<Error><Code>AccessDenied</Code><Message>Request has expired.</Message><Expires>2026-11-20T06:47:47Z</Expires></Error>", 403, apicall.Refused, "Request has expired"},
		{"ExpiredByDifference", "<Error><Code>AccessDenied</Code><Message>The difference between the request time and the server's time is too large.</Message></Error>", 400, apicall.Refused, "AccessDenied"},
		{"Denied", "<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>", 403, apicall.Refused, "Access Denied"},
		{"Signature", "<Error><Code>SignatureDoesNotMatch</Code><Message>no match</Message><StringToSign>" + calls.Signature + "</StringToSign></Error>", 403, apicall.Refused, "SignatureDoesNotMatch"},
		{"BadDigest", "<Error><Code>BadDigest</Code></Error>", 400, apicall.Refused, "BadDigest"},
		{"NoSuchBucket", "<Error><Code>NoSuchBucket</Code></Error>", 404, apicall.Refused, "NoSuchBucket"},
		{"RequestTimeout", "<Error><Code>RequestTimeout</Code></Error>", 400, apicall.OutcomeUnknown, "RequestTimeout"},
		{"SlowDown", "<Error><Code>SlowDown</Code></Error>", 503, apicall.OutcomeUnknown, "SlowDown"},
		{"Internal", "", 500, apicall.OutcomeUnknown, ""},
		{"Timeout408", "", 408, apicall.OutcomeUnknown, ""},
		{"TooMany", "", 429, apicall.OutcomeUnknown, ""},
		{"WrongRegionWithoutPlace", "<Error><Code>PermanentRedirect</Code></Error>", 301, apicall.OutcomeUnknown, "PermanentRedirect"},
		{"EchoesURL", "no access to /k?X-Amz-Signature=" + calls.Signature, 403, apicall.Refused, "no access"},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			n := 0
			c, srv := client(t, func(w http.ResponseWriter, req *http.Request) { n++; calls.Says(r.status, r.body)(w, req) })
			_, _, err := c.Upload(context.Background(), archive.Ticket{URL: archive.PresignedURL(srv.URL + "/k?X-Amz-Signature=" + calls.Signature)}, sealed(t, []byte("PK")))
			e := calls.Failed(t, err)
			kit.Want(t, "expired", e.Expired, strings.HasPrefix(r.name, "Expired"))
			kit.Check(t, e.Outcome == r.want && strings.Contains(e.Error(), r.words) && !e.Denied && n == 1,
				"after %d requests: %v, denied %v: %v", n, e.Outcome, e.Denied, e)
		})
	}
}

// I25: a store's refusal of Content-MD5 is told apart from every other one, and
// only where the address does not sign the header.
func TestUpload_I25_ContentMD5Refused(t *testing.T) {
	const unsigned = "<Error><Code>AccessDenied</Code><Message>There were headers present in the request which were not signed</Message><HeadersNotSigned>%</HeadersNotSigned></Error>"
	list := func(names string) string { return strings.Replace(unsigned, "%", names, 1) }
	const mismatch = "<Error><Code>SignatureDoesNotMatch</Code><Message>no match</Message></Error>"
	type row struct {
		query  string
		status int
		body   string
		want   bool
	}
	kit.Rows(t, map[string]row{
		"Unsigned":        {"&X-Amz-SignedHeaders=host", 403, list("content-md5"), true},
		"UnsignedIn400":   {"&X-Amz-SignedHeaders=host", 400, list("content-md5, x-amz-date"), true},
		"ListAlone":       {"", 403, "<Error><Code>AccessDenied</Code><Message>Access Denied</Message><HeadersNotSigned>Content-MD5</HeadersNotSigned></Error>", true},
		"OtherUnsigned":   {"&X-Amz-SignedHeaders=host", 403, list("x-amz-acl"), false},
		"Mismatch":        {"&X-Amz-SignedHeaders=host%3Bx-amz-acl", 403, mismatch, true},
		"OldSignature":    {"&Signature=abc&Expires=1", 403, mismatch, true},
		"InWords":         {"", 401, `{"message":"the request signature does not match"}`, true},
		"Unknown":         {"", 501, "<Error><Code>NotImplemented</Code><Message>A header you provided implies functionality that is not implemented</Message></Error>", true},
		"Unsupported":     {"", 400, "<Error><Code>InvalidArgument</Code><Message>Unsupported header Content-MD5</Message></Error>", true},
		"Signed":          {"&X-Amz-SignedHeaders=content-md5%3Bhost", 403, mismatch, false},
		"SignedPlainly":   {"&x-amz-signedheaders=Content-MD5;host", 403, mismatch, false},
		"SignedByAnother": {"&X-Goog-SignedHeaders=content-md5%3bhost", 501, "<Error><Code>NotImplemented</Code></Error>", false},
		"Digest":          {"", 400, "<Error><Code>BadDigest</Code><Message>The Content-MD5 you specified did not match what we received.</Message></Error>", false},
		"Expired":         {"", 403, "<Error><Code>AccessDenied</Code><Message>Request has expired: the signature does not match</Message></Error>", false},
		"Denied":          {"", 403, "<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>", false},
		"Gateway":         {"", 501, "<html>Not Implemented</html>", false},
		"Later":           {"", 503, mismatch, false},
	}, func(t *testing.T, row row) {
		c, srv := client(t, calls.Says(row.status, row.body))
		ticket := archive.Ticket{URL: archive.PresignedURL(srv.URL + "/k?X-Amz-Signature=" + calls.Signature + row.query)}
		_, _, err := c.Upload(t.Context(), ticket, sealed(t, []byte("PK")))
		e := calls.Failed(t, err)
		kit.Want(t, "the store refuses Content-MD5", e.RefusesMD5, row.want)
		if row.want {
			kit.Want(t, "outcome", e.Outcome, apicall.Refused)
		}
		ticket.WithoutMD5 = true
		_, _, err = c.Upload(t.Context(), ticket, sealed(t, []byte("PK")))
		kit.Want(t, "the store refuses a header that was not sent", calls.Failed(t, err).RefusesMD5, false)
		kit.Want(t, "the host takes packages without it", c.OmitsMD5(ticket.URL), false)
	})
}

// A host that took a package without Content-MD5 gets the next ones so, unless
// their address signs the header.
func TestUpload_I25_HostWithoutContentMD5(t *testing.T) {
	var got http.Header
	c, srv := client(t, func(_ http.ResponseWriter, r *http.Request) { got = r.Header; io.Copy(io.Discard, r.Body) })
	ticket := archive.Ticket{URL: archive.PresignedURL(srv.URL + "/k?X-Amz-Signature=" + calls.Signature), WithoutMD5: true}
	kit.Want(t, "omitted before", c.OmitsMD5(ticket.URL), false)
	_, _, err := c.Upload(t.Context(), ticket, sealed(t, []byte("PK")))
	kit.Need(t, err == nil, "error: %v", err)
	kit.Want(t, "Content-MD5", got.Get("Content-MD5"), "")
	kit.Want(t, "omitted for another object", c.OmitsMD5(archive.PresignedURL(srv.URL+"/other")), true)
	kit.Want(t, "omitted where it is signed", c.OmitsMD5(ticket.URL+"&X-Amz-SignedHeaders=content-md5%3Bhost"), false)
	kit.Want(t, "omitted at another host", c.OmitsMD5("https://bucket.example/k"), false)
}

// I25: a store that does not know "Expect: 100-continue" gets the same request
// once more without it, and once alone.
func TestUpload_I25_ExpectRefused(t *testing.T) {
	p := sealed(t, bytes.Repeat([]byte("PK"), 1_000_000))
	type row struct {
		always bool
		want   int
	}
	kit.Rows(t, map[string]row{"ItsQuestion": {false, 2}, "Everything": {true, 2}}, func(t *testing.T, row row) {
		n, whole := 0, int64(0)
		c, srv := client(t, func(w http.ResponseWriter, r *http.Request) {
			if n++; row.always || r.Header.Get("Expect") != "" {
				w.WriteHeader(http.StatusExpectationFailed)
				return
			}
			whole, _ = io.Copy(io.Discard, r.Body)
		})
		_, _, err := c.Upload(t.Context(), archive.Ticket{URL: archive.PresignedURL(srv.URL + "/k?X-Amz-Signature=" + calls.Signature)}, p)
		kit.Want(t, "requests", n, row.want)
		if !row.always {
			kit.Must(t, err)
			kit.Want(t, "bytes", whole, p.Size)
		} else if e := calls.Failed(t, err); e.Outcome != apicall.Refused || e.Status != http.StatusExpectationFailed {
			t.Errorf("%v: %v, want e.Outcome = apicall.Refused, e.Status = 417", e.Outcome, e)
		}
	})
}

func TestUpload_NotSent(t *testing.T) {
	c, srv := client(t, calls.Says(200, ""))
	good := archive.Ticket{URL: archive.PresignedURL(srv.URL + "/k?X-Amz-Signature=" + calls.Signature)}
	for name, try := range map[string]func() error{
		"FileGone": func() error {
			p := sealed(t, []byte("PK"))
			p.Path += ".gone"
			_, _, err := c.Upload(context.Background(), good, p)
			kit.Fails(t, "got", err, fs.ErrNotExist)
			return err
		},
		"Policy": func() error {
			_, _, err := c.Upload(context.Background(), archive.Ticket{URL: "http://bucket.example/k?X-Amz-Signature=" + calls.Signature}, sealed(t, []byte("PK")))
			return err
		},
		"NotSealed": func() error {
			_, _, err := c.Upload(context.Background(), good, archive.Package{})
			return err
		},
		"DeadlineOver": func() error {
			ctx, cancel := context.WithTimeout(context.Background(), 0)
			defer cancel()
			_, _, err := c.Upload(ctx, good, sealed(t, []byte("PK")))
			return err
		},
		"Wiped": func() error {
			_, _, err := c.Upload(context.Background(), archive.Ticket{}, sealed(t, []byte("PK")))
			return err
		},
	} {
		e := calls.Failed(t, try())
		kit.Check(t, e.Outcome == apicall.NotSent, "%s: %v %v, want e.Outcome = apicall.NotSent", name, e.Outcome, e)
	}
}

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
