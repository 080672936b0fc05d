package vaultapi

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

// Whatever an answer of 200 holds: a word about another registration is never taken for one about this, success is the
// service's own word alone, and texts are fit for a log.
func FuzzAnswers(f *testing.F) {
	for _, s := range []string{
		`{"bumId":"bum-1","clientUUID":"10d90000-0000-4000-8000-00000000000a","status":"ArchivingSuccessful","lastUpdated":"2026-11-20T10:00:00Z"}`,
		`[{"bumId":"BUM-1","status":"ArchivingFailed","message":"\u001b[31mred"},{"bumId":"bum-1","status":"ArchivingSuccessful"}]`,
		`{"documents":[{"bumId":"a","status":"x"},{"bumId":"a","status":"y"},{"status":1}]}`,
		`{"cursor":7,"found":"2","start":2,"documents":[{"archiveId":1,"bumid":"r","archiveDate":"2026-11-20","amount":1e400,"senderIds":[1,null]}]}`,
		`{"cursor":{},"documents":[[]]}`, `[]`, `null`, `"https://bucket.example/k?X-Amz-Signature=51gnature0canary0deadbeef"`,
		`{"downloadUrl":{"url":"https://bucket.example/k"}}`, "PK\x03\x04rest", "<html>", "\xef\xbb\xbf[]", `[{"vaultId":"V","name":"\u202e"}]`, `{"bumId":"bum-1","status":"ArchivingInProgress","STATUS":"ArchivingSuccessful"}`, `{"status":"ArchivingFailed","status":"ArchivingSuccessful"}`, `{"vaults":[{}]}`, `{"a":1} trailing`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		if before, _, found := strings.Cut(string(body), calls.Signature); found && !strings.Contains(before, "?X-Amz-Signature=") {
			return // it signs nothing where it stands; the path of an address, as an example, is told
		}
		c, ctx := clientWith(t, apicall.Config{Transport: calls.Answering(200, http.Header{"Content-Type": {"application/json"}}, string(body))}), t.Context()
		fails := func(err error) {
			if err != nil {
				calls.Failed(t, err)
			}
		}
		rc, err := c.Status(ctx, "V", "bum-1")
		fails(err)
		if err == nil && (rc.Remote != "bum-1" || rc.Status == archive.Successful && rc.Raw != "ArchivingSuccessful" || strings.ContainsFunc(rc.Raw+rc.Message, unicode.IsControl)) {
			t.Errorf("%+v", rc)
		}
		list, err := c.StatusList(ctx, "V")
		fails(err)
		seen := map[archive.RemoteID]bool{}
		for _, rc := range list {
			kit.Check(t, rc.Remote != "" && !seen[rc.Remote] && len(rc.Record) <= maxRecord,
				`%+v, want rc.Remote other than "", not seen[rc.Remote], len(rc.Record) <= %v`, rc, maxRecord)
			seen[rc.Remote] = true
		}
		page, err := c.Index(ctx, "V", FirstPage, 1000, "archiveDate asc")
		fails(err)
		for _, rec := range page.Records {
			kit.Check(t, !strings.ContainsFunc(rec.ArchiveID, unicode.IsControl) && len(rec.Raw) != 0,
				"%+v, want not strings.ContainsFunc(rec.ArchiveID, unicode.IsControl), len(rec.Raw) other than 0", rec)
		}
		_, err = c.Vaults(ctx, "V")
		fails(err)
		var zip strings.Builder
		n, digest, err := c.Download(ctx, "V", "bum-1", &zip)
		fails(err)
		if err == nil && (n != int64(zip.Len()) || digest != archive.Sum([]byte(zip.String())) || !strings.HasPrefix(zip.String(), "PK")) {
			t.Errorf("%d bytes of %q", n, zip.String())
		}
	})
}
