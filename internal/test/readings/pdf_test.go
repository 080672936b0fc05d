package readings

import (
	"cmp"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"vaultd/internal/apicall"
	"vaultd/internal/archive"
	"vaultd/internal/daemon"
	"vaultd/internal/dropwork"
	"vaultd/internal/emulator"
	"vaultd/internal/ingest"
	"vaultd/internal/ledger"
	"vaultd/internal/operator"
	"vaultd/internal/pdfapi"
	"vaultd/internal/present"
	"vaultd/internal/test/kit"
	"vaultd/internal/watch"
)

// pdfDrop is a drop of single PDFs beside those of the vaults. The zero value is the most likely configuration.
type pdfDrop struct {
	files      int // that lie there at the start; default 3
	workers    int // default 2
	repeatsPut bool
	path       string
	client     func(*apicall.Config)
}

// addPDFDrop adds the drop, its service with its own account, and the files.
func (w *world) addPDFDrop(s setup, dc *daemon.Config) {
	w.t.Helper()
	cc := apicall.Config{BaseURL: dc.BaseURL, Transport: w.wire(s.between), Auth: apicall.Auth{Method: apicall.Basic, Username: pdfUser, Secret: w.readSecret}}
	if s.pdf.client != nil {
		s.pdf.client(&cc)
	}
	api, store, err := apicall.New(cc)
	kit.Must(w.t, err)
	dc.Routes = map[ledger.Route]ingest.Route{ledger.PDF: {Client: pdfapi.New(pdfapi.Config{API: api, Store: store, Now: dc.Now, Path: s.pdf.path}),
		Workers: cmp.Or(s.pdf.workers, 2), BatchSize: 1, RepeatsUpload: s.pdf.repeatsPut}}
	scans := w.scans()
	kit.Must(w.t, os.Mkdir(scans, 0o770))
	dc.Drops = append(dc.Drops, dropwork.Settings{Name: "scans", Path: scans, Route: ledger.PDF, Receiving: receiving, Notify: "clerk@acme.example",
		Mode: watch.Poll, Settle: time.Second, Rescan: 20 * time.Second})
	for n := range cmp.Or(s.pdf.files, 3) {
		kit.Must(w.t, os.WriteFile(filepath.Join(scans, fmt.Sprintf("scan %d.pdf", n)), []byte(contentOf(byte(n))), 0o660))
	}
}

func (w *world) scans() string { return filepath.Join(w.dir, "scans") }

// pdfEntries are the entries of single PDFs.
func (w *world) pdfEntries() []ledger.Entry {
	return slices.DeleteFunc(slices.Clone(w.entries()), func(e ledger.Entry) bool { return e.Route != ledger.PDF })
}

// archivesBeside waits until every folder for the vaults is archived and every PDF rests in a state, and holds the run to its
// promises: the vaults never wait for the PDF upload.
func (w *world) archivesBeside(state ledger.State, files int, within time.Duration) {
	w.t.Helper()
	rest := func() bool {
		pdfs, archived := w.pdfEntries(), 0
		for _, e := range w.entries() {
			if e.Route == ledger.Vault && e.State == ledger.Archived && e.Source == ledger.Kept {
				archived++
			}
		}
		return archived == len(w.dropped) && len(pdfs) == files && !slices.ContainsFunc(pdfs, func(e ledger.Entry) bool {
			return e.State != state || e.State == ledger.Delivered && e.Source != ledger.Kept
		})
	}
	if !w.pass(within, step(within), rest) {
		w.t.Errorf("not all rests after %v:", within)
		for _, e := range w.entries() {
			w.t.Logf("%s %q is %s/%s since attempt %d, due %v: %+v", e.Route, e.Folder, e.State, e.Source, e.Attempt, e.NotBefore, e.Cause)
		}
	}
	w.proven()
	w.provenDelivered()
}

// checkPDFWords demands of a text about a PDF that it speaks of nothing that a PDF does not have. The service's address may hold such a word.
func (w *world) checkPDFWords(text string) {
	w.t.Helper()
	text = strings.ReplaceAll(text, apiHost, "")
	kit.Lacks(w.t, "the text", text, "archive", "ARCHIVE", "clientUUID", "metadata.json", "ZIP")
}

// checkPDFNotes demands the same of every note beside a PDF.
func (w *world) checkPDFNotes() {
	w.t.Helper()
	kit.Must(w.t, filepath.WalkDir(w.scans(), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".txt" || d.Name() == "_STATUS.txt" {
			return err
		}
		text, err := os.ReadFile(path)
		w.checkPDFWords(string(text))
		return err
	}))
}

// provenDelivered holds each PDF's entry against what the service saw: what is delivered is stored in one slot, whole and with the
// recorded digest, and what is not delivered is never said to be.
func (w *world) provenDelivered() {
	w.t.Helper()
	w.checkPDFNotes()
	slots := map[archive.RemoteID]emulator.PDFSlot{}
	held := map[string]int{} // by digest: how many slots hold it
	for _, s := range w.service.PDFSlots() {
		slots[archive.RemoteID(s.BumID)] = s
		digests := map[string]bool{}
		for _, p := range s.PUTs {
			digests[p.SHA256] = true
		}
		for d := range maps.Keys(digests) {
			held[d]++
		}
	}
	for _, e := range w.pdfEntries() {
		sum := e.Package.SHA256.String()
		kit.Check(w.t, held[sum] <= 1, "I2: %q lies in %d slots", e.Folder, held[sum])
		kit.Check(w.t, e.State != ledger.Delivered || (held[sum] == 1 && !e.UploadedAt.IsZero()),
			"I12: %q is delivered at %v and lies in %d slots", e.Folder, e.UploadedAt, held[sum])
		current := e.Current()
		if current == nil {
			continue
		}
		if s, told := slots[current.Ticket.Remote]; told && e.State == ledger.Delivered && !slices.ContainsFunc(s.PUTs, func(p emulator.StoredPDF) bool { return p.SHA256 == sum && !p.IsTruncated }) {
			w.t.Errorf("I8: %q is delivered under %s, which holds %+v", e.Folder, current.Ticket.Remote, s.PUTs)
		}
	}
	n := w.service.CountCalls("register")
	kit.Check(w.t, n != 0, "nothing was sent to the vaults: the test proves nothing")
}

// A drop of single PDFs delivers each under every reading, and nothing of it is ever called archived, while the vaults work beside.
func TestReading_I12_PDFsAreDelivered(t *testing.T) {
	pdf := func(r emulator.PDFReadings) emulator.Readings { return emulator.Readings{PDF: r} }
	kit.Rows(t, map[string]setup{
		"Specified":        {},
		"Object":           {readings: pdf(emulator.PDFReadings{URLForm: "object"})},
		"NoBumIDUntold":    {readings: pdf(emulator.PDFReadings{URLForm: "url", BumID: "none", Validity: "untold"})},
		"Signed":           {readings: pdf(emulator.PDFReadings{ContentType: "signed"})},
		"KeyInQueryUntold": {readings: emulator.Readings{KeyInQuery: true, PDF: emulator.PDFReadings{BumID: "none", Validity: "untold"}}},
		"SecondFlow":       {readings: pdf(emulator.PDFReadings{RepeatedPut: "second-flow"})},
		"Redirects":        {readings: emulator.Readings{RedirectTo: "same", StoreRedirectTo: "https://store-2.example"}},
		"CapitalBumID":     {readings: emulator.Readings{BumIDCase: "capital"}},
		"SlowService": {faults: func(op string, _ int) emulator.Fault {
			if strings.HasPrefix(op, "pdf-") {
				return emulator.Fault{Delay: 20 * time.Second, DelayAfter: 20 * time.Second}
			}
			return emulator.Fault{}
		}},
		"Tokens": {pdf: &pdfDrop{client: func(c *apicall.Config) { c.Auth.Method, c.Auth.Scopes = apicall.OAuth2, []string{pdfapi.Scope} }},
			service: func(c *emulator.Config) {
				c.ClientID, c.ClientSecret, c.TokenLife = "another", "another", 30*time.Second
			}},
		"ClockAhead":       {service: clockAhead(48 * time.Hour)},
		"ClockBehind":      {service: clockAhead(-48 * time.Hour)},
		"ClockAheadUntold": {service: clockAhead(48 * time.Hour), readings: pdf(emulator.PDFReadings{Validity: "untold"})},
		"OtherPath":        {pdf: &pdfDrop{path: "/v2/smartpdf/invoiceUpload"}, service: func(c *emulator.Config) { c.PDF.Path = "/v2/smartpdf/invoiceUpload" }},
	}, func(t *testing.T, s setup) {
		if s.pdf == nil {
			s.pdf = &pdfDrop{}
		}
		virtual(t, s, func(t *testing.T, w *world) {
			w.archivesBeside(ledger.Delivered, 3, hour)
			for _, s := range w.service.PDFSlots() {
				kit.Check(t, len(s.PUTs) == 1 && s.Flows == 1, "slot %+v", s)
			}
			kit.Lacks(t, "what is said", w.said(), "scan 0.pdf archived")
		})
	})
}

func clockAhead(d time.Duration) func(*emulator.Config) {
	return func(c *emulator.Config) { c.Clock = func() time.Time { return time.Now().Add(d) } }
}

// What the service says against the configuration, the credentials or the path pauses the PDF upload alone, in its words. No PDF
// is blamed, and all goes on by itself.
func TestReading_I24_PDFUploadPauses(t *testing.T) {
	refuses := func(status int, refused *time.Time) func(string, int) emulator.Fault {
		return func(op string, _ int) emulator.Fault {
			if op != "pdf-register" || !time.Now().Before(*refused) {
				return emulator.Fault{}
			}
			return emulator.Fault{Kind: emulator.Status, Status: status}
		}
	}
	for status, says := range map[int]string{400: "bad request", 401: "401", 403: "403", 404: "404", 422: "unprocessable entity", 500: "500", 502: "502"} {
		for _, form := range []string{"specified", "detail", "detail-list", "empty", "html"} {
			t.Run(fmt.Sprintf("%d/%s", status, form), func(t *testing.T) {
				var until time.Time
				s := setup{pdf: &pdfDrop{}, readings: emulator.Readings{PDF: emulator.PDFReadings{ErrorBody: form}}, faults: refuses(status, &until),
					service: func(*emulator.Config) { until = time.Now().Add(2 * time.Hour) }}
				virtual(t, s, func(t *testing.T, w *world) {
					w.pass(110*time.Minute, time.Second, never)
					for _, e := range w.pdfEntries() {
						kit.Check(t, e.State.IsOpen() && !e.NeedsPerson(),
							"I24: %q is %s: %+v", e.Folder, e.State, e.Cause)
					}
					if form != "empty" && form != "html" {
						w.says(says)
					}
					w.archivesBeside(ledger.Delivered, 3, 4*hour)
				})
			})
		}
	}
}

// An answer to a registration that is lost, cut or strange: there may be an unused slot. The PDF is registered again and is
// delivered once.
func TestReading_I9_PDFRegistrationUnanswered(t *testing.T) {
	kit.Rows(t, map[string]emulator.Fault{
		"LostBefore": {Kind: emulator.Abort}, "LostAfter": {Kind: emulator.Abort, IsAfterWork: true}, "Cut": {Kind: emulator.Cut},
		"Truncated": {Kind: emulator.Truncate}, "Garbled": {Kind: emulator.Garble}, "Empty": {Kind: emulator.Empty}, "Page": {Kind: emulator.HTML, IsAfterWork: true},
		"500After": {Kind: emulator.Status, Status: 500, IsAfterWork: true}, "NoAddress": {Kind: emulator.MissingURL}, "Refused": {Kind: emulator.Refuse},
		"429": {Kind: emulator.Status, Status: 429, RetryAfter: time.Minute},
	}, func(t *testing.T, f emulator.Fault) {
		s := setup{pdf: &pdfDrop{}, faults: func(op string, n int) emulator.Fault {
			if op == "pdf-register" && n%2 == 1 && n < 6 {
				return f
			}
			return emulator.Fault{}
		}}
		virtual(t, s, func(t *testing.T, w *world) { w.archivesBeside(ledger.Delivered, 3, 6*hour) })
	})
}

// An upload that nobody answered may have begun a flow. It waits for a person, whatever the service made of it, unless the
// configuration allows the same bytes to the same address: then the entry is flagged.
func TestReading_I2_PDFUploadUnanswered(t *testing.T) {
	for name, f := range map[string]emulator.Fault{
		"LostAfterBody": {Kind: emulator.Abort, IsAfterBody: true}, "LostAfter": {Kind: emulator.Abort, IsAfterWork: true}, "CutRequest": {Kind: emulator.CutRequest},
		"503AfterBody": {Kind: emulator.Status, IsAfterBody: true}, "500After": {Kind: emulator.Status, Status: 500, IsAfterWork: true}, "Page": {Kind: emulator.HTML, IsAfterWork: true},
		"ErrorDocument": {Kind: emulator.ErrorDocument},
	} {
		for _, repeats := range []bool{false, true} {
			for _, second := range []string{"replace", "second-flow"} {
				t.Run(fmt.Sprintf("%s/repeats=%t/%s", name, repeats, second), func(t *testing.T) {
					s := setup{pdf: &pdfDrop{files: 1, repeatsPut: repeats}, readings: emulator.Readings{PDF: emulator.PDFReadings{RepeatedPut: second}},
						faults: func(op string, n int) emulator.Fault {
							if op == "pdf-upload" && n == 1 {
								return f
							}
							return emulator.Fault{}
						}}
					virtual(t, s, func(t *testing.T, w *world) {
						want := ledger.Quarantined
						if repeats {
							want = ledger.Delivered
						}
						w.archivesBeside(want, 1, 6*hour)
						e := w.pdfEntries()[0]
						puts, flows := 0, 0
						for _, s := range w.service.PDFSlots() {
							puts, flows = puts+len(s.PUTs), flows+s.Flows
						}
						if repeats && !e.PossibleDouble || !repeats && (e.Cause.Code != ledger.CauseDeliveryUnknown || w.service.CountCalls("pdf-upload") != 1 || flows > 1) {
							t.Errorf("%s, possible double %t, cause %+v, %d PUTs stored, %d flows", e.State, e.PossibleDouble, e.Cause, puts, flows)
						}
					})
				})
			}
		}
	}
}

// A PDF that was closed in doubt by mistake can be sent again by decision, flagged for ever, and in no other way: neither the clerk who
// moves it in again sends it, nor time.
func TestReading_I2_PDFClosedByMistake(t *testing.T) {
	for _, movedAgain := range []bool{false, true} {
		t.Run(fmt.Sprintf("moved in again=%t", movedAgain), func(t *testing.T) {
			s := setup{pdf: &pdfDrop{files: 1}, faults: func(op string, n int) emulator.Fault {
				if op == "pdf-upload" && n == 1 {
					return emulator.Fault{Kind: emulator.Status, IsAfterBody: true}
				}
				return emulator.Fault{}
			}}
			virtual(t, s, func(t *testing.T, w *world) {
				w.archivesBeside(ledger.Quarantined, 1, hour)
				stuck := w.pdfEntries()[0]
				person := operator.Person{UID: 7, Reason: "it is booked"}
				_, err := w.daemon.Actions().Act(t.Context(), stuck, person, func(by ledger.Operator) ledger.Event { return ledger.Closed{By: by} })
				kit.Must(w.t, err)
				w.pass(hour, time.Minute, never)
				if movedAgain {
					kit.Must(w.t, os.WriteFile(filepath.Join(w.scans(), "again.pdf"), []byte(contentOf(0)), 0o660))
					w.pass(hour, time.Minute, never)
				}
				rejected := w.pdfEntriesIn(ledger.Rejected)
				if want := map[bool]int{false: 1, true: 2}[movedAgain]; len(rejected) != want || w.service.CountCalls("pdf-upload") != 1 {
					t.Fatalf(`%+v, want len(rejected) = %v, w.service.CountCalls("pdf-upload") = 1`, rejected, want)
				}
				w.checkPDFNotes()
				last := rejected[len(rejected)-1]
				if _, err = w.daemon.Actions().Retry(t.Context(), last, operator.Person{UID: 7, Reason: "it is not booked after all"}); err != nil {
					t.Fatal(err)
				}
				w.pass(hour, time.Minute, never)
				sent := w.pdfEntriesIn(ledger.Delivered)
				if len(sent) != 1 || !sent[0].PossibleDouble || !sent[0].DuplicateConfirmed || w.service.CountCalls("pdf-upload") != 2 {
					t.Errorf(`%+v, want len(sent) = 1, sent[0].PossibleDouble, sent[0].DuplicateConfirmed, w.service.CountCalls("pdf-upload") = 2`, sent)
				}
				w.proven()
				w.provenDelivered()
			})
		})
	}
}

// A store that is away for a working day costs few PDFs, however many wait: after the first upload of which nobody knows what became,
// the others wait, and after three a person is called. By his word they go on at once, and without it by themselves.
func TestReading_I2_PDFStoreAwayForADay(t *testing.T) {
	const files, away = 60, 8 * hour
	type row struct {
		f      emulator.Fault
		most   int // PDFs of which nobody knows what became
		person bool
	}
	kit.Rows(t, map[string]row{
		"503BeforeTheContent": {emulator.Fault{Kind: emulator.Status}, 0, false},
		"LostBefore":          {emulator.Fault{Kind: emulator.Abort}, 0, false},
		"503AfterTheContent":  {emulator.Fault{Kind: emulator.Status, IsAfterBody: true}, 5, false},
		"Resumed":             {emulator.Fault{Kind: emulator.Status, IsAfterBody: true}, 5, true},
		"LostAfterTheContent": {emulator.Fault{Kind: emulator.Abort, IsAfterBody: true}, 5, false},
		"Hangs":               {emulator.Fault{DelayAfter: 24 * hour}, 5, true},
	}, func(t *testing.T, row row) {
		var until time.Time
		s := setup{pdf: &pdfDrop{files: files}, service: func(*emulator.Config) { until = time.Now().Add(away) }, faults: func(op string, _ int) emulator.Fault {
			if op == "pdf-upload" && time.Now().Before(until) {
				return row.f
			}
			return emulator.Fault{}
		}}
		virtual(t, s, func(t *testing.T, w *world) {
			doubted := func() int { return len(w.pdfEntriesIn(ledger.Quarantined)) }
			w.pass(away-time.Minute, time.Minute, never)
			if n := doubted(); n > row.most || n < min(row.most, 3) || len(w.pdfEntriesIn(ledger.Delivered)) > 0 {
				t.Errorf("I2: of %d PDFs nobody knows where they are, want at most %d", n, row.most)
			}
			pauses := w.daemon.State().Pauses
			if len(pauses) != 1 || pauses[0].Target != ingest.PDFStoreTarget() || pauses[0].NeedsPerson() != (row.most > 0) {
				t.Errorf("I26: %+v", pauses)
			} else if p := pauses[0]; row.most > 0 && (!strings.Contains(present.AdviseOnPause(p), `vaultd resume "pdf store"`) || !strings.Contains(w.said(), "doubt-in-a-row")) {
				t.Errorf("I26: %q", present.AdviseOnPause(p))
			}
			w.pass(2*time.Minute, time.Minute, never)
			within := 9 * hour
			if row.person {
				kit.Must(w.t, w.daemon.Actions().ResumeUploads(t.Context(), ingest.PDFStoreTarget(), operator.Person{UID: 7, Reason: "it works again"}))
				within = time.Hour
			}
			waits := func() bool { return len(w.pdfEntriesIn(ledger.Delivered))+doubted() < files }
			if !w.pass(within, time.Minute, func() bool { return !waits() }) || doubted() > row.most {
				t.Errorf("I25: %d are delivered and %d in doubt", len(w.pdfEntriesIn(ledger.Delivered)), doubted())
			}
			w.proven()
			w.provenDelivered()
		})
	})
}

// pdfEntriesIn are the entries of single PDFs in a state.
func (w *world) pdfEntriesIn(s ledger.State) []ledger.Entry {
	return slices.DeleteFunc(w.pdfEntries(), func(e ledger.Entry) bool { return e.State != s })
}

// An upload that fails before the store has read a byte of the PDF has stored nothing: the PDF waits with its address, and is
// delivered once, by itself and without a flag.
func TestReading_I2_PDFUploadFailsBeforeItsContent(t *testing.T) {
	for name, f := range map[string]emulator.Fault{
		"503": {Kind: emulator.Status}, "500": {Kind: emulator.Status, Status: 500}, "504": {Kind: emulator.Status, Status: 504},
		"429": {Kind: emulator.Status, Status: 429, RetryAfter: time.Minute}, "408": {Kind: emulator.Status, Status: 408}, "Lost": {Kind: emulator.Abort},
	} {
		for _, redirected := range []string{"", "https://store-2.example"} {
			t.Run(fmt.Sprintf("%s/redirected=%t", name, redirected != ""), func(t *testing.T) {
				s := setup{pdf: &pdfDrop{files: 5}, readings: emulator.Readings{StoreRedirectTo: redirected, PDF: emulator.PDFReadings{RepeatedPut: "second-flow"}},
					faults: func(op string, n int) emulator.Fault {
						if op == "pdf-upload" && n <= 12 {
							return f
						}
						return emulator.Fault{}
					}}
				virtual(t, s, func(t *testing.T, w *world) {
					w.archivesBeside(ledger.Delivered, 5, 6*hour)
					for _, e := range w.pdfEntries() {
						kit.Check(t, !e.PossibleDouble && len(e.Registrations) == 1,
							"%q: possible double %t, %d addresses", e.Folder, e.PossibleDouble, len(e.Registrations))
					}
				})
			})
		}
	}
}

// An address that died early, or was over when its answer came, and an upload that the store refuses: nothing was stored, so the PDF
// is registered again, and is delivered once. Nothing is sent to an address that says that it is over.
func TestReading_I6_PDFAddressOver(t *testing.T) {
	type row struct {
		op       string
		f        emulator.Fault
		window   time.Duration
		validity string
	}
	kit.Rows(t, map[string]row{
		"DiedEarly":               {op: "pdf-upload", f: emulator.Fault{Kind: emulator.DeadToken}},
		"DiedEarlyUntold":         {op: "pdf-upload", f: emulator.Fault{Kind: emulator.DeadToken}, validity: "untold"},
		"Refused403":              {op: "pdf-upload", f: emulator.Fault{Kind: emulator.Status, Status: 403}},
		"Refused400":              {op: "pdf-upload", f: emulator.Fault{Kind: emulator.Status, Status: 400}},
		"OverWhenAnswered":        {op: "pdf-register", f: emulator.Fault{DelayAfter: 45 * time.Second}, window: 30 * time.Second},
		"OverWhenAnsweredUntold":  {op: "pdf-register", f: emulator.Fault{DelayAfter: 45 * time.Second}, window: 30 * time.Second, validity: "untold"},
		"NearlyOver":              {op: "pdf-register", f: emulator.Fault{DelayAfter: 29 * time.Second}, window: 30 * time.Second},
		"OverWhenAnsweredAnyTime": {op: "pdf-register", f: emulator.Fault{DelayAfter: 59 * time.Second}, window: 61 * time.Second},
	}, func(t *testing.T, row row) {
		s := setup{pdf: &pdfDrop{files: 2}, readings: emulator.Readings{PDF: emulator.PDFReadings{Validity: row.validity}},
			service: func(c *emulator.Config) { c.PDF.Window = row.window },
			faults: func(op string, n int) emulator.Fault {
				if op == row.op && n <= 2 {
					return row.f
				}
				return emulator.Fault{}
			}}
		virtual(t, s, func(t *testing.T, w *world) { w.archivesBeside(ledger.Delivered, 2, 6*hour) })
	})
}

// A number or an address that is answered twice is used once. The other document waits for a person.
func TestReading_I8_PDFSlotsMixedUp(t *testing.T) {
	for _, kind := range []emulator.Kind{emulator.DoubleBumID, emulator.SharedAddress, emulator.RepeatedAddress} {
		for _, r := range []emulator.PDFReadings{{}, {Validity: "untold"}, {BumID: "none"}} {
			if kind == emulator.DoubleBumID && r.BumID == "none" {
				continue
			}
			t.Run(fmt.Sprintf("%s/%s%s", kind, r.Validity, r.BumID), func(t *testing.T) {
				s := setup{pdf: &pdfDrop{files: 1}, readings: emulator.Readings{PDF: r}, faults: func(op string, n int) emulator.Fault {
					if op == "pdf-register" && n == 2 {
						return emulator.Fault{Kind: kind}
					}
					return emulator.Fault{}
				}}
				virtual(t, s, func(t *testing.T, w *world) {
					w.archivesBeside(ledger.Delivered, 1, hour)
					kit.Must(w.t, os.WriteFile(filepath.Join(w.scans(), "second.pdf"), []byte(contentOf(9)), 0o660))
					w.pass(hour, time.Minute, never)
					states := map[string]ledger.State{}
					for _, e := range w.pdfEntries() {
						states[e.Folder] = e.State
					}
					kit.Check(t, states["scan 0.pdf"] == ledger.Delivered && states["second.pdf"] == ledger.Quarantined,
						`%v, want states["scan 0.pdf"] = ledger.Delivered, states["second.pdf"] = ledger.Quarantined`, states)
					w.proven()
					w.provenDelivered()
				})
			})
		}
	}
}

// Few calls go at once when they begin, whatever the configuration allows and however fast the service is; and again after a
// pause. After that the number of workers is used.
func TestReading_I21_PDFsBeginSlowly(t *testing.T) {
	for workers, takes := range map[int][]time.Duration{2: {300 * time.Millisecond}, 8: {0, 100 * time.Millisecond, 3 * time.Second}, 16: {0, 300 * time.Millisecond}} {
		for _, d := range takes {
			t.Run(fmt.Sprintf("%d/%v", workers, d), func(t *testing.T) {
				var now, most atomic.Int32 // uploads
				s := setup{pdf: &pdfDrop{files: 100, workers: workers}, faults: func(op string, _ int) emulator.Fault {
					if strings.HasPrefix(op, "pdf-") {
						return emulator.Fault{DelayAfter: d}
					}
					return emulator.Fault{}
				}, between: func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
					if !strings.HasSuffix(r.URL.Path, ".pdf") {
						return next.RoundTrip(r)
					}
					for n := now.Add(1); ; {
						if had := most.Load(); n <= had || most.CompareAndSwap(had, n) {
							break
						}
					}
					defer now.Add(-1)
					return next.RoundTrip(r)
				}}
				virtual(t, s, func(t *testing.T, w *world) {
					w.archivesBeside(ledger.Delivered, 100, hour)
					w.pass(20*time.Minute, time.Minute, never)
					for n := range byte(100) {
						kit.Must(w.t, os.WriteFile(filepath.Join(w.scans(), fmt.Sprintf("morning %d.pdf", n)), []byte(contentOf(100+n)), 0o660))
					}
					w.archivesBeside(ledger.Delivered, 200, hour)
					used := int(most.Load())
					kit.Check(t, d < 100*time.Millisecond || used == workers, "%d uploads at once, where %d may be", used, workers)
				})
			})
		}
	}
}
