package browser

import (
	"vaultd/internal/test/kit"

	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// invoice is one folder that is dropped, and the state that it is to end in; no state: it is not taken.
type invoice struct {
	folder, state string
	metadata      map[string]any // nil: no sidecar
	content       string         // of its one file; empty: one that no other folder has
	isHostile     bool           // its names are not what people write
}

// The names of folders and parties that a page must show as they are, and never obey.
const (
	markup     = `<script>document.title='hacked'<!--`
	imageTag   = `<img src=x onerror="document.title='hacked'">`
	quotes     = `Müller "4711" & 'Söhne'`
	rightLeft  = "חשבונית \u202eGPJ.4711" // letters that run right to left, and a sign that turns what follows
	lineBreaks = "Zeile\u2028Rechnung"
)

var longName = strings.Repeat("Rechnungsnummernkreis", 10)[:200]

// invoices returns what is dropped into every world that is looked at.
func invoices() []invoice {
	year := time.Now().Year()
	bill := func(id, sender string, more ...map[string]any) map[string]any {
		m := map[string]any{
			"documentType": "Invoice", "documentId": id, "documentDate": fmt.Sprintf("%d-01-15", year),
			"senderName": sender, "senderIds": []string{"DE014814804"}, "recipientName": "Acme GmbH", "currencyCode": "EUR", "amount": 1234.56,
		}
		for _, fields := range more {
			maps.Copy(m, fields)
		}
		return m
	}
	return []invoice{
		{"Müller 4711", "archived", bill("4711", "Müller GmbH"), "the first of two", false},
		{"Müller 4711 Kopie", "duplicate", bill("4711", "Müller GmbH"), "the first of two", false},
		{"Huber 88", "archived", bill("RE-88", "Huber & Sohn", map[string]any{"documentType": "CreditNote", "amount": -88.10}), "", false},
		{"Schulz 3", "rejected", bill("3", "Schulz Reinigung", map[string]any{"documentDate": "31.10.2026"}), "", false},
		{"Kern 6", "quarantined", bill("FAIL-6", "Kern IT"), "", false},
		{markup, "archived", bill(markup, "<script>document.title='hacked'</script>"), "", true},
		{imageTag, "rejected", bill("7", imageTag, map[string]any{"documentDate": "</script>" + imageTag}), "", true},
		{quotes, "archived", bill(quotes, quotes), "", true},
		{rightLeft, "archived", bill("IL-1", rightLeft), "", true},
		{lineBreaks, "archived", bill("ZL-1", lineBreaks), "", true},
		{longName, "archived", bill(longName[:100], longName[:100]), "", true},
		{"Meier 12", "", nil, "", false},
		{"Ohne " + imageTag, "", nil, "", true},
	}
}

// drop puts an invoice into the drop folder: made beside it, and renamed into it whole.
func (w *world) drop(i invoice) {
	w.t.Helper()
	staged := filepath.Join(w.dir, "staged")
	kit.Must(w.t, os.Mkdir(staged, 0o770))
	content := i.content
	if content == "" {
		content = "the invoice of " + i.folder
	}
	w.write("staged/rechnung.pdf", "%PDF-1.4\n"+content+"\n%%EOF\n", 0o660)
	if i.metadata != nil {
		text := kit.Value(json.MarshalIndent(i.metadata, "", "  "))(w.t)
		w.write("staged/metadata.json", string(text), 0o660)
	}
	kit.Must(w.t, os.Rename(staged, filepath.Join(w.dir, "acme-in", i.folder)))
}

// dropAll drops the invoices of every world into each of these, and waits until each has the state that it is to end in.
func dropAll(worlds ...*world) {
	var first, later []invoice
	for _, i := range invoices() {
		if i.state == "duplicate" {
			later = append(later, i)
		} else {
			first = append(first, i)
		}
	}
	for _, some := range [][]invoice{first, later} {
		for _, w := range worlds {
			for _, i := range some {
				w.drop(i)
			}
		}
		for _, w := range worlds {
			w.awaitStates(some)
		}
	}
}

// awaitStates waits until each invoice has its state, and names those that do not get it.
func (w *world) awaitStates(some []invoice) {
	w.t.Helper()
	var missing []string
	defer func() {
		if w.t.Failed() {
			w.t.Logf("not as expected: %q", missing)
		}
	}()
	w.await("each folder has its state", func() bool {
		missing = nil
		entries := w.list()
		for _, i := range some {
			if i.state != "" && entries[i.folder].State != i.state {
				missing = append(missing, fmt.Sprintf("%s: %s, want %s", i.folder, entries[i.folder].State, i.state))
			}
		}
		return len(missing) == 0
	})
}
