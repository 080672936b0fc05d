package networkapi

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode"

	"vaultd/internal/archive"
	"vaultd/internal/test/calls"
	"vaultd/internal/test/kit"
)

func FuzzReceived(f *testing.F) {
	for _, s := range []string{receivedInvoice, `{"data":{}}`, `{"data":{"taxTotal":[{"taxSubtotals":[{"taxableAmount":1e9}]}]}}`, "null", "", "[]"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, body string) {
		got, err := readReceived([]byte(body))
		if err != nil {
			return
		}
		kit.Check(t, isObject(got.Data), "%q has the data %q", body, got.Data)
		for _, file := range got.Files {
			kit.Want(t, fmt.Sprintf("%q has the file %q", body, file.ID),
				kit.Err(archive.ParseFileID(string(file.ID))), nil)
		}
		amount := got.Content.NetAmount
		kit.Check(t, amount == "" || amount.Rat() != nil, "%q has the amount %q", body, amount)
	})
}

func FuzzNotificationPage(f *testing.F) {
	for _, s := range []string{onePage(true, record("a"), record("a")), onePage(false, `{}`), `[` + record("a") + `]`, "null", `{"hasMoreItems":1,"notifications":[null]}`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, body string) {
		if calls.HasCanary(body) {
			return
		}
		got, err := client(t, calls.Says(200, body)).Notifications(t.Context(), Query{})
		if err != nil {
			calls.Failed(t, err)
		}
		kit.Check(t, !got.Whole || err == nil && got.Unreadable <= 0 && strings.Contains(body, "hasMoreItems"),
			"%q is whole", body)
		seen := map[archive.AcknowledgementID]bool{}
		for _, n := range got.Notifications {
			if seen[n.AcknowledgementID] || n.Document == "" || n.AcknowledgementID == "" || !json.Valid(n.Raw) || strings.ContainsFunc(n.Response+n.Action+n.DocumentType, unicode.IsControl) {
				t.Errorf("%q: %+v", body, n)
			}
			seen[n.AcknowledgementID] = true
		}
	})
}

func FuzzDirectory(f *testing.F) {
	for _, s := range []string{`[{"siren":"123456789","dateTo":null}]`, `{"items":[]}`, "null", `[{"legalUnit":[]}]`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, body string) {
		lines, err := readDirectory([]byte(body))
		for _, l := range lines {
			kit.Check(t, err == nil && json.Valid(l.Raw) && !strings.ContainsFunc(l.SIREN+l.BusinessName, unicode.IsControl),
				"%q: %+v, %v", body, l, err)
		}
	})
}

func FuzzStoredFile(f *testing.F) {
	for _, s := range []string{`{"fileId":"a"}`, `{"fileId":{"id":"a"}}`, "", "\xef\xbb\xbf{}"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, body string) {
		id, err := readStoredFile([]byte(body))
		kit.Check(t, err != nil || id != "" && !strings.ContainsAny(string(id), "/ \n"), "%q gives %q", body, id)
	})
}

func FuzzRefusal(f *testing.F) {
	f.Add(400, wrapped("error", "VALIDATION", "Error.003.0038"))
	f.Add(503, wrapped("errors", "TECHNICAL", "Error.001.0006"))
	f.Add(404, "<html>")
	f.Fuzz(func(t *testing.T, status int, body string) {
		if status < 200 || status > 599 || calls.HasCanary(body) {
			return
		}
		err := client(t, calls.Says(status, body)).SendDocument(t.Context(), archive.NetworkInvoice, bumID, []byte("{}"))
		kit.Check(t, err != nil || status/100 == 2, "%d %q is a success", status, body)
		if err != nil {
			e := calls.Failed(t, err)
			kit.Check(t, e.Outcome.String() != "refused" || status/100 == 4 && status != 401,
				"%d %q rejects the document", status, body)
		}
	})
}

// What is found right is composed, and what is composed holds the document's own bytes and is JSON.
func FuzzDocument(f *testing.F) {
	for _, s := range []string{goodDocument, `{"data":{"documentCurrencyCode":"EUR","a":"\ud83d\ude00"}}`, `{"data":{"a":"\ud800"}}`, "{", "[]", `{"data":{},"data":{}}`, `{"data":{"":{"":[0]}}}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, document []byte) {
		faults := CheckDocument(document)
		body, err := ComposeBody(document, []archive.FileID{"f-1"})
		kit.Check(t, len(faults) != 0 || err == nil, "%q has no fault, and is not composed: %v", document, err)
		for _, fault := range faults {
			if fault.Line < 1 || fault.Text == "" || strings.ContainsFunc(fault.Describe("d"), unicode.IsControl) {
				t.Errorf(`%q: %+v, want fault.Line >= 1, fault.Text other than "", not strings.ContainsFunc(fault.Describe("d"), unicode.IsControl)`, document, fault)
			}
		}
		kit.Check(t, err != nil || json.Valid(body), "%q gives %q", document, body)
	})
}
