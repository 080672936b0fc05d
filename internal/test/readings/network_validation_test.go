package readings

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/emulator"
	"vaultd/internal/ledger"
	"vaultd/internal/test/kit"
)

// foundBeside returns the file with what the check of a document found, as it lies beside the note of that name.
func (d *networkDrop) foundBeside(e ledger.Entry, note string) (found, noteText string) {
	d.w.t.Helper()
	text := kit.Value(os.ReadFile(filepath.Join(d.path(), e.Dest, note)))(d.w.t)
	files := kit.Value(filepath.Glob(filepath.Join(d.path(), e.Dest, "_VALIDATION*")))(d.w.t)
	if len(files) == 0 {
		return "", string(text)
	}
	content := kit.Value(os.ReadFile(files[0]))(d.w.t)
	kit.Check(d.w.t, len(files) <= 1 && filepath.Ext(files[0]) == ".xml", "it lies there as %q", files)
	return string(content), string(text)
}

// placed reports whether a document has ended and its folder is with people again.
func placed(e ledger.Entry) bool {
	return e.State.IsFinal() && (e.Source == ledger.Kept || e.Source == ledger.Returned)
}

// I4, I11: the file with what the network's check found lies beside the note that says what became of the document, byte for byte as it was made,
// in whichever way the network names and sends it; and the journal has its digest.
func TestReading_I4_ValidationFileLiesBesideTheNote(t *testing.T) {
	kit.Rows(t, map[string]emulator.NetworkReadings{"Usual": {}, "ByPropertyInBase64": {Validation: "property", Files: "base64"}, "ByLinkToElsewhere": {Validation: "link", LinksTo: "https://evil.example"},
		"AmongTheOtherFiles": {ValidationAt: "v2"}, "InVersionOne": {ValidationAt: "v1"}}, func(t *testing.T, r emulator.NetworkReadings) {
		s, d := sending(setup{readings: emulator.Readings{Network: r}}, "emulate:invalid", "CreditNote emulate:checked", "emulate:undelivered", "plain")
		virtual(t, s, func(t *testing.T, w *world) {
			d.rests(4*hour, placed)
			for n, note := range []string{"_REASON.txt", "_DELIVERED.txt"} {
				e := d.entry(n)
				found, text := d.foundBeside(e, note)
				want := emulator.ValidationFileOf(string(e.OwnNumber()))
				if e.Validation != ledger.ValidationIsKept || found != string(want) || !strings.Contains(text, "in the file _VALIDATION") {
					t.Errorf("%q: %d: %q\n%s\nwant e.Validation = ledger.ValidationIsKept, found = %q, text with \"in the file _VALIDATION\"", e.Folder, e.Validation, found, text, string(want))
				}
				if lines := d.linesOf(e, "validation-kept"); len(lines) != 1 || lines[0].Seal != d.documentOf(e).Seal(archive.Package{SHA256: archive.Sum(want)}).String() || lines[0].Size != int64(len(want)) {
					t.Errorf("%+v, want len(lines) = 1, lines[0].Seal = %v, lines[0].Size = %v", lines, d.documentOf(e).Seal(archive.Package{SHA256: archive.Sum(want)}).String(), int64(len(want)))
				}
			}
			for n, note := range map[int]string{2: "_REASON.txt", 3: "_DELIVERED.txt"} {
				if found, text := d.foundBeside(d.entry(n), note); found != "" || d.entry(n).Validation != ledger.NoValidation || strings.Contains(text, "_VALIDATION") {
					t.Errorf("%q\n%s\nwant found = \"\", d.entry(n).Validation = ledger.NoValidation, text without \"_VALIDATION\"", found, text)
				}
			}
			w.secretive()
		})
	})
}

func (d *networkDrop) documentOf(e ledger.Entry) ledger.Document {
	d.w.t.Helper()
	doc, _, err := d.w.daemon.Ledger().Document(e.Key)
	kit.Must(d.w.t, err)
	return doc
}

// linesOf are the lines of the journal of one event of an entry.
func (d *networkDrop) linesOf(e ledger.Entry, event string) (lines []ledger.Line) {
	d.w.t.Helper()
	kit.Must(d.w.t, d.w.daemon.Ledger().Lines(1, func(_ uint64, line []byte) error {
		var l ledger.Line
		if err := json.Unmarshal(line, &l); err != nil || l.Key != e.Key.String() || l.Event != event {
			return err
		}
		lines = append(lines, l)
		return nil
	}))
	return lines
}

// I11: a file that comes some minutes after its notification is waited for. One that does not come, is broken off each time, is empty or is far
// too long keeps no folder from people: the note says that it is missing.
func TestReading_I11_ValidationFileThatDoesNotCome(t *testing.T) {
	fault := func(f emulator.Fault) func(string, int) emulator.Fault {
		return func(of string, _ int) emulator.Fault {
			if of == "network-validation-file" {
				return f
			}
			return emulator.Fault{}
		}
	}
	answers := func(content []byte) func(*http.Request, http.RoundTripper) (*http.Response, error) {
		return func(r *http.Request, on http.RoundTripper) (*http.Response, error) {
			resp, err := on.RoundTrip(r)
			if err == nil && strings.HasPrefix(r.URL.Path, "/files/") {
				resp.Body.Close()
				resp.Body, resp.ContentLength = io.NopCloser(bytes.NewReader(content)), int64(len(content))
			}
			return resp, err
		}
	}
	type row struct {
		setup   setup
		between func(*http.Request, http.RoundTripper) (*http.Response, error)
		after   time.Duration // the network has the file only then
		comes   bool
	}
	kit.Rows(t, map[string]row{
		"AfterSomeMinutes": {after: 5 * time.Minute, comes: true},
		"AfterAnHour":      {after: time.Hour},
		"Forbidden":        {setup: setup{faults: fault(emulator.Fault{Kind: emulator.Status, Status: 403})}},
		"Never":            {setup: setup{faults: fault(emulator.Fault{Kind: emulator.Status, Status: 503})}},
		"NoAnswer":         {setup: setup{faults: fault(emulator.Fault{DelayAfter: time.Hour})}},
		"ProxyPage":        {setup: setup{faults: fault(emulator.Fault{Kind: emulator.HTML})}},
		"Empty":            {between: answers(nil)},
		"FarTooLong":       {between: answers(bytes.Repeat([]byte("<x/>"), archive.MaxValidationFile/4+1))},
	}, func(t *testing.T, row row) {
		s, d := sending(row.setup, "emulate:invalid", "emulate:checked")
		d.between = row.between
		s.service = func(c *emulator.Config) { c.Network.ValidationAfter = row.after }
		virtual(t, s, func(t *testing.T, w *world) {
			w.pass(2*hour, time.Second, func() bool {
				all := d.entries()
				return len(all) == 2 && all[0].State.IsFinal() && all[1].State.IsFinal()
			})
			began := time.Now()
			d.rests(2*hour, placed)
			took := time.Since(began)
			kit.Check(t, took <= 25*time.Minute && (row.comes || took >= 14*time.Minute), "the folders were kept back for %v", took)
			for n, note := range []string{"_REASON.txt", "_DELIVERED.txt"} {
				e := d.entry(n)
				found, text := d.foundBeside(e, note)
				if row.comes {
					if found == "" || e.Validation != ledger.ValidationIsKept {
						t.Errorf(`%q: %d: %q, want found other than "", e.Validation = ledger.ValidationIsKept`, e.Folder, e.Validation, found)
					}
					continue
				}
				if found != "" || e.Validation != ledger.ValidationMissed || !strings.Contains(text, "could not be fetched") || len(d.linesOf(e, "validation-not-fetched")) != 1 {
					t.Errorf("%q: %d: %q\n%s\nwant found = \"\", e.Validation = ledger.ValidationMissed, text with \"could not be fetched\", len(d.linesOf(e, \"validation-not-fetched\")) = 1", e.Folder, e.Validation, found, text)
				}
				kit.Check(t, n != 0 || strings.Contains(text, "The content of the document is invalid."),
					"the reason is lost:\n%s", text)
			}
		})
	})
}

// I4: what an earlier check found does not lie beside a document that was corrected and delivered, nor beside one that came back for another reason.
func TestReading_I4_ValidationFileOfBefore(t *testing.T) {
	s, d := sending(setup{}, "emulate:invalid")
	virtual(t, s, func(t *testing.T, w *world) {
		d.rests(4*hour, placed)
		for _, note := range []string{"emulate:undelivered", "corrected"} {
			var last ledger.Entry
			for _, e := range d.entries() {
				if e.State == ledger.Rejected && !e.Resolved {
					last = e
				}
			}
			back := filepath.Join(d.path(), last.Dest)
			document := kit.Value(os.ReadFile(filepath.Join(back, "document.json")))(w.t)
			for _, old := range []string{"emulate:invalid", "emulate:undelivered"} {
				document = bytes.ReplaceAll(document, []byte(old), []byte(note))
			}
			kit.Must(w.t, os.WriteFile(filepath.Join(back, "document.json"), document, 0o660))
			kit.Must(w.t, os.WriteFile(filepath.Join(back, "_VALIDATION.txt"), []byte("old"), 0o660))
			d.notes = append(d.notes, note)
			kit.Must(w.t, os.Rename(back, filepath.Join(d.path(), "out-again")))
			d.rests(4*hour, placed)
		}
		for _, e := range d.entries()[1:] {
			if doc := d.documentOf(e); len(doc.Files) != 2 { // what a check found is never sent to anybody
				t.Errorf("%+v, want len(doc.Files) = 2", doc.Files)
			}
			left, err := filepath.Glob(filepath.Join(d.path(), e.Dest, "_VALIDATION*"))
			kit.Check(t, err == nil && len(left) <= 0, "%s: %q lies there, %v", e.State, left, err)
		}
	})
}

// I11: a network that answers no question about files of checks holds up nobody but for a moment: what has no such file is placed meanwhile, and
// what has one goes on without it in time.
func TestReading_I11_SilentChecksHoldNobodyUp(t *testing.T) {
	notes := slices.Repeat([]string{"emulate:checked"}, 60)
	s, d := sending(setup{faults: func(of string, _ int) emulator.Fault {
		if of == "network-validation-file" {
			return emulator.Fault{DelayAfter: time.Hour}
		}
		return emulator.Fault{}
	}}, append(notes, "plain")...)
	s.service = func(c *emulator.Config) { c.Network.DeliverMin, c.Network.DeliverMax = 10*time.Minute, 11*time.Minute }
	virtual(t, s, func(t *testing.T, w *world) {
		ended := map[string]time.Time{}
		placedAfter := map[string]time.Duration{}
		w.pass(2*hour, 5*time.Second, func() bool {
			for _, e := range d.entries() {
				if e.State == ledger.Delivered && ended[e.Folder].IsZero() {
					ended[e.Folder] = time.Now()
				}
				if placed(e) && placedAfter[e.Folder] == 0 {
					placedAfter[e.Folder] = time.Since(ended[e.Folder]) + 1
				}
			}
			return len(placedAfter) == len(d.notes)
		})
		for folder, took := range placedAfter {
			if most := 25 * time.Minute; took > most || folder == folderName(60) && took > 2*time.Minute {
				t.Errorf("%q was placed after %v", folder, took)
			}
		}
		kit.Want(t, "folders in place", len(placedAfter), len(d.notes))
	})
}

// I1, I18: in a drop of the archive a file of such a name is a person's. It is archived, and it lies in the folder that comes back.
func TestReading_I1_FileNamedLikeThatOfACheck(t *testing.T) {
	virtual(t, setup{}, func(t *testing.T, w *world) {
		names := []string{"_VALIDATION.xml", "_VALIDATION.pdf", "_VALIDATION.txt"}
		for folder, sidecar := range map[string]string{"broken": "{", "whole": `{"documentType":"Invoice","documentId":"V-1","documentDate":"2026-10-31","senderName":"Otto","amount":1.00,"currencyCode":"EUR"}`} {
			aside := filepath.Join(w.dir, "aside")
			kit.Must(w.t, os.Mkdir(aside, 0o770))
			for _, name := range names {
				kit.Must(w.t, os.WriteFile(filepath.Join(aside, name), []byte("a person's "+folder), 0o660))
			}
			kit.Must(w.t, os.WriteFile(filepath.Join(aside, "metadata.json"), []byte(sidecar), 0o660))
			kit.Must(w.t, os.Rename(aside, filepath.Join(w.path(0), folder)))
		}
		kit.Need(t, w.pass(4*hour, time.Minute, func() bool {
			ended := 0
			for _, e := range w.entries() {
				if (e.Folder == "broken" || e.Folder == "whole") && placed(e) {
					ended++
				}
			}
			return ended == 2
		}), "they are not placed")
		for _, e := range w.entries() {
			if e.Folder != "broken" && e.Folder != "whole" {
				continue
			}
			for _, name := range names {
				b, err := os.ReadFile(filepath.Join(w.path(0), e.Dest, name))
				kit.Check(t, string(b) == "a person's "+e.Folder, "%s of %s: %q, %v", name, e.State, b, err)
			}
			doc, _, err := w.daemon.Ledger().Document(e.Key)
			kit.Check(t, e.State != ledger.Archived || len(doc.Files) == 3 && err == nil, "%+v, %v", doc.Files, err)
		}
	})
}
