package daemon

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/dropwork"
	"vaultd/internal/ingest"
	"vaultd/internal/ledger"
	"vaultd/internal/operator"
	"vaultd/internal/present"
	"vaultd/internal/test/kit"
)

// decide applies an operator's decision to a folder.
func (h *testDaemon) decide(folder string, one present.Action) {
	h.t.Helper()
	_, err := h.d.Actions().Act(h.t.Context(), h.byFolder()[folder], operator.Person{UID: 7, Reason: "looked at it"}, one.Event)
	h.must(err)
}

// I29: a folder with a file that looks cut off is held, and _STATUS.txt says who
// decides. It is sent as it is once an operator lets it go on, with the bytes that
// are there then; the mark stays.
func TestCutOff_I29_FolderIsHeld(t *testing.T) {
	withDaemon(t, func(d *dropwork.Settings) { d.Holds.CutOff = true }, func(h *testDaemon) {
		for _, folder := range []string{"half", "mended", "given back"} {
			h.dropDated(folder, folder, "1999-10-31", "%PDF-1.7\nhalf of "+folder+strings.Repeat("\x00", 9000))
		}
		h.pass()
		time.Sleep(2 * time.Hour)
		h.wantStates("given back discovered", "half discovered", "mended discovered")
		kit.Holds(t, "status file", h.status(), "looks cut off; IT can let it go as it is, or give it back to you")
		e := h.byFolder()["mended"]
		file := h.claimedPDF(e)
		h.must(os.WriteFile(file, []byte("%PDF-1.7\nwhole\n%%EOF\n"), 0o660))
		h.decide("half", present.Unhold)
		h.decide("mended", present.Unhold)
		h.decide("given back", present.Close)
		time.Sleep(time.Hour)
		h.pass()
		h.pass()
		for _, e := range h.wantStates("given back rejected", "half archived", "mended archived") {
			kit.Want(t, e.Folder+" bears the mark", e.CutOff != ledger.NotCutOff, true)
			kit.Want(t, e.Folder+" needs attention", e.Attention(), ledger.NoAttention)
			d, _, err := h.d.Ledger().Document(e.Key)
			kit.Must(t, err)
			kit.Want(t, e.Folder+" has a remark", len(d.Remarks), map[string]int{"half": 1}[e.Folder])
		}
	})
}

// wantStates compares the states of all folders, sorted by name.
func (h *testDaemon) wantStates(words ...string) map[string]ledger.Entry {
	h.t.Helper()
	all := h.byFolder()
	var got []string
	for _, folder := range slices.Sorted(maps.Keys(all)) {
		got = append(got, folder+" "+all[folder].State.String())
	}
	kit.Want(h.t, "states", got, words)
	return all
}

// claimedPDF is the path of the PDF in a claimed folder.
func (h *testDaemon) claimedPDF(e ledger.Entry) string {
	h.t.Helper()
	found := kit.Value(filepath.Glob(filepath.Join(h.path, ".vaultd/claimed", e.Key.String(), e.Folder, "*.pdf")))(h.t)
	kit.Need(h.t, len(found) == 1, "PDFs in the claim of %s = %v, want one", e.Folder, found)
	return found[0]
}

// I29: the same of a single PDF; looks_cut_off: warn sends it, and reports it. A PDF
// that is whole, with its end where few look for it, is sent.
func TestCutOff_I29_SinglePDF(t *testing.T) {
	t.Parallel()
	body := "%PDF-1.4\n1 0 obj<</Type/Catalog>>endobj\n"
	padded := body + "xref\n0 1\n0000000000 65535 f \ntrailer<<>>\nstartxref\n40\n%%EOF\n" + strings.Repeat("\x00", 80_508)
	kit.Want(t, "place of the table", len(body), 40)
	kit.Rows(t, map[string]bool{"Hold": true, "Warn": false}, func(t *testing.T, holds bool) {
		withPDFDrop(t, func(c *Config) { c.Drops[0].Holds.CutOff = holds }, func(h *testDaemon, s *pdfFlow) {
			h.must(os.WriteFile(filepath.Join(h.path, "cut.pdf"), []byte("%PDF-1.7\n1 0 obj half"), 0o660))
			h.must(os.WriteFile(filepath.Join(h.path, "padded.pdf"), []byte(padded), 0o660))
			time.Sleep(2 * time.Hour)
			h.pass()
			if holds {
				h.wantStates("cut.pdf discovered", "padded.pdf delivered")
				kit.Holds(t, "status file", h.status(), "cut.pdf looks cut off; IT can let it go")
				kit.Want(t, "delivered", s.delivered(), 1)
				h.decide("cut.pdf", present.Unhold)
				time.Sleep(time.Hour)
				h.pass()
			}
			for _, e := range h.wantStates("cut.pdf delivered", "padded.pdf delivered") {
				want := map[bool]ledger.CutOffState{true: ledger.CutOffTaken, false: ledger.CutOffFound}[holds]
				if e.Folder == "padded.pdf" {
					want = ledger.NotCutOff
				}
				kit.Want(t, e.Folder, e.CutOff, want)
				d, _, err := h.d.Ledger().Document(e.Key)
				kit.Must(t, err)
				kit.Want(t, "remarks of "+e.Folder, len(d.Remarks), 1)
			}
			kit.Want(t, "delivered", s.delivered(), 2)
		})
	})
}

// dropDated makes a folder whose invoice has a date of its own.
func (h *testDaemon) dropDated(folder, number, date, content string) {
	h.t.Helper()
	dir := filepath.Join(h.path, folder)
	h.must(os.MkdirAll(dir, 0o770))
	h.must(os.WriteFile(filepath.Join(dir, "rechnung.pdf"), []byte(content), 0o660))
	h.must(os.WriteFile(filepath.Join(dir, "metadata.json"), fmt.Appendf(nil,
		`{"documentType": "Invoice", "documentId": %q, "documentDate": %q, "senderName": "Huber KG", "amount": 119.00}`, number, date), 0o660))
}

// I26: who dropped an invoice number that came twice, or an invoice of 2062, reads it in _STATUS.txt until somebody has
// looked at it. Both are archived.
func TestStatusFile_I26_UnusualDocuments(t *testing.T) {
	withDaemon(t, nil, func(h *testDaemon) {
		h.dropDated("Huber 88", "RE-88", "1999-10-31", "one")
		h.pass()
		h.dropDated("Huber 88 neu", " re-88", "1999-10-31", "another")
		h.pass()
		h.dropDated("Huber 9", "RE-9", "2062-10-31", "third")
		h.becomes("Huber 88 archived", "Huber 88 neu archived", "Huber 9 archived")
		const pair = `  Huber 88 neu          same invoice number, sender and date as "Huber 88", archived 1 Jan 2000` + "\n"
		const date = "  Huber 9               document date is before 1990, in the future, or another day here than in UTC\n"
		kit.Holds(t, "status file", h.status(), "PLEASE CHECK (2)\n", pair, date)
		kit.Lacks(t, "status file", h.status(), "Nothing to put right")
		e := h.byFolder()["Huber 88 neu"]
		if _, err := h.d.Actions().Act(t.Context(), e, operator.Person{UID: 7, Reason: "both are right"}, func(by ledger.Operator) ledger.Event { return ledger.Closed{By: by} }); err != nil {
			t.Fatal(err)
		}
		h.pass()
		kit.Holds(t, "status file after one was checked", h.status(), "PLEASE CHECK (1)\n", date)
		kit.Lacks(t, "status file after one was checked", h.status(), pair)
	})
}

// same_number: hold lets the second one wait. Given back, its _REASON.txt names the first, and its re-drop with the right
// number goes through without another word.
func TestStatusFile_SameNumberHeldAndGivenBack(t *testing.T) {
	withDaemon(t, func(d *dropwork.Settings) { d.Holds = ingest.Holds{SameNumber: true} }, func(h *testDaemon) {
		h.dropDated("Huber 88", "RE-88", "1999-10-31", "one")
		h.pass()
		h.dropDated("Huber 89", "RE-88", "1999-10-31", "another")
		h.becomes("Huber 88 archived", "Huber 89 packaged")
		kit.Holds(t, "status file", h.status(), "stopped; same invoice number as another folder; IT must decide\n")
		_, err := h.d.Actions().Act(t.Context(), h.byFolder()["Huber 89"], operator.Person{UID: 7, Reason: "the number is wrong"}, func(by ledger.Operator) ledger.Event { return ledger.Closed{By: by} })
		h.must(err)
		h.pass()
		text := kit.Value(os.ReadFile(filepath.Join(h.path, "_rejected/Huber 89/_REASON.txt")))(h.t)
		kit.Holds(t, "reason", string(text), `same invoice number, sender and date as "Huber 88", archived 1 Jan 2000`)
		h.must(os.Rename(filepath.Join(h.path, "_rejected/Huber 89"), filepath.Join(h.path, "Huber 89")))
		h.dropDated("Huber 89", "RE-89", "1999-10-31", "another")
		h.pass()
		for _, e := range h.becomes("Huber 88 archived", "Huber 89 rejected resolved", "Huber 89 archived") {
			kit.Check(t, e.State != ledger.Archived || !e.NeedsReview(), "%s still needs a review, want none", e.Folder)
		}
	})
}

// TestArchived_I3_OnlyTheServicesOwnSuccess: the files of a received document
// are removed once isArchived says so. An upload that the store took is not
// enough.
func TestArchived_I3_OnlyTheServicesOwnSuccess(t *testing.T) {
	withDaemon(t, nil, func(h *testDaemon) {
		isArchived := func(id archive.ID) bool {
			t.Helper()
			is := kit.Value(h.d.isArchived(id))(h.t)
			return is
		}
		kit.Want(t, "a document that is not known counts as archived", isArchived(archive.ID{1}), false)
		h.drop("Huber 88", "88", "one", false)
		seen := map[ledger.State]bool{}
		for begun := time.Now(); !seen[ledger.Archived] && time.Since(begun) < time.Hour; time.Sleep(time.Second) {
			_, all := h.entries()
			if len(all) == 0 || all[0].ID.IsZero() {
				continue
			}
			seen[all[0].State] = true
			kit.Want(t, "a document that is "+all[0].State.String()+" counts as archived", isArchived(all[0].ID), all[0].State == ledger.Archived)
		}
		kit.Check(t, seen[ledger.Uploaded] && seen[ledger.Archived],
			"states = %v, want uploaded and archived among them", seen)
	})
}
