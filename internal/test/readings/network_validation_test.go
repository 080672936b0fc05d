package readings

import (
	"os"
	"path/filepath"
	"testing"

	"vaultd/internal/emulator"
	"vaultd/internal/ledger"
	"vaultd/internal/networkapi"
	"vaultd/internal/test/kit"
)

// placed reports whether a document has ended and its folder is with people again.
func placed(e ledger.Entry) bool {
	return e.State.IsFinal() && (e.Source == ledger.Kept || e.Source == ledger.Returned)
}

// I12: the note that says what became of a document says in words what the
// network found, and how to get the file of its check. The file is fetched by its
// number, in whichever way the network names and sends it.
func TestReading_I12_CheckOfADocumentIsTold(t *testing.T) {
	kit.Rows(t, map[string]emulator.NetworkReadings{"Usual": {}, "ByPropertyInBase64": {Validation: "property", Files: "base64"}, "ByLinkToElsewhere": {Validation: "link", LinksTo: "https://evil.example"},
		"AmongTheOtherFiles": {ValidationAt: "v2"}, "InVersionOne": {ValidationAt: "v1"}}, func(t *testing.T, r emulator.NetworkReadings) {
		s, d := sending(setup{readings: emulator.Readings{Network: r}}, "emulate:invalid", "CreditNote emulate:checked", "emulate:undelivered", "plain")
		virtual(t, s, func(t *testing.T, w *world) {
			d.rests(4*hour, placed)
			noteOf := func(e ledger.Entry) string {
				name := map[ledger.State]string{ledger.Rejected: "_REASON.txt", ledger.Delivered: "_DELIVERED.txt"}[e.State]
				return string(kit.Value(os.ReadFile(filepath.Join(d.path(), e.Dest, name)))(t))
			}
			kit.Holds(t, "the reason", noteOf(d.entry(0)), "The content of the document is invalid.")
			service := networkapi.Sender{Client: d.client("https://" + apiHost)}
			for n := range 2 {
				e := d.entry(n)
				kit.Holds(t, "the note", noteOf(e), "--check-file")
				content, err := service.FetchValidationFile(t.Context(), e.ValidationFile)
				kit.Must(t, err)
				kit.Want(t, "what the check found", string(content), string(emulator.ValidationFileOf(string(e.OwnNumber()))))
			}
			for n := 2; n < 4; n++ {
				e := d.entry(n)
				kit.Want(t, "a file is named", string(e.ValidationFile), "")
				kit.Lacks(t, "the note", noteOf(e), "--check-file")
			}
			w.secretive()
		})
	})
}
