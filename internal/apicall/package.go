package apicall

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"os"
	"strings"

	"vaultd/internal/archive"
)

// UploadRules are how the packages of one interface go to the store.
type UploadRules struct {
	ContentType string // of a package whose ticket names none
	// AsksFirst: the store is asked first whether it wants the content,
	// whatever its size, with "Expect: 100-continue". If the store answers with
	// an error before any byte of the content has left, none leaves, and the
	// outcome is NotSent. This is for an interface that can never be asked what
	// became of an upload. A store that ignores the question delays each upload
	// by a second.
	AsksFirst bool
}

// UploadPackage sends a package to its ticket's address in one PUT, from the
// file at its Path, with its length and, unless the ticket says WithoutMD5, its
// MD5: the store refuses anything else. ctx ends with the ticket: the caller
// knows its deadline.
//
// It returns the SHA-256 of the bytes that left, and the store's ETag where it
// is the MD5 of what was stored (32 hexadecimal digits). Its error is an
// *Error. Refused means that this attempt stored nothing; Expired, that the
// ticket is over; RefusesMD5, that the same bytes may go to the same address at
// once without Content-MD5. If the file holds other bytes than the package's,
// their end does not leave: then Damaged is set, and what left before may be
// stored.
func (s *Store) UploadPackage(ctx context.Context, t archive.Ticket, p archive.Package, rules UploadRules) (sent archive.Digest, etag string, err error) {
	h := http.Header{}
	h.Set("Content-Type", rules.ContentType) // a ticket's own replaces it
	for _, extra := range t.Headers {
		if err := checkHeader(extra.Name, extra.Value); err != nil {
			return sent, "", &Error{Outcome: NotSent, Code: "policy", Text: "upload: " + err.Error(), Err: err}
		}
		h.Set(extra.Name, extra.Value)
	}
	if !t.WithoutMD5 {
		// The store compares the content with this digest, and refuses a body
		// that was changed on the way.
		h.Set("Content-MD5", base64.StdEncoding.EncodeToString(p.MD5[:]))
	}
	if p.IsZero() || p.MD5 == [16]byte{} {
		err := errors.New("the package is not sealed")
		return sent, "", &Error{Outcome: NotSent, Code: "request", Text: "upload: " + err.Error(), Err: err}
	}
	// This is the PUT. If the process dies in it, bytes may be stored. The caller committed its intent before, and the next start
	// goes on from that.
	ans, err := s.put(ctx, upload{Op: "upload", URL: string(t.URL), Header: h, Size: p.Size, SHA256: p.SHA256, Open: func() (io.ReadCloser, error) { return os.Open(p.Path) },
		AsksFirst:   rules.AsksFirst,
		MayRedirect: func(to string) bool { return t.URL.LeadsToSameObject(archive.PresignedURL(to)) }})
	if err != nil {
		e := uploadError(err)
		if !t.WithoutMD5 && !e.Expired && !signsMD5(t.URL) && e.saysMD5Refused() {
			e.Outcome, e.RefusesMD5 = Refused, true
		}
		return sent, "", e
	}
	if t.WithoutMD5 {
		s.withoutMD5.add(t.URL)
	}
	return ans.Sent, md5FromETag(ans.Header), nil
}

// uploadError says of a failed PUT what it means for the package.
func uploadError(err error) *Error {
	e := AsError(err)
	if e.Outcome == NotProcessed && e.Status/100 == 4 && !e.wantsProxyAuth() {
		e.Outcome = Refused // a 4xx of the store speaks of this upload; a redirect that was not followed and a proxy do not
	}
	// The store refused the ticket, and not our credentials.
	e.Denied = false
	e.Expired = e.Outcome == Refused && reportsExpired(e)
	content, damaged := errors.AsType[*contentError](err)
	switch {
	case damaged:
		e.Damaged, e.Code, e.Text = true, "package-damaged", "upload: the package in the spool is no longer what was sealed: "+content.Error()
	case errors.Is(err, errStorePage):
		e.Code = "not-the-store"
	case errors.Is(err, errAnsweredEarly):
		e.Code = "answered-early"
	case e.Status/100 == 2 && e.Err == nil:
		e.Code = "error-document"
	}
	return e
}

// reportsExpired reports whether the store refused an address because its time is over. Stores say so in different words: a
// 403 that speaks of what has expired, or a 400 that speaks of the time that lies between the two clocks. That access is
// denied for any other reason does not count.
func reportsExpired(e *Error) bool {
	words := strings.ToLower(e.Message)
	switch e.ServiceCode {
	case "ExpiredToken":
		return true
	case "AccessDenied":
		return e.Status == http.StatusForbidden && strings.Contains(words, "expired") ||
			e.Status == http.StatusBadRequest && strings.Contains(words, "request time")
	}
	return false
}

// md5FromETag is the ETag where it is the content's MD5: with the store's own keys (KMS, or keys of a customer) it is not.
func md5FromETag(h http.Header) string {
	for name, values := range h {
		if strings.HasPrefix(name, "X-Amz-Server-Side-Encryption") && !strings.EqualFold(values[0], "AES256") ||
			strings.HasPrefix(name, "X-Amz-Server-Side-Encryption-Customer") {
			return ""
		}
	}
	tag := strings.ToLower(strings.Trim(h.Get("ETag"), `"`))
	if raw, err := hex.DecodeString(tag); err != nil || len(raw) != 16 {
		return ""
	}
	return tag
}
