package report

import (
	"html/template"
	"strings"

	"vaultd/internal/present"
	"vaultd/internal/sanitize"
)

// rowWriter writes one row of the page's table. The template would do it, and take more than twice the time: a table has
// up to a million rows. Every text of the ledger goes through text, which makes it legible and escapes it.
type rowWriter struct{ strings.Builder }

func (w *rowWriter) text(s string) { w.WriteString(sanitize.HTML(s)) }

// within writes a text between tags; nothing where there is none.
func (w *rowWriter) within(open, s, closing string) {
	if s != "" {
		w.WriteString(open)
		w.text(s)
		w.WriteString(closing)
	}
}

// isolated writes a text whose direction must not turn what stands beside it.
func (w *rowWriter) isolated(s string) { w.within("<bdi>", s, "</bdi>") }

func (w *rowWriter) code(s *string) { w.within("<code>", textOf(s), "</code>") }

// Row gives the table's row of one folder.
func (p *htmlPage) Row(r row) template.HTML {
	const next = "</td><td>"
	var w rowWriter
	w.Grow(1 << 10)
	w.WriteString(`<tr><th scope="row">`)
	w.isolated(r.Folder)
	w.within(" <small><bdi>", r.Drop, "</bdi></small>")
	w.receipt(r)
	w.WriteString("</th><td>")
	s := r.Shown()
	w.isolated(s.Number)
	w.within(" <small>", s.Mark, "</small>")
	w.WriteString(next)
	w.text(s.Type)
	w.WriteString(next)
	w.text(present.FormatDay(s.Date))
	w.WriteString(next)
	w.isolated(s.Sender)
	w.WriteString(next)
	if w.isolated(s.Recipient); s.Recipient == "" {
		w.isolated(s.RecipientIDs)
	}
	w.WriteString(next)
	if s.Mark == "" {
		s.Amount = groupThousands(s.Amount)
	}
	w.text(s.Amount)
	w.within(" ", s.Currency, "")
	w.WriteString(next)
	w.state(r)
	w.WriteString(next)
	w.text(p.Cell(r.ArchivedAt))
	w.WriteString(next)
	for _, number := range []*string{&r.Key, r.BumID, r.ClientUUID, r.SHA256} {
		w.code(number)
	}
	w.WriteString("</td></tr>")
	return template.HTML(w.String()) //nolint:gosec // text escaped each part of it
}

// receipt leads to the receipt of a kept folder, or says where it lies.
func (w *rowWriter) receipt(r row) {
	if strings.HasPrefix(r.link, "./") || strings.HasPrefix(r.link, "../") { // nothing else is a path, whatever it came from
		w.within(`<small><a href="`, r.link, `">receipt</a></small>`)
		return
	}
	w.within("<small><bdi>", textOf(r.Receipt), "</bdi></small>")
}

func (w *rowWriter) state(r row) {
	w.within(`<b class="`+cssClassOf(r)+`">`, r.State, "</b>")
	for _, flag := range r.Flags {
		w.within(" ", flag, "")
	}
	w.within(" <small>", textOf(r.Reason), "</small>")
}
