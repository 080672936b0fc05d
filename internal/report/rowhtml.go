package report

import (
	"html/template"
	"strings"

	"vaultd/internal/present"
	"vaultd/internal/sanitize"
)

// rowWriter writes one row of the page's table. The template would do it, and take more than twice the time: a table has
// up to a million rows. Every text of the ledger goes through writeText, which sanitizes and escapes it.
type rowWriter struct{ strings.Builder }

func (w *rowWriter) writeText(s string) { w.WriteString(sanitize.HTML(s)) }

// writeWithin writes a text between tags; nothing where there is none.
func (w *rowWriter) writeWithin(open, s, closing string) {
	if s != "" {
		w.WriteString(open)
		w.writeText(s)
		w.WriteString(closing)
	}
}

// writeIsolated writes a text whose direction must not turn what stands beside it.
func (w *rowWriter) writeIsolated(s string) { w.writeWithin("<bdi>", s, "</bdi>") }

func (w *rowWriter) writeCode(s *string) { w.writeWithin("<code>", textOf(s), "</code>") }

// Row gives the table's row of one folder.
func (p *htmlPage) Row(r row) template.HTML {
	const next = "</td><td>"
	var w rowWriter
	w.Grow(1 << 10)
	w.WriteString(`<tr><th scope="row">`)
	w.writeIsolated(r.Folder)
	w.writeWithin(" <small><bdi>", r.Drop, "</bdi></small>")
	w.writeReceipt(r)
	w.WriteString("</th><td>")
	s := r.shownFields()
	w.writeIsolated(s.Number)
	w.writeWithin(" <small>", s.Mark, "</small>")
	w.WriteString(next)
	w.writeText(s.Type)
	w.WriteString(next)
	w.writeText(present.FormatDay(s.Date))
	w.WriteString(next)
	w.writeIsolated(s.Sender)
	w.WriteString(next)
	if w.writeIsolated(s.Recipient); s.Recipient == "" {
		w.writeIsolated(s.RecipientIDs)
	}
	w.WriteString(next)
	if s.Mark == "" {
		s.Amount = groupThousands(s.Amount)
	}
	w.writeText(s.Amount)
	w.writeWithin(" ", s.Currency, "")
	w.WriteString(next)
	w.writeState(r, p.TimeCell(r.DeliveredAt))
	w.WriteString(next)
	w.writeText(p.TimeCell(r.ArchivedAt))
	w.WriteString(next)
	for _, number := range []*string{&r.Key, r.BumID, r.ClientUUID, r.SHA256} {
		w.writeCode(number)
	}
	w.WriteString("</td></tr>")
	return template.HTML(w.String()) // text escaped each part of it
}

// noteWord says what proves the end of a document.
func (r row) noteWord() string {
	if r.DeliveredAt != nil {
		return "delivery note"
	}
	return "receipt"
}

// writeReceipt links to the receipt or the delivery note of a kept folder, or says where it is.
func (w *rowWriter) writeReceipt(r row) {
	if strings.HasPrefix(r.link, "./") || strings.HasPrefix(r.link, "../") { // nothing else is a path, whatever it came from
		w.writeWithin(`<small><a href="`, r.link, `">`+r.noteWord()+`</a></small>`)
		return
	}
	w.writeWithin("<small><bdi>", textOf(r.Receipt), "</bdi></small>")
}

// writeState writes the state and what is special. deliveredAt stands with it, because the column of times is that of archiving.
func (w *rowWriter) writeState(r row, deliveredAt string) {
	w.writeWithin(`<b class="`+cssClassOf(r)+`">`, r.State, "</b>")
	w.writeWithin(" ", deliveredAt, "")
	for _, flag := range r.Flags {
		w.writeWithin(" ", flag, "")
	}
	w.writeWithin(" <small>", textOf(r.Reason), "</small>")
}
