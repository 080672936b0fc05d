package page

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/present"
	"vaultd/internal/web"
)

// deliveredPDF is everything about a delivered PDF that was perhaps processed twice.
func deliveredPDF() present.Dossier {
	at := time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)
	d := present.Dossier{Entry: ledger.Entry{Key: archive.NewKey(at), Rev: 3, Route: ledger.PDF, Drop: "ap-scans", Folder: "scan7.pdf", State: ledger.Delivered, Source: ledger.Kept, Dest: "_delivered/2026-11/scan7.pdf",
		SeenAt: at, UploadedAt: at.Add(time.Hour), PossibleDouble: true, Package: archive.Package{Size: 2_000_000, SHA256: archive.Digest{1}}, Posts: 1, Answers: 1,
		Registrations: []ledger.Registration{{Ticket: archive.Ticket{Remote: "slot-1"}, Fate: ledger.Succeeded, UploadIntents: 1}}}, HasDocument: true}
	d.Document = ledger.Document{Metadata: []byte("{}"), Files: []archive.File{{Path: "scan7.pdf", Size: 2_000_000}}}
	d.Addresses = []present.Field{{Name: "receivingEmailAddress", Value: "ap@in.example"}, {Name: "notificationEmailAddress", Value: "clerk@acme.example"}}
	for i, event := range []string{"sealed", "register-intended", "delivered"} {
		d.History = append(d.History, ledger.Line{N: uint64(i + 1), Rev: uint32(i + 1), At: "2026-11-20T10:00:00.000Z", Event: event})
	}
	return d
}

// I12: the page of a delivered PDF says when, to whom and what proves it, in both languages, and nowhere that it is archived or in the archive.
func TestDocument_I12_OfADeliveredPDF(t *testing.T) {
	d := deliveredPDF()
	for language, want := range map[string][]string{
		"en": {`<p class="verdict good">delivered · today 10:00</p>`, "Delivered is not archived.", "possibly processed twice", "<dt>Sent to</dt><dd><bdi>ap@in.example", "<dt>Delivered</dt>", "Delivery note (JSON)", "The PDF</h2>",
			"Upload addresses</h2>", "Checked and copied.", "Delivered: the accounts-payable system has taken all of it.", "kept with its delivery note: _delivered/2026-11/scan7.pdf"},
		"de": {`<p class="verdict good">zugestellt · heute 10:00</p>`, "Zugestellt heißt nicht archiviert.", "vielleicht zweimal verarbeitet", "<dt>Gesendet an</dt><dd><bdi>ap@in.example", "<dt>Zugestellt</dt>", "Zustellnachweis (JSON)", "Das PDF</h2>",
			"Upload-Adressen</h2>", "Geprüft und kopiert.", "Zugestellt: Das Kreditorensystem hat alles angenommen.", "mit Zustellnachweis aufbewahrt: _delivered/2026-11/scan7.pdf"},
	} {
		body := visit(t, New(oneDocument{dossier: d}, slog.New(slog.DiscardHandler)), web.Rights{Read: true}, language, http.MethodGet, "/document/"+d.Entry.Key.String()).Body.String()
		for _, text := range want {
			if !strings.Contains(body, text) {
				t.Errorf("%s: %q is missing", language, text)
			}
		}
		_, main, _ := strings.Cut(body, "<main")
		main, _, _ = strings.Cut(main, "</main>")
		for _, compared := range []string{"Delivered is not archived", "Zugestellt heißt nicht archiviert"} {
			main = strings.ReplaceAll(main, compared, "")
		}
		if main == "" || strings.Contains(strings.ToLower(main), "archiv") || strings.Contains(main, "ZIP") {
			t.Errorf("%s: %s", language, main)
		}
	}
}

// statusOf answers with one summary.
type statusOf struct {
	oneDocument
	summary present.StatusSummary
}

func (s statusOf) Status(context.Context) (present.StatusSummary, error) { return s.summary, nil }

func (s statusOf) History(context.Context) (present.History, error) {
	return present.NewHistory(s.About().Clock), nil
}

// I12: the first page has the drops of single PDFs in a group of their own. What they delivered today stands in no number of what was archived.
func TestStatus_I12_DeliveredIsNotArchived(t *testing.T) {
	s := statusOf{summary: present.StatusSummary{Running: true, Balance: present.Balance{Seen: 5, Agrees: true, States: map[string]uint64{"archived": 2, "delivered": 3}}, Drops: []present.DropStatus{
		{Name: "acme-in", Vault: "V-1", Route: "vault", Today: 2}, {Name: "ap-scans", Route: "pdf", Delivered: 3}, {Name: "ap-post", Route: "pdf"}, {Name: "old"}}}}
	for language, want := range map[string][]string{
		"en": {`V-1</th><td></td><td class="number">2</td>`, `single PDFs, to the accounts-payable system</th><td></td><td class="number">3 delivered</td>`, `<td class="number">0 delivered</td>`, `configured no more</th><td></td><td class="number">0</td>`,
			`<th scope="row">archived</th><td>2</td>`, `<th scope="row">delivered</th><td>3</td>`},
		"de": {`V-1</th><td></td><td class="number">2</td>`, `einzelne PDFs, an das Kreditorensystem</th><td></td><td class="number">3 zugestellt</td>`, `<th scope="row">zugestellt</th><td>3</td>`},
	} {
		body := visit(t, New(s, slog.New(slog.DiscardHandler)), web.Rights{Read: true}, language, http.MethodGet, "/").Body.String()
		for _, text := range want {
			if !strings.Contains(body, text) {
				t.Errorf("%s: %q is missing in\n%s", language, text, body)
			}
		}
	}
}
