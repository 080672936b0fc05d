package pdfapi

import (
	"net/http"
	"strings"
	"testing"
	"unicode"

	"vaultd/internal/apicall"
	"vaultd/internal/archive"
	"vaultd/internal/test/calls"
	"vaultd/internal/test/kit"
)

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
			if strings.ContainsFunc(string(why), unicode.IsControl) || strings.Contains(string(why), calls.Signature) || len(why) > 2000 {
				t.Errorf("not fit for a log: %q", why)
			}
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
