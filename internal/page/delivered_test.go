package page

import (
	"context"
	"html"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/present"
	"vaultd/internal/test/kit"
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

// networkDocument is everything about a document that the business network delivered and rejected later, with every event that may be of it.
func networkDocument() present.Dossier {
	at := time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)
	d := present.Dossier{Entry: ledger.Entry{Key: archive.NewKey(at), Route: ledger.Network, Drop: "out", Folder: "Huber 88", State: ledger.Delivered, Source: ledger.Kept, Dest: "_delivered/2026-11/Huber 88",
		SeenAt: at, UploadedAt: at.Add(time.Hour), Contradicted: true, Means: ledger.EmailDelivery, Recipient: ledger.RecipientRejected, Package: archive.Package{Size: 2_000_000, SHA256: archive.Digest{1}},
		Posts: 1, Answers: 1, Registrations: []ledger.Registration{{Ticket: archive.Ticket{Remote: "number-1"}, Fate: ledger.Succeeded, UploadIntents: 1}}}, HasDocument: true}
	d.Document = ledger.Document{Metadata: []byte("{}"), Files: []archive.File{{Path: "invoice.xml", Size: 2_000_000}}}
	d.Metadata = archive.Document{Type: "Invoice", RecipientIDs: []string{"1234567890123"}}
	events := slices.Sorted(maps.Keys(eventTexts))
	for event := range networkEventTexts {
		if !slices.Contains(events, event) && !strings.HasPrefix(event, "copy-") { // which tell of the archive: see TestDocument_OfASentCopy
			events = append(events, event)
		}
	}
	for i, event := range events {
		d.History = append(d.History, ledger.Line{N: uint64(i + 1), Rev: uint32(i + 1), At: "2026-11-20T10:00:00.000Z", Event: event, Status: "Delivered"})
	}
	d.Entry.Rev = uint32(len(events))
	return d
}

// TestDocument_I12_SaysWhatIsCertain: the page of a document that was delivered says when, how, to whom and what proves it, in both languages, and
// nothing that belongs to another route.
func TestDocument_I12_SaysWhatIsCertain(t *testing.T) {
	key := archive.NewKey(time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)).String()
	network := func(change func(d *present.Dossier)) present.Dossier {
		d := networkDocument()
		change(&d)
		return d
	}
	copied := func(c present.SentCopy) present.Dossier {
		return network(func(d *present.Dossier) {
			d.History = append(d.History, ledger.Line{N: 99, Rev: d.Entry.Rev + 1, At: "2026-11-20T10:00:00.000Z", Event: "copy-put"})
			d.SentCopy = &c
		})
	}
	for name, row := range map[string]struct {
		dossier present.Dossier
		en, de  []string
		foreign []string // what the page may not say
	}{
		"PDF": {deliveredPDF(),
			[]string{`<p class="verdict good">delivered · today 10:00</p>`, "Delivered is not archived.", "possibly processed twice", "<dt>Sent to</dt><dd><bdi>ap@in.example", "<dt>Delivered</dt>", "Delivery note (JSON)", "The PDF</h2>",
				"Upload addresses</h2>", "Checked and copied.", "Delivered: the accounts-payable system has taken all of it.", "kept with its delivery note: _delivered/2026-11/scan7.pdf"},
			[]string{`<p class="verdict good">zugestellt · heute 10:00</p>`, "Zugestellt heißt nicht archiviert.", "vielleicht zweimal verarbeitet", "<dt>Gesendet an</dt><dd><bdi>ap@in.example", "<dt>Zugestellt</dt>", "Zustellnachweis (JSON)", "Das PDF</h2>",
				"Upload-Adressen</h2>", "Geprüft und kopiert.", "Zugestellt: Das Kreditorensystem hat alles angenommen.", "mit Zustellnachweis aufbewahrt: _delivered/2026-11/scan7.pdf"},
			[]string{"archiv", "zip"}},
		"Network": {networkDocument(),
			[]string{"rejected after delivery", `<li class="bad">CONTRADICTED: the business network rejected it after it had delivered it</li>`, "REJECTED BY THE RECIPIENT", "<dt>Numbers of the recipient</dt><dd><bdi>1234567890123",
				"by e-mail", "the recipient rejected it", "Delivery note (JSON)", "Files of the document</h2>", "Number at the business network</h2>", "The business network has taken the document.", "network says Delivered"},
			[]string{"nach der Zustellung abgewiesen", "WIDERSPROCHEN: Das Geschäftsnetzwerk", "VOM EMPFÄNGER ABGELEHNT", "<dt>Nummern des Empfängers</dt><dd><bdi>1234567890123", "per E-Mail", "Zustellnachweis (JSON)",
				"Dateien des Dokuments</h2>", "Nummer im Geschäftsnetzwerk</h2>", "Das Geschäftsnetzwerk hat das Dokument angenommen.", "Netzwerk sagt Delivered"},
			[]string{"archiv", "zip", "pdf", "accounts-payable", "kreditor", "upload"}},
		"Checked":          {network(func(d *present.Dossier) { d.Entry.ValidationFile = "ref-1" }), []string{"vaultd show X --check-file"}, []string{"Die IT kann sie holen"}, nil},
		"CopyInTheArchive": {copied(present.SentCopy{IsTaken: true, Key: key, Drop: "acme-in", Folder: "Sent 4711", State: "archived"}), []string{`Its copy in the archive: <a href="/document/` + key + `"><bdi>Sent 4711</bdi></a> (archived).`, "A copy of what was sent was put into a drop folder of the archive."}, nil, nil},
		"CopyInItsDrop":    {copied(present.SentCopy{}), []string{"Its copy lies in its drop folder of the archive, and was not taken yet.", "A copy of what was sent was put into a drop folder of the archive."}, nil, nil},
		"CameInOverIt":     {network(func(d *present.Dossier) { d.ReceivedAs = "46aa4caf-b373-11ed-bbfc-cfd535abf178" }), []string{"It came in over the business network, where its number is: <bdi>46aa4caf"}, []string{"wo es diese Nummer hat: <bdi>46aa4caf"}, nil},
	} {
		for language, want := range map[string][]string{"en": row.en, "de": row.de} {
			body := visit(t, New(oneDocument{dossier: row.dossier}, slog.New(slog.DiscardHandler)), web.Rights{Read: true}, language, http.MethodGet, "/document/"+row.dossier.Entry.Key.String()).Body.String()
			body = html.UnescapeString(body)
			kit.Holds(t, name+" "+language, body, want...)
			_, main, _ := strings.Cut(body, "<main")
			main, _, found := strings.Cut(main, "</main>")
			if name == "PDF" { // the only place that compares the two
				main = strings.NewReplacer("Delivered is not archived", "", "Zugestellt heißt nicht archiviert", "").Replace(main)
			}
			kit.Want(t, name+": the page has a main part", found, true)
			kit.Lacks(t, name+" "+language, strings.ToLower(main), row.foreign...)
		}
	}
}

// statusOf answers with one summary.
type statusOf struct {
	oneDocument
	summary present.StatusSummary
	history *present.History // nil: an empty one
}

func (s statusOf) Status(context.Context) (present.StatusSummary, error) { return s.summary, nil }

func (s statusOf) History(context.Context) (present.History, error) {
	if s.history != nil {
		return *s.history, nil
	}
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
		kit.Holds(t, language, body, want...)
	}
}

// I12: what was delivered has bars and a column of its own in each chart, and is in none of the bars of what was archived. A ledger in which
// nothing was delivered has neither.
func TestCharts_I12_DeliveredIsASeriesOfItsOwn(t *testing.T) {
	delivered := time.Date(2026, 11, 20, 9, 15, 0, 0, time.UTC)
	type row struct {
		delivered uint64
		want      int
	}
	kit.Rows(t, map[string]row{"NothingDelivered": {0, 0}, "Delivered": {3, 1}}, func(t *testing.T, row row) {
		s := statusOf{}
		h := present.NewHistory(s.About().Clock)
		h.Days[29].Archived, h.Months[23].Archived = 2, 2
		h.Days[29].Delivered, h.Months[23].Delivered = row.delivered, row.delivered
		h.SetDelays([]time.Duration{time.Minute, time.Hour}, make([]time.Duration, row.delivered))
		s.history = &h
		if row.delivered > 0 {
			s.summary.LastDelivered = &delivered
		}
		body := visit(t, New(s, slog.New(slog.DiscardHandler)), web.Rights{Read: true}, "en", http.MethodGet, "/").Body.String()
		for text, want := range map[string]int{`<rect class="archived"`: 4, `<rect class="delivered"`: 3 * row.want, `<span class="key delivered">`: row.want, `<th scope="col">delivered</th>`: 3 * row.want,
			`<td>2</td><td>0</td><td>3</td>`: 2 * row.want, "From taken to archived or delivered</h3>": row.want, "Of the newest 3 delivered PDFs, which are not archived.": row.want, "Last delivered today 09:15.": row.want} {
			got := strings.Count(body, text)
			kit.Check(t, got == want, "%s: %d times, want %d in\n%s", text, got, want, body)
		}
	})
}
