package page

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/present"
	"vaultd/internal/sanitize"
)

const (
	mostHits  = 50
	mostWords = 400              // characters of a question
	patience  = 10 * time.Second // with a search that the catalog does not answer
)

// searchBody is what a search found. Problem says what is wrong with the question; empty: nothing is.
type searchBody struct {
	Found
	Problem string
	IsNext  bool // it goes on behind a page
}

// NextPage returns the address of the page behind this one; empty: there is none.
func (b searchBody) NextPage(query string) string {
	if !b.HasMore || len(b.Hits) == 0 {
		return ""
	}
	return "/search?" + url.Values{"q": {query}, "after": {b.Hits[len(b.Hits)-1].Entry.Key.String()}}.Encode()
}

func (p *Pages) showHits(w http.ResponseWriter, r *http.Request, f *frame) error {
	f.Query = strings.TrimSpace(r.URL.Query().Get("q"))
	words := strings.Fields(f.Query)
	var b searchBody
	var after archive.Key
	if text := r.URL.Query().Get("after"); text != "" {
		var err error
		if after, err = archive.ParseKey(text); err != nil {
			return noSuchPage()
		}
		b.IsNext = true
	}
	status := http.StatusOK
	switch {
	case len(words) == 0:
	case len([]rune(f.Query)) > mostWords:
		b.Problem, status = "These are too many words.", http.StatusBadRequest
	case !slices.ContainsFunc(words, func(w string) bool { return strings.Trim(w, "*?%") != "" }):
		b.Problem, status = "A star or a question mark stands for nothing here: a word is found in the middle of a name or number too.", http.StatusBadRequest
	default:
		ctx, cancel := context.WithTimeout(r.Context(), patience)
		defer cancel()
		var err error
		if b.Found, err = p.source.Search(ctx, words, after, mostHits); err != nil {
			return err
		}
	}
	title := f.T("Search")
	if f.Query != "" {
		title = f.T("Search for “%s”", sanitize.Text(f.Query))
	}
	f.writePage(w, status, "search", title, b)
	return nil
}

// field is a name, which is translated, and a value that is fit to be shown.
type field struct{ Name, Value string }

// IsCode reports whether the value is to be compared letter by letter.
func (v field) IsCode() bool {
	return v.Name == "bumId" || v.Name == "clientUUID" || v.Name == "Identity" || v.Name == "Key" || v.Name == "SHA-256"
}

// hitRow is what a hit is recognised by, fit to be shown.
type hitRow struct {
	Number, Date, Sender, Recipient, Amount string
	IsAsRead                                bool // nobody checked it
}

// mostUnbroken is how many characters of a number stay on one line. A longer number may break, so that the page does not become too wide.
const mostUnbroken = 20

// IsNumberShort reports whether the number has room on one line.
func (r hitRow) IsNumberShort() bool { return len([]rune(r.Number)) <= mostUnbroken }

// RowOf returns what a hit is recognised by.
func (f *frame) RowOf(h Hit) hitRow {
	m, isAsRead := h.Metadata, !h.AsRead.IsZero()
	if isAsRead {
		m = documentOf(h.AsRead)
	}
	return hitRow{sanitize.Text(m.Number), f.FormatDay(m.Date), sanitize.Text(m.SenderName), sanitize.Text(m.RecipientName), f.FormatAmount(m), isAsRead}
}

// documentOf puts what was read and not checked where checked metadata has it.
func documentOf(r archive.AsRead) archive.Document {
	m := archive.Document{Type: r.Type, Number: r.Number, Date: r.Date, SenderName: r.SenderName, RecipientName: r.RecipientName, Amount: archive.Decimal(r.Amount), Currency: r.Currency}
	if r.SenderIDs != "" {
		m.SenderIDs = []string{r.SenderIDs}
	}
	if r.RecipientIDs != "" {
		m.RecipientIDs = []string{r.RecipientIDs}
	}
	return m
}

// invoiceFields returns the fields of checked metadata by which people know an invoice.
func (f *frame) invoiceFields(m archive.Document) []field {
	return []field{{"Number", m.Number}, {"Date", f.FormatDay(m.Date)}, {"Sender", m.SenderName}, {"Recipient", m.RecipientName}, {"Amount", f.FormatAmount(m)}}
}

// knownFields leaves out the fields that are empty, and makes the values fit to be shown.
func (f *frame) knownFields(fields ...field) (known []field) {
	for _, one := range fields {
		if one.Value != "" {
			known = append(known, field{one.Name, sanitize.Text(one.Value)})
		}
	}
	return known
}

// DescribeTime says when the state of an entry was reached, in a few words.
func (f *frame) DescribeTime(e ledger.Entry) string {
	if e.State == ledger.Archived {
		return f.FormatTime(e.ArchivedAt)
	}
	if e.State == ledger.Delivered {
		return f.FormatTime(deliveredAt(e))
	}
	return f.T("taken %s", f.FormatTime(e.SeenAt))
}

// deliveredAt returns when an entry was delivered; zero: it was not.
func deliveredAt(e ledger.Entry) time.Time {
	if e.State != ledger.Delivered {
		return time.Time{}
	}
	return e.CompletedAt()
}

// isDelivered reports whether there is a delivery note.
func isDelivered(d present.Dossier) bool { return d.Entry.State == ledger.Delivered }

// isDownloadable reports whether there is one document in the archive that can be downloaded.
func isDownloadable(d present.Dossier) bool {
	return d.Entry.State == ledger.Archived && d.Entry.ArchivedRemote != ""
}
