package vaultapi

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unicode"

	"vaultd/internal/apicall"
	"vaultd/internal/archive"
	"vaultd/internal/test/calls"
	"vaultd/internal/test/kit"
)

// indexPage makes a page of the documents from one number up to another.
func indexPage(from, to, found int, cursor string) Page {
	p := Page{Found: found, Cursor: cursor, Request: "7c1f"}
	for n := from; n < to; n++ {
		p.Records = append(p.Records, archive.IndexRecord{Remote: archive.RemoteID(fmt.Sprint("bum-", n))})
	}
	return p
}

// When a walk is complete, and when it ends without being that.
func TestIndexWalk_I32_EndsAndIsComplete(t *testing.T) {
	const untold = -1
	type row struct {
		pages    []Page // a walk that asks for more than these has not ended
		read     int
		found    int
		complete bool
		why      string
	}
	kit.Rows(t, map[string]row{
		"EmptyIndex":                        {[]Page{indexPage(0, 0, 0, "a")}, 0, 0, true, ""},
		"EmptyIndex_FoundNotTold":           {[]Page{indexPage(0, 0, untold, "")}, 0, untold, true, ""},
		"FoundReached_NoNextPage":           {[]Page{indexPage(0, 3, 3, "")}, 3, 3, true, ""},
		"FoundReached_CursorUnmoved":        {[]Page{indexPage(0, 3, 3, FirstPage)}, 3, 3, true, ""},
		"FoundReached_TheNextPageIsEmpty":   {[]Page{indexPage(0, 3, 3, "a"), indexPage(3, 3, 3, "a")}, 3, 3, true, ""},
		"FoundReached_ShorterPage":          {[]Page{indexPage(0, 3, 5, "a"), indexPage(3, 5, 5, "b")}, 5, 5, true, ""},
		"FoundGrows":                        {[]Page{indexPage(0, 3, 5, "a"), indexPage(3, 6, 7, "b"), indexPage(6, 8, 8, "c")}, 8, 8, true, ""},
		"FoundGrows_OnePageThenOneMore":     {[]Page{indexPage(0, 3, 3, "a"), indexPage(3, 4, 4, "b"), indexPage(4, 4, 4, "c")}, 4, 4, true, ""},
		"FoundIsWhatWasReadSoFar_ShortPage": {[]Page{indexPage(0, 3, 3, "a"), indexPage(3, 4, 4, "b"), indexPage(4, 7, 7, "c"), indexPage(7, 7, 7, "d")}, 7, 7, true, ""},
		"FoundOnTheFirstPageOnly":           {[]Page{indexPage(0, 3, 5, "a"), indexPage(3, 5, untold, "b")}, 5, 5, true, ""},
		"FoundOnTheLastPageOnly":            {[]Page{indexPage(0, 3, untold, "a"), indexPage(3, 5, 5, "b"), indexPage(5, 5, 5, "c")}, 5, 5, true, ""},
		"FoundIsOfThePage":                  {[]Page{indexPage(0, 3, 3, "a"), indexPage(3, 6, 3, "b"), indexPage(6, 6, 0, "c")}, 6, 3, true, ""},
		"FoundIsTooSmall_NoNextPage":        {[]Page{indexPage(0, 3, 2, "")}, 3, 2, false, "no next page"},
		"FoundIsTooSmall_CursorUnmoved":     {[]Page{indexPage(0, 3, 0, FirstPage)}, 3, 0, false, "read before"},
		"FoundIsTooSmall_EmptyPage":         {[]Page{indexPage(0, 3, 2, "a"), indexPage(3, 3, 2, "")}, 3, 2, true, ""},
		"NotTold_EmptyPage":                 {[]Page{indexPage(0, 3, untold, "a"), indexPage(3, 3, untold, "a")}, 3, untold, true, ""},
		"NotTold_NoNextPage":                {[]Page{indexPage(0, 3, untold, "")}, 3, untold, false, "no next page"},
		"NotTold_CursorUnmoved":             {[]Page{indexPage(0, 3, untold, FirstPage)}, 3, untold, false, "read before"},
		"Short_CursorUnmoved":               {[]Page{indexPage(0, 1, 900, FirstPage)}, 1, 900, false, "read before"},
		"Short_NoNextPage":                  {[]Page{indexPage(0, 1, 900, "")}, 1, 900, false, "no next page"},
		"Short_ThenAnEmptyPage":             {[]Page{indexPage(0, 1, 900, "a"), indexPage(0, 0, 900, "a")}, 1, 900, false, "read before"},
		"Short_ThenNothingIsFound":          {[]Page{indexPage(0, 1, 900, "a"), indexPage(0, 0, 0, "")}, 1, 900, false, "no next page"},
		"Short_ThenFoundIsNotTold":          {[]Page{indexPage(0, 1, 900, "a"), indexPage(0, 0, untold, "")}, 1, 900, false, "no next page"},
		"FoundShrinks":                      {[]Page{indexPage(0, 3, 6, "a"), indexPage(4, 6, 5, "")}, 5, 6, false, "no next page"}, // one left, and so one was skipped
		"CirclingCursors":                   {[]Page{indexPage(0, 3, 9, "a"), indexPage(3, 6, 9, "b"), indexPage(0, 3, 9, "a")}, 6, 9, false, "read before"},
		"BackToTheFirstPage":                {[]Page{indexPage(0, 3, 9, "a"), indexPage(3, 6, 9, FirstPage)}, 6, 9, false, "read before"},
		"RepeatedPage_DoesNotCountTwice":    {[]Page{indexPage(0, 3, 6, "a"), indexPage(0, 3, 6, "b"), indexPage(3, 5, 6, "")}, 5, 6, false, "no next page"},
		"ShiftedPage_DoesNotCountTwice":     {[]Page{indexPage(0, 3, 5, "a"), indexPage(2, 4, 5, "")}, 4, 5, false, "no next page"},
		"TwiceOnOnePage":                    {[]Page{{Records: slices.Repeat(indexPage(0, 1, 0, "").Records, 3), Found: 3, Request: "7c1f"}}, 1, 3, false, "no next page"},
	}, func(t *testing.T, row row) {
		w := newIndexWalk()
		for i, p := range row.pages {
			_, more := w.nextCursor()
			kit.Need(t, more, "it ends before page %d: %+v", i+1, w.result)
			w.addPage(p)
		}
		r := w.result
		cursor, more := w.nextCursor()
		kit.Need(t, !more, "it asks for page %q", cursor)
		if r.Read != row.read || r.Found != row.found || r.Complete != row.complete || row.complete != (r.Why == "") || !strings.Contains(r.Why, row.why) || r.Request != "7c1f" {
			t.Errorf(`%+v, want r.Read = %v, r.Found = %v, r.Complete = %v, row.complete = %v, r.Why with %q, r.Request = "7c1f"`, r, row.read, row.found, row.complete, (r.Why == ""), row.why)
		}
	})
}

// Pages that bring nothing new end a walk, whatever their cursors are.
func TestIndexWalk_I32_NeverEndingPages(t *testing.T) {
	type row struct {
		page     func(n int) Page
		read     int
		complete bool
	}
	kit.Rows(t, map[string]row{
		"AlwaysEmpty":               {func(n int) Page { return indexPage(0, 0, 9, fmt.Sprint(n)) }, 0, false},
		"AlwaysTheSame":             {func(n int) Page { return indexPage(0, 3, 9, fmt.Sprint(n)) }, 3, false},
		"AlwaysTheSame_NotTold":     {func(n int) Page { return indexPage(0, 3, -1, fmt.Sprint(n)) }, 3, false},
		"AlwaysTheSame_FoundIsMet":  {func(n int) Page { return indexPage(0, 3, 3, fmt.Sprint(n)) }, 3, true},
		"AlwaysNew_OneDocumentEach": {func(n int) Page { return indexPage(n, n+1, -1, fmt.Sprint(n)) }, mostPages, false},
	}, func(t *testing.T, row row) {
		w, n := newIndexWalk(), 0
		for _, more := w.nextCursor(); more && n <= mostPages; _, more = w.nextCursor() {
			w.addPage(row.page(n))
			n++
		}
		r := w.result
		kit.Check(t, n <= mostPages && r.Read == row.read && r.Complete == row.complete, "%d pages, %+v", n, r)
	})
}

// What identifies a document: its bumId, else its archiveId, else the whole record.
func TestIndexWalk_I32_EachDocumentOnce(t *testing.T) {
	w := newIndexWalk()
	added := w.addPage(Page{Found: -1, Cursor: "a", Records: []archive.IndexRecord{
		{Remote: "r", ArchiveID: "1"}, {Remote: "r", ArchiveID: "2"}, {ArchiveID: "r"}, {ArchiveID: "r"}, {Raw: []byte("r")}, {Raw: []byte("r")}, {Raw: []byte("s")}}})
	kit.Check(t, len(added) == 4 && w.result.Read == 4, "%+v, want len(added) = 4, w.result.Read = 4", added)
}

// A service may refuse the page behind its last one. That ends a walk only where nothing is missing.
func TestIndexWalk_I32_RefusedBehindTheLastPage(t *testing.T) {
	gone := &apicall.Error{Outcome: apicall.NotProcessed, Code: "http-404", Status: 404}
	for name, row := range map[string]struct {
		found int
		err   error
		ends  bool
	}{
		"NotFound":              {3, gone, true},
		"NotFound_Short":        {4, gone, false},
		"NotFound_FoundNotTold": {-1, gone, false},
		"NoSuchPath":            {3, &apicall.Error{Outcome: apicall.OutcomeUnknown, Code: "http-502"}, false}, // found may be what was read so far
		"ServerError":           {3, &apicall.Error{Outcome: apicall.OutcomeUnknown, Code: "http-500"}, false},
		"GatewayTimeout":        {3, &apicall.Error{Outcome: apicall.OutcomeUnknown, Code: "http-504"}, false},
		"Unreadable":            {3, &apicall.Error{Outcome: apicall.OutcomeUnknown, Code: "unreadable"}, false},
		"Unanswered":            {3, &apicall.Error{Outcome: apicall.OutcomeUnknown, Code: "timeout"}, false},
		"Overload":              {3, &apicall.Error{Outcome: apicall.NotProcessed, Code: "http-429", Status: 429}, false},
		"Denied":                {3, &apicall.Error{Outcome: apicall.NotProcessed, Code: "http-403", Denied: true}, false},
		"AnythingElse":          {3, errors.New("x"), false},
	} {
		w := newIndexWalk()
		kit.Check(t, !w.endsWith(gone), "%s: it ends before it began", name)
		w.addPage(indexPage(0, 3, row.found, "a"))
		got := w.endsWith(row.err)
		kit.Check(t, got == row.ends && w.result.Complete == row.ends, "%s: ends %v, %+v", name, got, w.result)
	}
}

// A gateway's fault ends a walk only where an earlier page told of more than was read then: else it may strike in the middle.
func TestIndexWalk_I32_AFaultBehindTheLastPage(t *testing.T) {
	for _, code := range []string{"http-500", "http-502"} {
		w := newIndexWalk()
		w.addPage(indexPage(0, 3, 6, "a"))
		w.addPage(indexPage(3, 6, 6, "b"))
		kit.Check(t, w.endsWith(&apicall.Error{Outcome: apicall.OutcomeUnknown, Code: code}) && w.result.Complete,
			"%s behind all that was told of: %+v", code, w.result)
		w = newIndexWalk()
		w.addPage(indexPage(0, 3, 3, "a"))
		w.addPage(indexPage(3, 6, 6, "b"))
		kit.Check(t, !w.endsWith(&apicall.Error{Outcome: apicall.OutcomeUnknown, Code: code}) && !w.result.Complete,
			"%s in the middle: %+v", code, w.result)
	}
}

// TestRegister_I6_ATicketCountsFromBeforeItsPOST: an answer that takes its time takes it from the
// ticket's life.
func TestRegister_I6_ATicketCountsFromBeforeItsPOST(t *testing.T) {
	var took atomic.Int64
	c, _ := client(t, func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		took.Store(int64(50 * time.Second))
		fmt.Fprintf(w, `[{"bumId":"b1","clientUUID":%q,"archiveFileURL":{"url":"http://%s/b1"}}]`, idA, r.Host)
	})
	c.now = func() archive.Instant {
		d := time.Duration(took.Load())
		return archive.Instant{Wall: before.Wall.Add(d), Boot: before.Boot + d, BootID: before.BootID}
	}
	kit.Want(t, "the beginning of the ticket", kit.Value(c.Register(t.Context(), "V", requests(idA)))(t).Tickets[idA].Sent, before)
}

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
