package browser

import (
	"vaultd/internal/test/kit"

	"archive/zip"
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp/kb"

	"vaultd/internal/emulator"
)

// booked is one invoice that the books have, whether it was dropped or not.
type booked struct {
	number, supplier string
	amount           json.Number
}

// bookedInvoices returns what is booked in the worlds that have books: what is archived, what differs, was refused or only looks alike, and
// what nobody dropped.
func bookedInvoices() []booked {
	return []booked{
		{"4711", "Müller GmbH", "1234.56"}, {"RE-88", "Huber & Sohn", "88.01"}, {"3", "Schulz Reinigung", "1234.56"}, {"FAIL-6", "Kern IT", "1234.56"},
		{"re-88", "Huber & Sohn", "88.1"}, {"2026-118", "Donauwerk GmbH", "18204.5"}, {"2026-131", "Nordlicht Energie AG", "990"}, {"", "Kunz Logistik", "7.1"},
	}
}

// hostileBooked returns booked invoices whose names are not what people write.
func hostileBooked() []booked {
	return []booked{{markup, imageTag, "1"}, {"8" + quotes, rightLeft, "2"}, {longName, longName, "3"}}
}

// booksConfig is what the configuration of a world with books says.
func booksConfig(dir, service string) string {
	return fmt.Sprintf(`extracts: {base_url: "%[2]s", custody: %[1]s/custody, every: 1h, auth: {method: basic, username: demo, secret_file: %[1]s/secret}}
books: {table: IA_INVOICE, columns: {key: ID, number: NUM, supplier: SUPPLIER, company: ORG, date: DAY, amount: GROSS_SUM, currency: CUR}, from: %[3]d-01-01}
`, dir, service, time.Now().Year()-1)
}

// publishBooked makes the service offer two extracts, with a day between them that none covers. The daemon must not run.
func (w *world) publishBooked(all []booked) {
	w.t.Helper()
	var columns, records []map[string]any
	for _, name := range []string{"ID", "NUM", "SUPPLIER", "ORG", "DAY", "GROSS_SUM", "CUR"} {
		columns = append(columns, map[string]any{"Column name": name})
	}
	for i, b := range all {
		records = append(records, map[string]any{"ID": fmt.Sprint(i), "NUM": b.number, "SUPPLIER": b.supplier, "ORG": "Acme GmbH", "DAY": fmt.Sprintf("%d-01-15", time.Now().Year()), "GROSS_SUM": b.amount, "CUR": "EUR"})
	}
	must := func(err error) {
		w.t.Helper()
		kit.Must(w.t, err)
	}
	definition, err := json.Marshal([]map[string]any{{"Table name": "IA_INVOICE", "Columns": columns}})
	must(err)
	must(w.service.SetTableDefinition(definition))
	text, err := json.Marshal(records)
	must(err)
	var file bytes.Buffer
	z := zip.NewWriter(&file)
	part, err := z.Create("IA_INVOICE.json")
	must(err)
	_, err = part.Write(text)
	must(err)
	must(z.Close())
	day := func(ago int) time.Time { return time.Now().UTC().Truncate(24*time.Hour).AddDate(0, 0, -ago) }
	must(w.service.PublishExtract(emulator.PublishedExtract{ID: "1", Type: "Initial", Name: "daily", Start: day(900), End: day(9), Made: time.Now().Add(-2 * time.Hour),
		Files: []emulator.PublishedFile{{Table: "IA_INVOICE", Name: "IA_INVOICE_1.zip", Content: file.Bytes()}}}))
	must(w.service.PublishExtract(emulator.PublishedExtract{ID: "2", Type: "Delta", Name: "daily", Start: day(8), End: day(0), Made: time.Now().Add(-time.Hour)}))
	must(os.Mkdir(filepath.Join(w.dir, "custody"), 0o700))
}

// awaitExtracts waits until what publishBooked offered is held.
func (w *world) awaitExtracts() {
	w.t.Helper()
	w.await("both extracts are held", func() bool { return strings.Count(w.run("extracts"), " held ") == 2 })
}

// askBooks asks for the answer about booked invoices with the keyboard, as the form has it.
func (b *tab) askBooks(w *world) {
	b.t.Helper()
	b.visit(w.url + "/books")
	b.focus(`main form button`)
	b.leave(func() { b.press(kb.Enter) })
}

// The answer about booked invoices has no barrier, shows all of its text on a phone and at 200 %, asks nobody elsewhere, and shows hostile
// names as text. It and the files work without scripts.
func testBooks(t *testing.T, c *chromium, w *world, d doubts) {
	b := c.open(t, desk)
	b.allowScripts(false)
	b.signIn(w, reader, password)
	b.askBooks(w)
	b.expectText("never dropped", "Huber & Sohn")
	b.focus(`button[value="csv"]`)
	if name, table := b.download(func() { b.press(kb.Enter) }); !strings.HasSuffix(name, ".csv") || !bytes.Contains(table, []byte("never-dropped")) {
		t.Errorf("the table is %s with %q", name, table)
	}
	b = c.open(t, desk)
	b.signIn(w, reader, password)
	for language, words := range map[string][]string{"en": {"Not complete", "with only a similar number", "rejected"}, "de": {"Nicht vollständig", "nur mit ähnlicher Nummer", "abgewiesen"}} {
		name := "booked invoices (" + language + ")"
		b.show(desk.in(language))
		b.takeFaults()
		b.askBooks(w)
		b.expectText(append(words, visible(markup), "Schulz 3")...)
		if title := ask[string](b, "document.title"); strings.Contains(title, "hacked") || strings.ContainsAny(b.text(), "\u202e\u2028") {
			t.Errorf("%s: the page obeys a name: %s", name, title)
		}
		b.expectNoBarrier(name, d, desk.in(language), desk.in(language).atNight(), phone.in(language), phone.in(language).atNight())
		b.expectAllSeen(name, desk, zoomed, phone, narrow)
		b.expectQuiet(name, w, http.StatusOK)
	}
	b.show(desk)
	b.askBooks(w)
	b.expectStopsSeen("booked invoices")
}
