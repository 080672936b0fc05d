package daemon

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"vaultd/internal/dropwork"
	"vaultd/internal/ingest"
	"vaultd/internal/ledger"
	"vaultd/internal/operator"
	"vaultd/internal/test/kit"
)

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
	t.Parallel()
	withDaemon(t, nil, func(h *testDaemon) {
		h.dropDated("Huber 88", "RE-88", "1999-10-31", "one")
		h.pass()
		h.dropDated("Huber 88 neu", " re-88", "1999-10-31", "another")
		h.pass()
		h.dropDated("Huber 9", "RE-9", "2062-10-31", "third")
		h.pass()
		h.want("Huber 88 archived", "Huber 88 neu archived", "Huber 9 archived")
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
	t.Parallel()
	withDaemon(t, func(d *dropwork.Settings) { d.Holds = ingest.Holds{SameNumber: true} }, func(h *testDaemon) {
		h.dropDated("Huber 88", "RE-88", "1999-10-31", "one")
		h.pass()
		h.dropDated("Huber 89", "RE-88", "1999-10-31", "another")
		h.pass()
		h.want("Huber 88 archived", "Huber 89 packaged")
		kit.Holds(t, "status file", h.status(), "stopped; same invoice number as another folder; IT must decide\n")
		_, err := h.d.Actions().Act(t.Context(), h.byFolder()["Huber 89"], operator.Person{UID: 7, Reason: "the number is wrong"}, func(by ledger.Operator) ledger.Event { return ledger.Closed{By: by} })
		h.must(err)
		h.pass()
		text, err := os.ReadFile(filepath.Join(h.path, "_rejected/Huber 89/_REASON.txt"))
		h.must(err)
		kit.Holds(t, "reason", string(text), `same invoice number, sender and date as "Huber 88", archived 1 Jan 2000`)
		h.must(os.Rename(filepath.Join(h.path, "_rejected/Huber 89"), filepath.Join(h.path, "Huber 89")))
		h.dropDated("Huber 89", "RE-89", "1999-10-31", "another")
		h.pass()
		h.pass()
		for _, e := range h.want("Huber 88 archived", "Huber 89 rejected resolved", "Huber 89 archived") {
			kit.Check(t, e.State != ledger.Archived || !e.NeedsReview(), "%s still needs a review, want none", e.Folder)
		}
	})
}
