package emulator

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"vaultd/internal/test/kit"
)

func TestPDFReadings(t *testing.T) {
	for name, row := range map[string]struct {
		reading PDFReadings
		body    string // of the answer, with ID and URL in place of what differs
	}{
		"Specified": {PDFReadings{}, `{"bumId":"ID","uploadUrl":"URL"}`},
		"URL":       {PDFReadings{URLForm: "url"}, `{"bumId":"ID","url":"URL"}`},
		"Object":    {PDFReadings{URLForm: "object"}, `{"bumId":"ID","uploadUrl":{"url":"URL"}}`},
		"NoBumID":   {PDFReadings{BumID: "none"}, `{"uploadUrl":"URL"}`},
		"Untold":    {PDFReadings{Validity: "untold"}, `{"bumId":"ID","uploadUrl":"URL"}`},
		"Signed":    {PDFReadings{ContentType: "signed"}, `{"bumId":"ID","uploadUrl":"URL"}`},
		"All":       {PDFReadings{URLForm: "object", BumID: "none", Validity: "untold", ContentType: "signed"}, `{"uploadUrl":{"url":"URL"}}`},
	} {
		for _, inQuery := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				w := newPDFWorld(t, func(c *Config) { c.Readings.PDF, c.Readings.KeyInQuery = row.reading, inQuery })
				a := w.call("POST", slots, goodBody, asClerk)
				ticket := w.slotOf(a)
				id := w.PDFSlots()[0].BumID
				address := strings.TrimSuffix(strings.TrimPrefix(string(encodeJSON(ticket.url)), `"`), `"`) // as JSON writes it
				kit.Want(t, "answer", strings.NewReplacer(address, "URL", `"`+id+`"`, `"ID"`).Replace(a.body), row.body)
				u, err := url.Parse(ticket.url)
				if told := strings.Contains(ticket.url, "X-Amz-"); err != nil || told == (row.reading.Validity == "untold") || inQuery != (u.Query().Get("key") == "pdf/"+id+".pdf") {
					t.Errorf("address %s", ticket.url)
				}
				if row.reading.ContentType == "signed" {
					for _, given := range []string{"", "application/octet-stream", "application/pdf;x=1"} {
						a := w.putPDF(ticket, "%PDF-1.7", "Content-Type:"+given)
						kit.Check(t, a.status == 403, "Content-Type %q: %+v", given, a)
					}
				} else if a := w.putPDF(ticket, "%PDF-1.7", "Content-Type:"); a.status != 200 {
					t.Errorf("no Content-Type: %+v", a)
				}
				w.mustPutPDF(ticket, "%PDF-1.7")
				w.wantNoViolations()
			})
		}
	}
}

func TestPDFReadings_RepeatedPut(t *testing.T) {
	for word, flows := range map[string]int{"": 1, "replace": 1, "second-flow": 3} {
		w := newPDFWorld(t, func(c *Config) { c.Readings.PDF.RepeatedPut = word })
		ticket := w.slot()
		for range 3 {
			w.mustPutPDF(ticket, "%PDF-1.7")
		}
		w.restart()
		s := w.PDFSlots()[0]
		kit.Check(t, s.Flows == flows && len(s.PUTs) == 3, "%q: %+v, want s.Flows = %v, len(s.PUTs) = 3", word, s, flows)
		w.wantNoViolations()
	}
}

func TestPDFReadings_ErrorBody(t *testing.T) {
	const strange = `{"receivingEmailAddress":"x","notificationEmailAddress":"y"}`
	seen := map[string]bool{}
	for _, form := range append([]string{"specified"}, errorForms...) {
		w := newPDFWorld(t, func(c *Config) { c.Readings.PDF.ErrorBody, c.Readings.ErrorBody = form, "xml" })
		unprocessable, unauthorized := w.call("POST", slots, strange, asClerk), w.call("POST", slots, goodBody, "Authorization:")
		if unprocessable.status != 422 || unauthorized.status != 401 || seen[unprocessable.body+unauthorized.body] {
			t.Errorf("%s: %+v, %+v, want unprocessable.status = 422, unauthorized.status = 401, not seen[unprocessable.body+unauthorized.body]", form, unprocessable, unauthorized)
		}
		seen[unprocessable.body+unauthorized.body] = true
		list, text := strings.HasPrefix(unprocessable.body, `{"detail":[`), strings.HasPrefix(unauthorized.body, `{"detail":"`)
		if list != (form == "specified" || form == "detail-list") || text != (form == "specified" || form == "detail") {
			t.Errorf("%s: %s, %s, want list = %v, text = %v", form, unprocessable.body, unauthorized.body, (form == "specified" || form == "detail-list"), (form == "specified" || form == "detail"))
		}
		w.at("pdf-register", 1, Fault{Kind: Status, Status: 422})
		a := w.call("POST", slots, goodBody, asClerk)
		kit.Check(t, form != "specified" || strings.HasPrefix(a.body, `{"detail":[{"loc":`), "a fault's 422: %s", a.body)
	}
	for _, bad := range []PDFReadings{{URLForm: "x"}, {BumID: "x"}, {Validity: "x"}, {ContentType: "x"}, {ErrorBody: "x"}, {RepeatedPut: "x"}} {
		kit.Check(t, newPDFWorld(t, nil).SetReadings(Readings{PDF: bad}) != nil, "%+v was taken", bad)
	}
}

func TestPDFReadings_Redirects(t *testing.T) {
	for _, validity := range []string{"told", "untold"} {
		w := newPDFWorld(t, func(c *Config) {
			c.Readings.RedirectTo, c.Readings.StoreRedirectTo, c.Readings.PDF.Validity, c.Readings.PDF.ContentType = "same", "https://eu.store.test", validity, "signed"
		})
		a := w.call("POST", slots, goodBody, asClerk)
		kit.Need(t, a.status == 307 && a.header.Get("Location") == "http://api.test/moved"+slots, "POST: %+v", a)
		ticket := w.slotOf(w.call("POST", a.header.Get("Location"), goodBody, asClerk))
		a = w.putPDF(ticket, "%PDF-1.7")
		if ticket.url = a.header.Get("Location"); a.status != 307 || !strings.HasPrefix(ticket.url, "https://eu.store.test/") {
			t.Fatalf("PUT: %+v", a)
		}
		w.mustPutPDF(ticket, "%PDF-1.7")
		s := w.PDFSlots()
		kit.Check(t, len(s) == 1 && len(s[0].PUTs) == 1, "%+v, want len(s) = 1, len(s[0].PUTs) = 1", s)
		w.wantNoViolations()
	}
}

// Each fault that can strike on either side of the work does exactly that.
func TestPDFFaults_DoneOrNot(t *testing.T) {
	for _, kind := range []Kind{Abort, Status, HTML, ErrorDocument} {
		for _, done := range []bool{false, true} {
			w := newPDFWorld(t, nil)
			w.at("pdf-register", 1, Fault{Kind: kind, IsAfterWork: done})
			w.call("POST", slots, goodBody, asClerk)
			kit.Want(t, string(kind)+": on pdf-register", len(w.PDFSlots()) == 1, done)
			ticket := w.slot()
			w.at("pdf-upload", 1, Fault{Kind: kind, IsAfterWork: done})
			w.putPDF(ticket, "%PDF-1.7")
			all := w.PDFSlots()
			kit.Want(t, string(kind)+": on pdf-upload", len(all[len(all)-1].PUTs) == 1, done)
			w.wantNoViolations()
		}
	}
}

func TestPDFFaults_AsSeen(t *testing.T) {
	w := newPDFWorld(t, nil)
	post := func(f Fault) answer {
		w.at("pdf-register", 1, f)
		return w.call("POST", slots, goodBody, asClerk)
	}
	a := post(Fault{Kind: Cut})
	kit.Check(t, a.status == 200 && errors.Is(a.err, io.ErrUnexpectedEOF), "cut: %+v", a)
	a = post(Fault{Kind: Refuse})
	kit.Check(t, errors.Is(a.err, syscall.ECONNREFUSED), "refused: %+v", a)
	a = post(Fault{Kind: MissingURL})
	kit.Check(t, a.status == 200 && !strings.Contains(a.body, "rl"), "no address: %+v", a)
	if a := post(Fault{Kind: Status, Status: 500}); a.status != 500 || !strings.HasPrefix(a.body, `{"detail":"`) {
		t.Errorf("500: %+v, want a.status = 500, a.body that begins with `{\"detail\":\"`", a)
	}
	ticket := w.slot()
	put := func(f Fault) answer {
		w.at("pdf-upload", 1, f)
		return w.putPDF(ticket, "%PDF-1.7")
	}
	stored := func() int { all := w.PDFSlots(); return len(all[len(all)-1].PUTs) }
	a = put(Fault{Kind: Status})
	kit.Check(t, a.status == 503 && strings.Contains(a.body, "<Code>SlowDown</Code>"), "slow down: %+v", a)
	for _, f := range []Fault{{Kind: Early}, {Kind: Early, IsAfterWork: true}, {Kind: Vanish}} {
		if a := put(f); a.status != 200 || stored() != 0 {
			t.Errorf("%s: %+v, %d stored", f.Kind, a, stored())
		}
	}
	if a := put(Fault{Kind: CutRequest}); a.err == nil || stored() != 0 {
		t.Errorf("cut in the request: %+v, %d stored", a, stored())
	}
	w.at("pdf-upload", 1, Fault{Kind: DeadToken})
	for range 2 { // it stays dead, after a restart as well
		a := w.putPDF(ticket, "%PDF-1.7")
		kit.Check(t, a.status == 403 && strings.Contains(a.body, "ExpiredToken") && stored() == 0, "dead token: %+v", a)
		w.restart()
	}
	w.wantNoViolations()
}

// A body that ends early, in a store that keeps it, is told apart from other bytes.
func TestPDFFaults_TruncatedAndKept(t *testing.T) {
	w := newPDFWorld(t, func(c *Config) { c.Readings.ContentMD5, c.Readings.ShortBody = "ignore", "keep" })
	ticket := w.slot()
	w.at("pdf-upload", 1, Fault{Kind: CutRequest})
	w.putPDF(ticket, "%PDF-1.7 the whole")
	w.restart()
	w.mustPutPDF(ticket, "%PDF-1.7 the whole")
	if s := w.PDFSlots()[0]; len(s.PUTs) != 2 || !s.PUTs[0].IsTruncated || s.PUTs[0].Size != 9 || s.PUTs[1].IsTruncated {
		t.Errorf("%+v, want len(s.PUTs) = 2, s.PUTs[0].IsTruncated, s.PUTs[0].Size = 9, not s.PUTs[1].IsTruncated", s)
	}
	for _, text := range []string{"%PDF-1.7 same one.", "%PDF-1.7 same two."} { // what is left of two documents is the same, and they are two
		one := w.slot()
		w.at("pdf-upload", 1, Fault{Kind: CutRequest})
		w.putPDF(one, text)
	}
	w.wantNoViolations()
}

// An answer that gives a bumId or an address twice: whoever uses it is seen.
func TestPDFFaults_MixUp(t *testing.T) {
	for _, kind := range []Kind{DoubleBumID, SharedAddress, RepeatedAddress} {
		for _, validity := range []string{"told", "untold"} {
			t.Run(string(kind)+validity, func(t *testing.T) {
				w := newPDFWorld(t, func(c *Config) { c.Readings.PDF.Validity = validity })
				w.at("pdf-register", 1, Fault{Kind: kind})
				first := w.slot() // there is no other one yet
				w.mustPutPDF(first, "%PDF-1.7 a")
				w.now = w.now.Add(time.Minute)
				w.at("pdf-register", 1, Fault{Kind: kind})
				second := w.slot()
				if (second.bumID == first.bumID) != (kind == DoubleBumID) || (second.url == first.url) != (kind == RepeatedAddress) ||
					strings.Contains(second.url, first.bumID) == (kind == DoubleBumID) {
					t.Fatalf("%+v, then %+v", first, second)
				}
				w.mustPutPDF(first, "%PDF-1.7 a") // whose it is may use it
				w.restart()
				w.wantNoViolations()
				w.mustPutPDF(second, "%PDF-1.7 b")
				if kind == DoubleBumID {
					w.wantViolation("which was answered with the bumId of another slot")
				} else {
					w.wantViolation("other bytes in slot " + first.bumID)
				}
			})
		}
	}
}

func TestPDFFaults_RedirectAway(t *testing.T) {
	w := newPDFWorld(t, nil)
	first := w.slot()
	w.mustPutPDF(first, "%PDF-1.7 a")
	second := w.slot()
	w.at("pdf-upload", 1, Fault{Kind: RedirectAway})
	a := w.putPDF(second, "%PDF-1.7 b")
	if second.url = a.header.Get("Location"); a.status != 307 || !strings.Contains(second.url, first.bumID) {
		t.Fatalf("%+v, want a.status = 307, second.url with %q", a, first.bumID)
	}
	w.wantNoViolations()
	w.mustPutPDF(second, "%PDF-1.7 b")
	w.wantViolation("other bytes in slot " + first.bumID)
}

// sendWithin sends a call whose caller leaves after a time.
func (w *world) sendWithin(req *http.Request, d time.Duration) answer {
	w.Helper()
	ctx, cancel := context.WithTimeout(req.Context(), d)
	defer cancel()
	return w.send(req.WithContext(ctx))
}

// A late call honours its caller: gone before the work, nothing is done; gone after it, it is.
func TestPDFFaults_Late(t *testing.T) {
	for done, f := range map[bool]Fault{false: {Delay: time.Hour}, true: {DelayAfter: time.Hour}} {
		synctest.Test(t, func(t *testing.T) {
			w := newPDFWorld(t, func(c *Config) { c.Clock = nil })
			for _, op := range []string{"pdf-register", "pdf-upload"} {
				req := w.request("POST", slots, goodBody, asClerk)
				if op == "pdf-upload" {
					req = w.request("PUT", w.slot().url, "%PDF-1.7")
				}
				before := len(w.PDFSlots())
				w.at(op, 1, f)
				a := w.sendWithin(req, time.Minute)
				kit.Check(t, a.err != nil, "%s: %+v, want a.err other than nil", op, a)
				all := w.PDFSlots()
				kit.Want(t, op+": done", len(all) > before || len(all) > 0 && len(all[len(all)-1].PUTs) > 0, done)
			}
		})
	}
}

// The service's clock may differ from the client's: addresses and the Date header follow the service's.
func TestPDFFaults_ClockAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newPDFWorld(t, func(c *Config) { c.Clock = func() time.Time { return time.Now().Add(48 * time.Hour) } })
		a := w.call("POST", slots, goodBody, asClerk)
		date, err := time.Parse(time.RFC1123, a.header.Get("Date"))
		u, errURL := url.Parse(w.slotOf(a).url)
		kit.Check(t, err == nil && errURL == nil && date.Equal(time.Now().Add(48*time.Hour)) && u.Query().Get("X-Amz-Date") == date.Format(amzTime),
			"Date %v, address %v", date, u)
		time.Sleep(time.Hour)
		w.mustPutPDF(w.slotOf(a), "%PDF-1.7")
		w.wantNoViolations()
	})
}

// What was answered is known after a restart: slots, what they hold, and what they must not be used for.
func TestPDFRestartForgetsNothing(t *testing.T) {
	w := newPDFWorld(t, nil)
	open := w.slot()
	for n := range 3 {
		w.mustPutPDF(w.slot(), "%PDF-1.7 "+strings.Repeat("a", n))
		w.now = w.now.Add(time.Minute)
	}
	w.mustPutPDF(w.slot(), "%PDF-1.7 a")
	before, violations := w.PDFSlots(), w.Violations()
	w.restart()
	if after := w.PDFSlots(); !reflect.DeepEqual(before, after) || !reflect.DeepEqual(violations, w.Violations()) || len(violations) != 1 {
		t.Errorf("before %+v %q\nafter %+v %q", before, violations, after, w.Violations())
	}
	w.mustPutPDF(open, "%PDF-1.7 later") // an address outlives the server that gave it
	kit.Want(t, "len(s.PUTs)", len(w.PDFSlots()[0].PUTs), 1)
}

// I7 secrecy: the journal holds no credential, no signature in either form, and no content.
func TestPDFJournalHoldsNoSecret(t *testing.T) {
	w := newPDFWorld(t, nil)
	for _, validity := range []string{"told", "untold"} {
		w.read(Readings{PDF: PDFReadings{Validity: validity}})
		w.mustPutPDF(w.slot(), "%PDF-1.7 the content "+validity)
		w.putPDF(w.slot(), "x", "Content-MD5: bad")
	}
	raw := kit.Value(os.ReadFile(filepath.Join(w.cfg.Dir, "journal.jsonl")))(t)
	for _, secret := range []string{"X-Amz", signatureParameter + "=", "p/df=secret", w.keys.SecretKey, w.keys.TokenKey, "the content"} {
		kit.Check(t, !bytes.Contains(raw, []byte(secret)), "the journal holds %q", secret)
	}
	kit.Check(t, bytes.Contains(raw, []byte(`"op":"pdf-upload"`)), "no upload in the journal: %s", raw)
}
